package pg_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// lines hands over what is logged.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// A long transaction holds up a migration, but nobody who comes after the migration.
func TestAMigrationDoesNotStandInTheWay(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db := opened(t, url)
	exec(t, db, `DROP INDEX roster_runs_held`)
	exec(t, db, `DELETE FROM goose_db_version WHERE version_id = 132`)
	long, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = long.Rollback(context.Background()) }()
	if _, err := long.Exec(t.Context(), `LOCK TABLE roster_runs IN ROW EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	log, migrated := make(lines, 100), make(chan error, 1)
	go func() { migrated <- pg.Migrate(t.Context(), url, slog.New(slog.NewTextHandler(log, nil))) }()
	pgtest.AwaitBlocked(t, db, long)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := db.Exec(ctx, `UPDATE roster_runs SET state = state`); err != nil {
		t.Fatalf("a call waits behind the migration: %v", err)
	}
	select {
	case line := <-log:
		for _, want := range []string{"level=WARN", "version=132", "trying again", `of \"registrar\", since 2`} {
			if !strings.Contains(line, want) {
				t.Errorf("no %s in %s", want, line)
			}
		}
	case err := <-migrated:
		t.Fatalf("it is over: %v", err)
	case <-ctx.Done():
		t.Fatal("it does not tell that it waits")
	}
	if err := long.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	var built bool
	if err := db.QueryRow(t.Context(), `SELECT to_regclass('roster_runs_held') IS NOT NULL`).Scan(&built); err != nil || !built {
		t.Errorf("built %v, %v", built, err)
	}
}

// Of two processes that migrate at once, one waits, and finds everything done.
func TestTwoMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db := opened(t, url)
	exec(t, db, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	log, done := make(lines, 1000), make(chan error, 2)
	for range 2 {
		go func() { done <- pg.Migrate(t.Context(), url, slog.New(slog.NewTextHandler(log, nil))) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	close(log)
	times := map[string]int{}
	for line := range log {
		if _, file, ok := strings.Cut(line, " file="); ok {
			times[file[:5]]++
		}
	}
	for version, n := range times {
		if n != 1 {
			t.Errorf("%s was applied %d times", version, n)
		}
	}
	if pending, err := pg.PendingMigrations(t.Context(), db); err != nil || pending != 0 || len(times) == 0 {
		t.Errorf("%d applied, %d pending, %v", len(times), pending, err)
	}
}

// A process that dies while it builds an index beside the work of others leaves an index
// that is never used, and one that dies after it a step that is not written down.
func TestMigrationsThatWereBrokenOffAreDoneAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db := opened(t, url)
	exec(t, db, `DELETE FROM goose_db_version WHERE version_id IN (12, 21, 61, 80, 110, 121, 122)`)
	exec(t, db, `UPDATE pg_index SET indisvalid = false WHERE indexrelid IN ('plans_organization'::regclass, 'members_staff'::regclass)`)
	if err := pg.Migrate(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	var valid bool
	err := db.QueryRow(t.Context(), `SELECT bool_and(indisvalid) FROM pg_index
		WHERE indexrelid IN ('plans_organization'::regclass, 'members_staff'::regclass, 'enrollments_access'::regclass)`).Scan(&valid)
	if err != nil || !valid {
		t.Errorf("valid %v, %v", valid, err)
	}
	if pending, err := pg.PendingMigrations(t.Context(), db); err != nil || pending != 0 {
		t.Errorf("%d pending, %v", pending, err)
	}
}

// The programs' address says how large their pools are, and migrations take it as it is.
func TestMigrateTakesTheAddressOfThePrograms(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("pool_max_conns", "5")
	u.RawQuery = query.Encode()
	if err := pg.Migrate(t.Context(), u.String(), slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

func opened(t *testing.T, url string) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func exec(t *testing.T, db *pg.DB, sql string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
