package pg

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5/pgxpool"
)

// steadySettings make PostgreSQL plan a statement once a connection, for any arguments, and
// use indexes. Otherwise it would plan statements on partitioned tables at every call, because
// a plan for known arguments leaves out partitions and so seems cheaper; but planning costs
// more than running. A plan that is kept leaves out partitions when it runs. A pooler keeps none.
var steadySettings = map[string]string{
	"plan_cache_mode":  "force_generic_plan",
	"enable_seqscan":   "off",
	"enable_hashjoin":  "off",
	"enable_mergejoin": "off",
}

// Steady opens a second pool of at most conns connections. Use it only for statements that run
// all the time and find few rows by index.
func (db *DB) Steady(ctx context.Context, conns int32) (*DB, error) {
	return db.second(ctx, conns, steadySettings)
}

// Apart opens a second pool of at most conns connections, for what must not wait for those of
// the first.
func (db *DB) Apart(ctx context.Context, conns int32) (*DB, error) {
	return db.second(ctx, conns, nil)
}

func (db *DB) second(ctx context.Context, conns int32, settings map[string]string) (*DB, error) {
	cfg := db.Config()
	cfg.MaxConns, cfg.MinConns = conns, 0
	if !db.pooled {
		maps.Copy(cfg.ConnConfig.RuntimeParams, settings)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgresql: %w", err)
	}
	return &DB{Pool: pool, Wakes: db.Wakes, pooled: db.pooled, setting: db.setting, commits: db.commits}, nil
}
