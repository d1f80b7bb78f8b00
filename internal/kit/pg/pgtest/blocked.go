package pgtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// AwaitBlocked returns when somebody waits for a lock that the transaction holds, so that a
// test can order what happens at the same time.
func AwaitBlocked(t testing.TB, db *pg.DB, holder pgx.Tx) {
	t.Helper()
	AwaitAllBlocked(t, db, holder, 1)
}

// AwaitAllBlocked returns when so many wait for a lock that the transaction holds.
func AwaitAllBlocked(t testing.TB, db *pg.DB, holder pgx.Tx, many int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	over := time.After(30 * time.Second)
	for {
		var blocked int
		err := db.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND $1 = ANY (pg_blocking_pids(pid))`,
			int32(holder.Conn().PgConn().PID())).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
		if blocked >= many {
			return
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%d wait for the transaction after 30 s, not %d", blocked, many)
		}
	}
}
