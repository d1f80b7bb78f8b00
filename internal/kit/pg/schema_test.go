package pg_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

func TestOpenCurrentWaitsForTheSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	behind(t, url)
	if _, err := pg.OpenCurrent(t.Context(), url, 0); check.True(check.Now(t), "there is an error", err != nil, "err = %v", err) {
		check.Contains(check.Now(t), "the error", err.Error(), "api-server migrate", "err = %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		db, err := pg.OpenCurrent(t.Context(), url, time.Minute)
		if err == nil {
			db.Close()
		}
		opened <- err
	}()
	if err := pg.Migrate(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

func TestOpenCurrentWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := pg.OpenCurrent(ctx, "postgres://127.0.0.1:1/nobody", time.Hour); !errors.Is(err, context.Canceled) {
		t.Fatalf("err = %v", err)
	}
	if _, err := pg.OpenCurrent(t.Context(), "postgres://%", time.Hour); check.True(check.Now(t), "there is an error", err != nil, "an address that will never do was waited for: %v", err) {
		check.Contains(check.Now(t), "the error", err.Error(), "DATABASE_URL", "an address that will never do was waited for: %v", err)
	}
}

func TestAnAddressThatWillNotDoIsNotShown(t *testing.T) {
	t.Parallel()
	for url, says := range map[string]string{
		"postgres://%": "DATABASE_URL: ",
		"postgres://user:12/hush@host/db?pool_max_conns=no": "pool_max_conns",
		"postgres://user:no@hush@host:port/db":              "invalid port",
		"user:no@hush@host":                                 "postgres:// address",
		"host=h password=no hush":                           "keyword/value",
	} {
		_, opened := pg.Open(t.Context(), url)
		for _, err := range []error{opened, pg.Migrate(t.Context(), url, slog.New(slog.DiscardHandler))} {
			if check.True(t, "there is an error", err != nil, "%s: %v, want it to say %q", url, err, says) &&
				check.Lacks(t, "the error", err.Error(), "hush", "%s: %v, want it to say %q", url, err, says) {
				check.Contains(t, "the error", err.Error(), says, "%s: %v, want it to say %q", url, err, says)
			}
		}
	}
}

func TestPendingMigrationsAreCounted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	reg := prometheus.NewRegistry()
	pg.SchemaMetrics(reg, db)
	want := func(n string) {
		t.Helper()
		err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP registrar_schema_pending_migrations Migrations of this program that the database lacks.
# TYPE registrar_schema_pending_migrations gauge
registrar_schema_pending_migrations `+n+"\n"))
		if err != nil {
			t.Fatal(err)
		}
	}
	want("0")
	// One in the middle, so the highest says nothing.
	if _, err := db.Exec(t.Context(), `DELETE FROM goose_db_version WHERE version_id = 2`); err != nil {
		t.Fatal(err)
	}
	want("1")
}

// A program of the previous version is migrated against a newer schema in a rollback.
func TestMigratingANewerSchemaChangesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := pg.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`); err != nil {
		t.Fatal(err)
	}
	if err := pg.Migrate(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := pg.CheckSchema(t.Context(), db); err != nil {
		t.Fatal(err)
	}
}

// behind makes the database look as if it had never been migrated, but for what the
// migrations would find there: it is emptied.
func behind(t *testing.T, url string) {
	t.Helper()
	db, err := pg.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
		t.Fatal(err)
	}
}
