package pg_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long anything that is waited for may take. It is no measure of speed.
const limit = time.Minute

func TestInTxRollsBackOnAFault(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	boom := errors.New("boom")
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		if _, err := tx.Exec(t.Context(), `UPDATE course_types SET active = false`); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatalf("err = %v", err)
	}
	var active int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM course_types WHERE active`).Scan(&active); check.NoError(check.Now(t), err, "%d course types are active, want all 14 (%v)", active, err) {
		check.Equal(check.Now(t), "active", active, 14, "%d course types are active, want all 14 (%v)", active, err)
	}
}

// Two transactions that lock each other out are both carried out: PostgreSQL ends one, which runs again.
func TestATransactionRunsAgainAfterADeadlock(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var runs atomic.Int64
	var first sync.WaitGroup // until each has its first lock
	first.Add(2)
	lock := func(keys ...string) error {
		arrive := sync.OnceFunc(func() { first.Done(); first.Wait() })
		return db.InTx(t.Context(), func(tx *pg.Tx) error {
			runs.Add(1)
			if err := pg.Lock(t.Context(), tx, pg.LockCatalog, keys[0]); err != nil {
				return err
			}
			arrive()
			return pg.Lock(t.Context(), tx, pg.LockCatalog, keys[1])
		})
	}
	other := make(chan error, 1)
	go func() { other <- lock("b", "a") }()
	for who, err := range map[string]error{"the one": lock("a", "b"), "the other": <-other} {
		check.NoError(t, err, "%s: %v", who, err)
	}
	check.Equal(t, "runs", runs.Load(), 3, "two transactions, one of them twice")
}

// The size of a pool is what its address says, and on a machine of any size what the manual says.
func TestThePoolIsOfTheSizeThatIsDocumented(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(pgtest.New(t).Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]int32{"": 16, "3": 3} {
		query := address.Query()
		query.Del("pool_max_conns")
		if given != "" {
			query.Set("pool_max_conns", given)
		}
		address.RawQuery = query.Encode()
		db, err := pg.Open(t.Context(), address.String())
		if err != nil {
			t.Fatal(err)
		}
		if got := db.Config().MaxConns; got != want {
			t.Errorf("with %q the pool holds %d", address.RawQuery, got)
		}
		db.Close()
	}
}

func TestWakeArrivesOnlyAfterTheCommit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	notes := make(chan wake.Notification, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		db.Wakes.Subscribe(ctx, func(n wake.Notification) { notes <- n }, "test_channel")
	}()
	defer func() { cancel(); <-done }()
	if n := <-notes; !n.Reset {
		t.Fatalf("first notification = %+v, want a reset", n)
	}
	rolledBack := errors.New("rolled back")
	if err := db.InTx(ctx, func(tx *pg.Tx) error { tx.Wake("test_channel", "ghost"); return rolledBack }); !errors.Is(err, rolledBack) {
		t.Fatal(err)
	}
	second, err := db.Apart(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for i, pool := range []*pg.DB{db, second} {
		payload := []string{"real", "of a second pool"}[i]
		err := pool.InTx(ctx, func(tx *pg.Tx) error {
			var b pg.Batch
			b.Queue(`SELECT 1`)
			b.Wake("test_channel", payload)
			return b.Commit(ctx, tx)
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case n := <-notes:
			if n.Payload != payload {
				t.Fatalf("got %+v, want the committed one alone", n)
			}
		case <-time.After(limit):
			t.Fatal("no wake-up")
		}
	}
}

func TestMigrateTwiceAndCheckSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	if err := pg.Migrate(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	db, err := pg.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := pg.CheckSchema(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `DELETE FROM goose_db_version WHERE version_id = $1`, pg.RequiredVersion()); err != nil {
		t.Fatal(err)
	}
	if err := pg.CheckSchema(t.Context(), db); err == nil {
		t.Fatal("an older schema is accepted")
	}
	if _, err := db.Exec(t.Context(), `DROP TABLE goose_db_version`); err != nil {
		t.Fatal(err)
	}
	if err := pg.CheckSchema(t.Context(), db); err == nil {
		t.Fatal("an empty database is accepted")
	}
}

func TestUUID7IsOrderedByTimeAndPartitioned(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var version string
	var within, partitioned bool
	err := db.QueryRow(t.Context(), `
		WITH u AS (SELECT uuid7() AS v)
		SELECT substr(v::text, 15, 1), v >= uuid7_floor(now() - interval '1 minute') AND v < uuid7_floor(now() + interval '1 minute'),
		       to_regclass('webhook_journal_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NOT NULL
		FROM u`).Scan(&version, &within, &partitioned)
	check.NoError(check.Now(t), err, "version %s, within %v, partitioned %v, %v", version, within, partitioned, err)
	check.Equal(check.Now(t), "version", version, "7", "version %s, within %v, partitioned %v, %v", version, within, partitioned, err)
	check.True(check.Now(t), "within", within, "version %s, within %v, partitioned %v, %v", version, within, partitioned, err)
	check.True(check.Now(t), "partitioned", partitioned, "version %s, within %v, partitioned %v, %v", version, within, partitioned, err)
}
