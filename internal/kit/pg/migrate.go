package pg

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrations are the files of the schema, named by their versions.
var migrations = func() fs.FS {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		panic(err) // embedded at build time
	}
	return files
}()

const (
	// lockPatience is how long a migration, or a transaction that called GiveWay, waits for a
	// lock. While it waits, PostgreSQL lets no other transaction lock the table either.
	lockPatience = "2s"
	lockTimeout  = "lock_timeout"

	// lockTries bounds how often a migration is tried whose locks others hold, with pauses of
	// 1 to 10 s: some ten minutes.
	lockTries = 55
)

// Migrate brings the schema of url to this program's version, one process at a time,
// and reports each step to log. Migrations only go forward and are safe while the
// previous program version is serving, which waits no longer than lockPatience for one. A
// migration without a transaction that was broken off is done again.
func Migrate(ctx context.Context, url string, log *slog.Logger) error {
	return migrate(ctx, url, migrations, log)
}

func migrate(ctx context.Context, url string, files fs.FS, log *slog.Logger) error {
	cfg, err := parse("DATABASE_URL", url) // the programs' address may hold settings of their pools
	if err != nil {
		return err
	}
	cfg.ConnConfig.RuntimeParams["idle_session_timeout"] = "0" // who holds the lock says nothing for long
	m := &migrator{db: stdlib.OpenDB(*cfg.ConnConfig), files: files, log: log}
	defer func() { _ = m.db.Close() }()
	hasty := cfg.ConnConfig.Copy()
	if _, given := hasty.RuntimeParams[lockTimeout]; !given {
		hasty.RuntimeParams[lockTimeout] = lockPatience
	}
	hastyDB := stdlib.OpenDB(*hasty)
	defer func() { _ = hastyDB.Close() }()
	if m.patient, err = newProvider(m.db, files); err != nil {
		return err
	}
	if m.hasty, err = newProvider(hastyDB, files); err != nil {
		return err
	}
	applied, err := m.alone(ctx)
	if refusesSettings(err) {
		err = errPooler
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	log.InfoContext(ctx, "schema is current", "version", RequiredVersion(), "applied", applied)
	return nil
}

func newProvider(db *sql.DB, files fs.FS) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
}

// migrator applies migrations: hastily those that keep others from a table, patiently those
// that do not, but have to wait for every transaction that is older.
type migrator struct {
	db             *sql.DB
	hasty, patient *goose.Provider
	files          fs.FS
	log            *slog.Logger
}

// alone applies what is pending while no other process does, and says how many those were.
func (m *migrator) alone(ctx context.Context) (applied int, err error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // asks each second for five minutes
	if err != nil {
		return 0, err
	}
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if err := refusePooler(ctx, conn); err != nil {
		return 0, err
	}
	if err := locker.SessionLock(ctx, conn); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, locker.SessionUnlock(context.WithoutCancel(ctx), conn)) }()
	// Any may be pending, not only the last ones: branches number their migrations apart.
	all, err := m.patient.Status(ctx)
	if err != nil {
		return 0, err
	}
	for _, migration := range all {
		if migration.State != goose.StatePending {
			continue
		}
		if err := m.apply(ctx, conn, migration.Source); err != nil {
			return applied, err
		}
		applied++
	}
	return applied, nil
}

func refusePooler(ctx context.Context, conn *sql.Conn) error {
	return conn.Raw(func(driver any) error {
		pooled, err := throughPooler(ctx, driver.(*stdlib.Conn).Conn())
		if err == nil && pooled {
			err = errPooler
		}
		return err
	})
}

func (m *migrator) apply(ctx context.Context, conn *sql.Conn, source *goose.Source) error {
	text, err := fs.ReadFile(m.files, source.Path)
	if err != nil {
		return err
	}
	provider, tries := m.hasty, lockTries
	if strings.Contains(string(text), "+goose NO TRANSACTION") {
		if err := dropInvalid(ctx, conn, string(text)); err != nil {
			return err
		}
		provider, tries = m.patient, 1
	}
	for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
		result, err := provider.ApplyVersion(ctx, source.Version, true)
		if err == nil {
			m.log.InfoContext(ctx, "migrated", "version", source.Version, "file", source.Path, "duration", result.Duration.String())
			return nil
		}
		if tries--; tries == 0 || !lockNotAvailable(err) {
			return err
		}
		m.log.WarnContext(ctx, "others hold a lock that the migration needs; trying again", "version", source.Version, "file", source.Path,
			"pause", pause.String(), "tries_left", tries, "oldest_transaction", oldestTransaction(ctx, conn))
		if err := clock.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

func lockNotAvailable(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "55P03"
}

// oldestTransaction is for a log: whom a migration probably waits for.
func oldestTransaction(ctx context.Context, conn *sql.Conn) string {
	var pid int
	var name, began string
	err := conn.QueryRowContext(ctx, `
		SELECT pid, application_name, to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
		FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
		ORDER BY xact_start LIMIT 1`).Scan(&pid, &name, &began)
	if err != nil {
		return "unknown: " + err.Error()
	}
	return fmt.Sprintf("pid %d of %q, since %s", pid, name, began)
}

// dropInvalid drops what is left of indexes that a migration began to build beside the
// work of others, and did not finish. Built with IF NOT EXISTS, they would stay so.
func dropInvalid(ctx context.Context, conn *sql.Conn, migration string) error {
	rows, err := conn.QueryContext(ctx, `
		SELECT c.relname, i.indexrelid::regclass::text
		FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
		WHERE NOT i.indisvalid AND c.relkind = 'i' AND c.relnamespace = current_schema()::regnamespace`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var broken []string
	for rows.Next() {
		var name, quoted string
		if err := rows.Scan(&name, &quoted); err != nil {
			return err
		}
		if strings.Contains(migration, " "+name+" ON ") {
			broken = append(broken, quoted)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, index := range broken {
		if _, err := conn.ExecContext(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+index); err != nil {
			return err
		}
	}
	return nil
}

// RequiredVersion is the schema version that this program needs: the highest embedded
// migration.
func RequiredVersion() int64 {
	entries, err := fs.ReadDir(migrations, ".")
	if err != nil || len(entries) == 0 {
		panic("pg: no embedded migrations") // a build without them cannot work
	}
	version, err := goose.NumericComponent(entries[len(entries)-1].Name())
	if err != nil {
		panic(err)
	}
	return version
}

// MigrationText is every embedded migration, one after the other, and the rights of the programs'
// roles: what a cached schema is valid for.
func MigrationText() []byte {
	var text []byte
	entries, err := fs.ReadDir(migrations, ".")
	if err != nil {
		panic(err) // embedded at build time
	}
	for _, e := range entries {
		b, err := fs.ReadFile(migrations, e.Name())
		if err != nil {
			panic(err)
		}
		text = append(append(text, e.Name()...), b...)
	}
	return append(text, rightsText...)
}
