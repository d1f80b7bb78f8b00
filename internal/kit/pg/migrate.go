package pg

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	_ "github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrate brings the schema of url to this program's version, one process at a time,
// and reports each step to log. Migrations only go forward and are safe while the
// previous program version is serving.
func Migrate(ctx context.Context, url string, log *slog.Logger) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	for _, r := range results {
		log.InfoContext(ctx, "migrated", "version", r.Source.Version, "file", r.Source.Path, "duration", r.Duration.String())
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	log.InfoContext(ctx, "schema is current", "version", RequiredVersion(), "applied", len(results))
	return nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true),
		// Areas number their migrations in ranges of their own, so a later area may land first.
		goose.WithAllowOutofOrder(true))
}

// RequiredVersion is the schema version that this program was built for: the highest
// embedded migration.
func RequiredVersion() int64 {
	entries, err := embedded.ReadDir("migrations")
	if err != nil || len(entries) == 0 {
		panic("pg: no embedded migrations") // a build without them cannot work
	}
	version, err := goose.NumericComponent(entries[len(entries)-1].Name())
	if err != nil {
		panic(err)
	}
	return version
}

// MigrationText is every embedded migration, one after the other: what a cached schema
// is valid for.
func MigrationText() []byte {
	var text []byte
	entries, err := embedded.ReadDir("migrations")
	if err != nil {
		panic(err) // embedded at build time
	}
	for _, e := range entries {
		b, err := embedded.ReadFile("migrations/" + e.Name())
		if err != nil {
			panic(err)
		}
		text = append(append(text, e.Name()...), b...)
	}
	return text
}
