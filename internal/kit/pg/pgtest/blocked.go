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
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	over := time.After(30 * time.Second)
	for {
		var blocked bool
		err := db.QueryRow(t.Context(), `
			SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND $1 = ANY (pg_blocking_pids(pid)))`,
			int32(holder.Conn().PgConn().PID())).Scan(&blocked)
		if err != nil {
			t.Fatal(err)
		}
		if blocked {
			return
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatal("nobody waits for the transaction after 30 s")
		}
	}
}
