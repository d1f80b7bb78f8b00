package pgtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// RowsRead counts, by table, the rows that indexes have found so far: how far a statement looks shows in
// the difference. Backends report it when they end, so all other connections to the database must be
// db's, and free.
func RowsRead(t testing.TB, db *pg.DB) map[string]int {
	t.Helper()
	return counted(t, db, `SELECT relname, coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables`)
}

// IndexPagesRead counts, by table, the pages of its indexes that were read so far: those of entries that a
// statement passes over too. It asks for what RowsRead does.
func IndexPagesRead(t testing.TB, db *pg.DB) map[string]int {
	t.Helper()
	return counted(t, db, `SELECT relname, coalesce(idx_blks_hit + idx_blks_read, 0) FROM pg_statio_user_tables`)
}

// counted is what a statement counts by table when all other connections are closed.
func counted(t testing.TB, db *pg.DB, sql string) map[string]int {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	over := time.After(time.Minute)
	for {
		db.Reset()
		var others int
		err := db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&others)
		if err != nil {
			t.Fatal(err)
		}
		if others == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%d connections are open after a minute", others)
		}
	}
	rows, err := db.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]int{}
	var table string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&table, &n}, func() error { read[table] = n; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return read
}
