package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// steadySettings make PostgreSQL plan a statement once a connection, for any arguments, and
// use indexes. Otherwise it would plan statements on partitioned tables at every call, because
// a plan for known arguments leaves out partitions and so seems cheaper; but planning costs
// more than running. A plan that is kept leaves out partitions when it runs.
var steadySettings = map[string]string{
	"plan_cache_mode":  "force_generic_plan",
	"enable_seqscan":   "off",
	"enable_hashjoin":  "off",
	"enable_mergejoin": "off",
}

// Steady opens a second pool of at most conns connections. Use it only for statements that run
// all the time and find few rows by index.
func (db *DB) Steady(ctx context.Context, conns int32) (*DB, error) {
	cfg := db.Config()
	cfg.MaxConns, cfg.MinConns = conns, 0
	for name, value := range steadySettings {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgresql: %w", err)
	}
	steady := &DB{Pool: pool}
	steady.notifier = startNotifier(context.WithoutCancel(ctx), pool)
	return steady, nil
}
