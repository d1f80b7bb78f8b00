package pgtest

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// AwaitBlocked returns when n sessions of the database wait for locks of others, so that a
// test can order what happens at the same time.
func AwaitBlocked(t testing.TB, db *pg.DB, n int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	over := time.After(30 * time.Second)
	for {
		var waiting int
		err := db.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if waiting >= n {
			return
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%d sessions wait for locks after 30 s, want %d", waiting, n)
		}
	}
}
