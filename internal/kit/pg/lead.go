package pg

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lead runs duty in one process at a time: whoever holds the session lock of name. It
// returns when ctx ends. duty's context ends when the lock may be lost; when duty
// returns early it is started again after a pause. Another process takes over within
// about a second of the holder's end, and within leaderSilence where the holder's machine
// is lost or stands still.
func Lead(ctx context.Context, db *DB, name string, run func(context.Context)) {
	for ctx.Err() == nil {
		if err := leadOnce(ctx, db, name, run); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "leadership lost", "duty", name, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// leaderSilence is how long PostgreSQL keeps the session, and with it the lock, of a holder
// that says nothing. It says something once a second.
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
	slog.InfoContext(ctx, "leading", "duty", name)
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

// holdUntil proves once a second that the session, and with it the lock, is alive.
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
