package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// schemaBehind says that a database is older than the program.
type schemaBehind struct{ have, need int64 }

func (e schemaBehind) Error() string {
	return fmt.Sprintf("the database schema is at version %d and this program needs %d: run `api-server migrate` first", e.have, e.need)
}

// CheckSchema refuses a schema older than this program needs. A newer one is fine:
// migrations keep the previous program version working.
func CheckSchema(ctx context.Context, q Querier) error {
	var have int64
	err := q.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&have)
	if err != nil && !neverMigrated(err) {
		return fmt.Errorf("reading the schema version: %w", err)
	}
	if need := RequiredVersion(); have < need {
		return schemaBehind{have, need}
	}
	return nil
}

// neverMigrated says whether err means that the table of migrations is not there.
func neverMigrated(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "42P01"
}

// openPause lies between two tries of OpenCurrent.
const openPause = time.Second

// OpenCurrent is Open for a program: it also refuses a schema that is older than the program
// needs. It tries again for up to wait while PostgreSQL is away or its schema is behind,
// because programs may start before PostgreSQL does or before it is migrated.
func OpenCurrent(ctx context.Context, url string, wait time.Duration) (*DB, error) {
	until := time.Now().Add(wait)
	for notified := false; ; notified = true {
		db, err := openOnce(ctx, url)
		if err == nil || !mayPass(ctx, err) || time.Until(until) < openPause {
			return db, err
		}
		if !notified {
			slog.InfoContext(ctx, "waiting for PostgreSQL and its schema", "at_most", wait.String(), "error", err)
		}
		if err := clock.Pause(ctx, openPause); err != nil {
			return nil, err
		}
	}
}

func openOnce(ctx context.Context, url string) (*DB, error) {
	db, err := Open(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := CheckSchema(ctx, db); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// mayPass says whether another attempt can help.
func mayPass(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	var behind schemaBehind
	return errors.As(err, &behind) || Away(err) || errors.Is(err, context.DeadlineExceeded)
}

// PendingMigrations counts the migrations of this program that the database lacks. It is
// above 0 where an older backup was restored under running programs.
func PendingMigrations(ctx context.Context, q Querier) (int, error) {
	rows, err := q.Query(ctx, `SELECT version_id FROM goose_db_version WHERE is_applied`)
	if err != nil {
		return 0, err
	}
	applied, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil && !neverMigrated(err) {
		return 0, err
	}
	have := make(map[int64]bool, len(applied))
	for _, version := range applied {
		have[version] = true
	}
	entries, err := fs.ReadDir(migrations, ".")
	if err != nil {
		return 0, err
	}
	pending := 0
	for _, e := range entries {
		version, err := goose.NumericComponent(e.Name())
		if err != nil {
			return 0, err
		}
		if !have[version] {
			pending++
		}
	}
	return pending, nil
}

// SchemaMetrics registers how far the schema is behind, read when it is scraped. Without
// PostgreSQL there is no figure.
func SchemaMetrics(reg prometheus.Registerer, db *DB) { reg.MustRegister(schemaCollector{db}) }

type schemaCollector struct{ db *DB }

var pendingMigrations = prometheus.NewDesc("registrar_schema_pending_migrations",
	"Migrations of this program that the database lacks.", nil, nil)

func (c schemaCollector) Describe(out chan<- *prometheus.Desc) { out <- pendingMigrations }

func (c schemaCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	pending, err := PendingMigrations(ctx, c.db)
	if err != nil {
		slog.WarnContext(ctx, "the schema's version could not be read", "error", err)
		return
	}
	out <- prometheus.MustNewConstMetric(pendingMigrations, prometheus.GaugeValue, float64(pending))
}
