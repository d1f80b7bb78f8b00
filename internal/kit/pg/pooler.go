package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A transaction pooler may run each transaction over another of its connections to PostgreSQL. So
// nothing can be kept in a session, neither a prepared statement nor a setting: statements are sent
// whole, and the settings of sessions become those of each transaction.

// execMode is pgx's setting of an address that says how statements are sent.
const execMode = "default_query_exec_mode"

// connect opens a pool whose first connection works, and says whether it leads through a pooler.
// settings are those of its sessions.
func connect(ctx context.Context, cfg *pgxpool.Config, settings map[string]string) (pool *pgxpool.Pool, pooled bool, err error) {
	direct := cfg.Copy()
	maps.Copy(direct.ConnConfig.RuntimeParams, settings)
	pool, err = pgxpool.NewWithConfig(ctx, direct)
	if err != nil {
		return nil, false, err
	}
	pooled, err = leadsThroughPooler(ctx, pool)
	if err == nil && !pooled {
		return pool, false, nil
	}
	pool.Close()
	if err != nil && !refusesSettings(err) {
		return nil, false, err
	}
	unprepared(cfg)
	if pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, true, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, true, err
	}
	return pool, true, nil
}

// unprepared has statements sent without a name, unless the address says how. What pgx remembers of
// them is their parameters and columns.
func unprepared(cfg *pgxpool.Config) {
	if !strings.Contains(cfg.ConnString(), execMode) {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}

// leadsThroughPooler compares who answered with who runs statements.
func leadsThroughPooler(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	return throughPooler(ctx, conn.Conn())
}

func throughPooler(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid != conn.PgConn().PID(), err
}

// refusesSettings says whether err is that of a pooler that knows no such setting of a session.
func refusesSettings(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "08P01" && strings.Contains(e.Message, "startup parameter")
}

// errPooler is what a migration says: it needs a session, for its lock and its settings.
var errPooler = errors.New("DATABASE_URL leads through a connection pooler, and migrations need a session of their own: " +
	"give `api-server migrate` the address of PostgreSQL itself (in the chart: migration.existingSecret)")

// tellOfPooler logs once what a site may want to know. A statement that stands alone has PostgreSQL's own
// setting of jit, which costs more than it brings.
func (db *DB) tellOfPooler(ctx context.Context) {
	var jit, database string
	err := db.QueryRow(ctx, `SELECT current_setting('jit'), quote_ident(current_database())`).Scan(&jit, &database)
	if err == nil && jit == "on" {
		slog.WarnContext(ctx, "PostgreSQL is reached through a pooler, and compiles statements, which makes short ones slow",
			"do", fmt.Sprintf("ALTER DATABASE %s SET jit = off", database))
		return
	}
	slog.InfoContext(ctx, "PostgreSQL is reached through a pooler")
}

// setLocally is a statement that makes settings for the rest of a transaction.
func setLocally(settings map[string]string) string {
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		calls = append(calls, fmt.Sprintf("set_config('%s', '%s', true)", name, settings[name]))
	}
	return "SELECT " + strings.Join(calls, ", ")
}
