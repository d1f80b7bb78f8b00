package pg

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lead calls run in one process at a time, the one that holds the session lock of name. It
// returns when ctx ends. The context of run ends when the lock may be lost; when run returns
// early it is called again after a pause. When the process ends, another one takes over
// within about a second; when its machine is lost or hangs, within leaderSilence.
func Lead(ctx context.Context, db *DB, name string, run func(context.Context)) {
	for ctx.Err() == nil {
		if err := leadOnce(ctx, db, name, run); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "leadership lost", "job", name, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// leaderSilence is how long PostgreSQL keeps an idle session, and with it the lock. The holder
// pings once a second.
const leaderSilence = "10s"

func leadOnce(ctx context.Context, db *DB, name string, run func(context.Context)) error {
	cfg := db.Config().ConnConfig
	cfg.RuntimeParams["idle_session_timeout"] = leaderSilence
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var held bool
	err = conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, hashtext($2))`, int32(LockLeader), name).Scan(&held)
	if err != nil || !held {
		return err
	}
	slog.InfoContext(ctx, "leading", "job", name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	err = holdUntil(ctx, conn, done)
	cancel()
	<-done
	return err
}

// holdUntil checks once a second that the session, and with it the lock, is alive.
func holdUntil(ctx context.Context, conn *pgx.Conn, done <-chan struct{}) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := ping(ctx, conn); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return conn.Ping(ctx)
}
