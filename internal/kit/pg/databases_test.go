package pg_test

import (
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// However many ask at once, each database is made once, from one template, and is empty.
func TestDatabasesBesideEachOther(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	all, err := pg.NewDatabases(pgtest.Server(t))
	check.NoError(check.Now(t), err, "%v", err)
	var making sync.WaitGroup
	for _, name := range []string{"1", "2", "1", "2"} {
		making.Go(func() { check.NoError(t, all.Make(t.Context(), name, quiet), "making %s", name) })
	}
	making.Wait()
	names, err := all.Names(t.Context())
	check.NoError(t, err, "%v", err)
	slices.Sort(names)
	check.Slices(t, "databases", names, []string{"1", "2"}, "without the template")
	for _, name := range []string{"1", "2"} {
		db, err := all.Open(t.Context(), name, quiet)
		check.NoError(check.Now(t), err, "%v", err)
		var n int
		check.NoError(t, db.QueryRow(t.Context(), `SELECT count(*) FROM organizations`).Scan(&n), "organizations")
		check.Equal(t, "organizations", n, 0, "of database %s", name)
		check.NoError(t, all.Drop(t.Context(), name), "dropping what is open")
		_, err = db.Exec(t.Context(), `SELECT 1`)
		check.True(t, "its connections are gone", err != nil, "it still answers")
		db.Close()
		_, err = all.Open(t.Context(), name, quiet)
		check.True(t, "it is gone", err != nil, "it opens")
		check.NoError(t, all.Drop(t.Context(), name), "dropping what is gone")
	}
}
