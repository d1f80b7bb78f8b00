package pg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Databases are databases with this program's schema on one server, apart from each other and from the
// installation's own. Each is a copy of a template that is migrated once for a version of the schema.
type Databases struct {
	server string // the address of one of its databases
	config *pgx.ConnConfig
	prefix string
}

// NewDatabases reads the address of a database whose user may make databases, and owns those whose names begin
// with this one's name. It stays empty itself.
func NewDatabases(server string) (*Databases, error) {
	cfg, err := parse("SANDBOX_DATABASE_URL", server)
	if err != nil {
		return nil, err
	}
	return &Databases{server: server, config: cfg.ConnConfig, prefix: cfg.ConnConfig.Database + "_"}, nil
}

// conns is how many connections a program has to one of the databases, whose load is one caller's, and rest
// for how long it keeps one that it does not use.
const (
	conns = 4
	rest  = time.Minute
)

// templates begins the names of templates.
const templates = "template_"

// Make makes a database of the present schema. It does nothing when there is one of that name.
func (d *Databases) Make(ctx context.Context, name string, log *slog.Logger) error {
	return d.alone(ctx, func(conn *pgx.Conn) error {
		if there, err := exists(ctx, conn, d.prefix+name); err != nil || there {
			return err
		}
		template, err := d.template(ctx, conn, log)
		if err != nil {
			return err
		}
		// WAL_LOG, which is also the default, spares the server's other databases the checkpoints of FILE_COPY.
		return run(ctx, conn, "CREATE DATABASE "+quote(d.prefix+name)+" TEMPLATE "+quote(template)+" STRATEGY wal_log")
	})
}

// template makes the template of the present schema, unless it is there, and drops those of others. One that a
// process left unfinished has another name.
func (d *Databases) template(ctx context.Context, conn *pgx.Conn, log *slog.Logger) (string, error) {
	sum := sha256.Sum256(MigrationText())
	name, unfinished := d.prefix+templates+hex.EncodeToString(sum[:8]), d.prefix+templates+"new"
	if there, err := exists(ctx, conn, name); err != nil || there {
		return name, err
	}
	old, err := d.list(ctx, conn, templates)
	if err != nil {
		return "", err
	}
	for _, o := range old {
		if err := run(ctx, conn, "DROP DATABASE IF EXISTS "+quote(d.prefix+o)+" WITH (FORCE)"); err != nil {
			return "", err
		}
	}
	if err := run(ctx, conn, "CREATE DATABASE "+quote(unfinished)); err != nil {
		return "", err
	}
	if err := Migrate(ctx, d.address(unfinished), log); err != nil {
		return "", err
	}
	return name, run(ctx, conn, "ALTER DATABASE "+quote(unfinished)+" RENAME TO "+quote(name))
}

// Open opens a database, and brings one of an older version up to date first.
func (d *Databases) Open(ctx context.Context, name string, log *slog.Logger) (*DB, error) {
	address := d.address(d.prefix + name)
	db, err := openOnce(ctx, address)
	var behind schemaBehind
	if !errors.As(err, &behind) {
		return db, err
	}
	if err := Migrate(ctx, address, log); err != nil {
		return nil, err
	}
	return openOnce(ctx, address)
}

// Names lists the databases that there are, without templates.
func (d *Databases) Names(ctx context.Context) (names []string, err error) {
	err = d.connected(ctx, func(conn *pgx.Conn) error {
		names, err = d.list(ctx, conn, "")
		return err
	})
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, templates) }), err
}

func (d *Databases) list(ctx context.Context, conn *pgx.Conn, start string) (names []string, err error) {
	rows, err := conn.Query(ctx, `SELECT substr(datname, length($1) + 1) FROM pg_database WHERE starts_with(datname, $1 || $2)`, d.prefix, start)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Drop drops a database, if it exists, and ends the connections to it.
func (d *Databases) Drop(ctx context.Context, name string) error {
	return d.alone(ctx, func(conn *pgx.Conn) error {
		return run(ctx, conn, "DROP DATABASE IF EXISTS "+quote(d.prefix+name)+" WITH (FORCE)")
	})
}

// address is the one of a database, with a small pool and whatever else the server's address has.
func (d *Databases) address(database string) string {
	if u, err := url.Parse(d.server); err == nil && u.Scheme != "" {
		u.Path = "/" + database
		query := u.Query()
		query.Set("pool_max_conns", strconv.Itoa(conns))
		query.Set("pool_max_conn_idle_time", rest.String())
		u.RawQuery = query.Encode()
		return u.String()
	}
	name := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database)
	return fmt.Sprintf("%s dbname='%s' pool_max_conns=%d pool_max_conn_idle_time=%s", d.server, name, conns, rest)
}

// alone is connected for one process at a time that makes or drops databases.
func (d *Databases) alone(ctx context.Context, do func(*pgx.Conn) error) error {
	return d.connected(ctx, func(lock *pgx.Conn) error {
		return pgx.BeginFunc(ctx, lock, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, int32(LockDatabases), d.prefix); err != nil {
				return err
			}
			return d.connected(ctx, do) // databases are made outside of transactions
		})
	})
}

func (d *Databases) connected(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, d.config.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}

func exists(ctx context.Context, conn *pgx.Conn, database string) (there bool, err error) {
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&there)
	return there, err
}

func run(ctx context.Context, conn *pgx.Conn, statement string) error {
	_, err := conn.Exec(ctx, statement)
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
