package pg_test

import (
	"context"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// lines hands over what is logged.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// later are the migrations of this program and one that a later version adds to them.
func later(t *testing.T, name, text string) fs.FS {
	t.Helper()
	files := fstest.MapFS{name: {Data: []byte(text)}}
	names, err := fs.Glob(pg.Migrations, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range names {
		data, err := fs.ReadFile(pg.Migrations, known)
		if err != nil {
			t.Fatal(err)
		}
		files[known] = &fstest.MapFile{Data: data}
	}
	return files
}

// A long transaction holds up a migration, but nobody who comes after the migration.
func TestAMigrationDoesNotStandInTheWay(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db := opened(t, url)
	files := later(t, "90001_refused_runs.sql", `-- +goose Up
CREATE INDEX roster_runs_refused ON roster_runs (organization_id, id DESC) WHERE state = 'refused';
`)
	long, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = long.Rollback(context.Background()) }()
	if _, err := long.Exec(t.Context(), `LOCK TABLE roster_runs IN ROW EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	log, migrated := make(lines, 100), make(chan error, 1)
	go func() {
		migrated <- pg.MigrateWith(t.Context(), url, files, slog.New(slog.NewTextHandler(log, nil)))
	}()
	pgtest.AwaitBlocked(t, db, long)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := db.Exec(ctx, `UPDATE roster_runs SET state = state`); err != nil {
		t.Fatalf("a call waits behind the migration: %v", err)
	}
	select {
	case line := <-log:
		for _, want := range []string{"level=WARN", "version=90001", "trying again", `of \"registrar\", since 2`} {
			if !strings.Contains(line, want) {
				t.Errorf("no %s in %s", want, line)
			}
		}
	case err := <-migrated:
		t.Fatalf("it is over: %v", err)
	case <-ctx.Done():
		t.Fatal("it does not report that it waits")
	}
	if err := long.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	var built bool
	if err := db.QueryRow(t.Context(), `SELECT to_regclass('roster_runs_refused') IS NOT NULL`).Scan(&built); check.NoError(t, err, "built %v, %v", built, err) {
		check.True(t, "built", built, "built %v, %v", built, err)
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
	if pending, err := pg.PendingMigrations(t.Context(), db); check.NoError(t, err, "%d applied, %d pending, %v", len(times), pending, err) &&
		check.Equal(t, "pending", pending, 0, "%d applied, %d pending, %v", len(times), pending, err) {
		check.True(t, "there are times", len(times) != 0, "%d applied, %d pending, %v", len(times), pending, err)
	}
}

// A process that dies while it builds an index beside the work of others leaves an index
// that is never used, and one that dies after it a step that is not written down.
func TestMigrationsThatWereBrokenOffAreDoneAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db := opened(t, url)
	files := later(t, "90001_indexes.sql", `-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY IF NOT EXISTS plans_exam ON plans (exam, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS members_role ON members (role, user_id);
`)
	migrate := func() {
		t.Helper()
		if err := pg.MigrateWith(t.Context(), url, files, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	migrate()
	exec(t, db, `DELETE FROM goose_db_version WHERE version_id = 90001`)
	exec(t, db, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'members_role'::regclass`)
	migrate()
	var valid, noted bool
	err := db.QueryRow(t.Context(), `
		SELECT
			(SELECT bool_and(indisvalid) FROM pg_index WHERE indexrelid IN ('plans_exam'::regclass, 'members_role'::regclass)),
			EXISTS (SELECT FROM goose_db_version WHERE version_id = 90001 AND is_applied)`).Scan(&valid, &noted)
	if err != nil {
		t.Fatal(err)
	}
	if !valid {
		t.Error("an index is not valid")
	}
	if !noted {
		t.Error("the migration is not noted as applied")
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
