package pg_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// newProbe is a probe over a pool whose connections are all taken; what is given asks beside it.
func newProbe(t *testing.T) (probe *pg.Probe, db, beside *pg.DB) {
	t.Helper()
	db = pgtest.New(t)
	beside, err := pg.Open(t.Context(), db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(beside.Close)
	for range db.Config().MaxConns {
		conn, err := db.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
	}
	probe = pg.NewProbe(db)
	t.Cleanup(func() { probe.Close(context.WithoutCancel(t.Context())) })
	return probe, db, beside
}

func TestAProbeNeedsNoConnectionOfThePool(t *testing.T) {
	t.Parallel()
	probe, db, _ := newProbe(t)
	for range 2 {
		if err := probe.Ping(t.Context()); err != nil {
			t.Fatalf("with all %d connections taken: %v", db.Stat().AcquiredConns(), err)
		}
	}
}

func TestAProbeKnowsThatPostgreSQLFails(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var cut func()
	pool, err := pg.Open(t.Context(), address(t, db, func(u *url.URL) { u.Host, cut = relay(t, u.Host) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	probe := pg.NewProbe(pool)
	t.Cleanup(func() { probe.Close(context.WithoutCancel(t.Context())) })
	ctx, cancel := context.WithCancel(t.Context())
	answered, watched := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(watched)
		probe.Watch(ctx, func() { answered <- struct{}{} })
	}()
	<-answered
	check.False(t, "it fails", probe.Failing(), "when it answers")
	cut()
	for end := time.Now().Add(time.Minute); !probe.Failing(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing notices that it does not answer")
		}
	}
	cancel()
	<-watched
}

func TestAProbeConnectsAgain(t *testing.T) {
	t.Parallel()
	probe, _, beside := newProbe(t)
	ids := func() (all []int32) {
		t.Helper()
		rows, err := beside.Query(t.Context(), `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_is_in_recovery%' AND pid <> pg_backend_pid()`)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var one int32
			if err := rows.Scan(&one); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		return all
	}
	known := map[int32]bool{}
	for _, id := range ids() { // of the pools
		known[id] = true
	}
	for round := range 3 {
		for range 2 { // the second is over the connection of the first
			if err := probe.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var own []int32
		for _, id := range ids() {
			if !known[id] {
				own = append(own, id)
			}
		}
		if len(own) != 1 {
			t.Fatalf("round %d: %d connections ask", round, len(own))
		}
		known[own[0]] = true
		if _, err := beside.Exec(t.Context(), `SELECT pg_terminate_backend($1, 30000)`, own[0]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProbeTellsOfPostgreSQLsLoss(t *testing.T) {
	t.Parallel()
	probe, _, beside := newProbe(t)
	if err := probe.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	only, err := beside.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer only.Release()
	open := func(yes bool) {
		t.Helper()
		_, err := only.Exec(t.Context(), `UPDATE pg_database SET datallowconn = $1 WHERE datname = current_database()`, yes)
		if err == nil {
			_, err = only.Exec(t.Context(), `
				SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open(false)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // it waits for the pool in the end
	defer cancel()
	if err := probe.Ping(ctx); err == nil {
		t.Fatal("it answers though nobody can connect")
	}
	open(true)
	if err := probe.Ping(t.Context()); err != nil {
		t.Errorf("it does not answer again: %v", err)
	}
}

// Whoever waits for PostgreSQL learns of its first answer and of each return, however short it was away.
func TestAProbeTellsOfPostgreSQLsReturn(t *testing.T) {
	t.Parallel()
	probe, _, beside := newProbe(t)
	ctx, cancel := context.WithCancel(t.Context())
	answers, done := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(done)
		probe.Watch(ctx, func() { answers <- struct{}{} })
	}()
	defer func() { cancel(); <-done }()
	await := func() {
		t.Helper()
		select {
		case <-answers:
		case <-time.After(limit):
			t.Fatal("it says nothing")
		}
	}
	await()
	if _, err := beside.Exec(ctx, `
		SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	await()
	if len(answers) > 0 {
		t.Error("one return was told more than once")
	}
}
