// Package pgtest gives every test a database of its own, cloned from a migrated
// template in a few tens of milliseconds, so that tests run in parallel on a real
// PostgreSQL.
//
// It needs TEST_DATABASE_URL, a superuser's address of a throw-away server; `make test`
// starts one.
package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// New returns a migrated, empty database that goes with the test.
func New(t testing.TB) *pg.DB {
	t.Helper()
	return open(t, URL(t))
}

// open opens a database of URL until the test ends. All that open it wake each other over Redis.
func open(t testing.TB, address string) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	wakeOver(t, db, os.Getenv("TEST_REDIS_URL"), db.Config().ConnConfig.Database)
	return db
}

// WakePrograms makes db and the programs that have the address of Redis wake each other.
func WakePrograms(t testing.TB, db *pg.DB, redisURL string) {
	t.Helper()
	wakeOver(t, db, redisURL, wake.Installation)
}

func wakeOver(t testing.TB, db *pg.DB, redisURL, name string) {
	t.Helper()
	rdb, err := queue.Connect(redisURL, queue.TLS{})
	if err != nil {
		t.Fatalf("%v: run `make test`, or `make test ARGS=<packages>` for a part", err)
	}
	bus := wake.Start(rdb, name)
	db.Wakes = bus
	t.Cleanup(func() {
		bus.Close()
		_ = rdb.Close()
	})
}

// URL makes a migrated, empty database and returns its address.
func URL(t testing.TB) string {
	t.Helper()
	template, err := makeTemplate()
	if err != nil {
		t.Fatal(err)
	}
	name := "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := admin(t.Context(), "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY file_copy"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return withDatabase(name)
}

// Server is the address of a database beside which a test makes others (pg.NewDatabases). They go with the test.
func Server(t testing.TB) string {
	t.Helper()
	address := URL(t)
	own := address[strings.LastIndex(address, "/")+1:]
	own, _, _ = strings.Cut(own, "?")
	template, err := makeTemplate()
	if err == nil { // or each test would migrate one
		err = admin(t.Context(), "CREATE DATABASE "+own+"_template_"+fingerprint()+" TEMPLATE "+template+" STRATEGY file_copy")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dropAll(context.Background(), own+"_"); err != nil {
			t.Error(err)
		}
	})
	return address
}

func dropAll(ctx context.Context, prefix string) error {
	conn, err := pgx.Connect(ctx, base())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database WHERE starts_with(datname, $1)`, prefix)
	if err != nil {
		return err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return admin(ctx, statements...)
}

// RolePrefix is that of the programs' roles in the databases of tests.
const RolePrefix = "registrar"

// As is the address of a database of URL for the role of a program, such as "worker", which may do
// in it what the program may.
func As(t testing.TB, address, program string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(pg.RoleOf(RolePrefix, program)) // a throw-away server asks for no password
	return u.String()
}

// OpenAs opens the database of db once more, for the role of a program, until the test ends.
func OpenAs(t testing.TB, db *pg.DB, program string) *pg.DB {
	t.Helper()
	return open(t, As(t, db.Config().ConnString(), program))
}

func base() string { return os.Getenv("TEST_DATABASE_URL") }

func withDatabase(name string) string {
	u, err := url.Parse(base())
	if err != nil {
		return base()
	}
	u.Path = "/" + name
	return u.String()
}

func admin(ctx context.Context, statements ...string) error {
	if base() == "" {
		return fmt.Errorf("TEST_DATABASE_URL is not set: run `make test`, or `make test ARGS=<packages>` for a part")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := lend(ctx)
	if err != nil {
		return err
	}
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			_ = conn.Close(ctx)
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	select {
	case idle <- conn:
		return nil
	default:
		return conn.Close(ctx)
	}
}

// idle are connections for the next statements of admin: to open one takes a good part of the time that it
// takes to make a database. They end with the process.
var idle = make(chan *pgx.Conn, 8)

func lend(ctx context.Context) (*pgx.Conn, error) {
	select {
	case conn := <-idle:
		return conn, nil
	default:
		return pgx.Connect(ctx, base())
	}
}

// makeTemplate migrates a template once a schema version; test binaries that run at the
// same time agree over an advisory lock.
var makeTemplate = sync.OnceValues(func() (string, error) {
	name := "template_" + fingerprint()
	if err := admin(context.Background()); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, base())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(7310, 1)`); err != nil {
		return "", err
	}
	var exists bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)`, name).Scan(&exists)
	if err != nil || exists {
		return name, err
	}
	quiet := slog.New(slog.DiscardHandler)
	if err := admin(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	if err := pg.Migrate(ctx, withDatabase(name), quiet); err != nil {
		return "", err
	}
	if err := pg.Secure(ctx, withDatabase(name), RolePrefix, quiet); err != nil {
		return "", err
	}
	for _, program := range pg.Programs {
		if err := admin(ctx, "ALTER ROLE "+pg.RoleOf(RolePrefix, program)+" LOGIN"); err != nil {
			return "", err
		}
	}
	if err := errors.Join(freeze(ctx, withDatabase(name)), connect(ctx, withDatabase(name))); err != nil {
		return "", err
	}
	return name, admin(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true ALLOW_CONNECTIONS false")
})

// freeze settles the catalogs of the template, and nothing else: whoever first reads a row that is not
// settled marks it, so that each copy would write most of its catalogs once more. The tables stay as they
// are, never vacuumed, which the planner treats differently from empty.
func freeze(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `
		SELECT oid::regclass::text FROM pg_class
		WHERE relkind = 'r' AND relnamespace = 'pg_catalog'::regnamespace AND NOT relisshared`)
	if err != nil {
		return err
	}
	catalogs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "VACUUM (FREEZE) "+strings.Join(catalogs, ", "))
	return err
}

// connect makes PostgreSQL write what a connection begins with, the descriptions of its catalogs, into a file
// of the template. The copies have it, too: else each connection of a test would gather it from the catalogs.
func connect(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func fingerprint() string {
	sum := sha256.Sum256(pg.MigrationText())
	return hex.EncodeToString(sum[:8])
}
