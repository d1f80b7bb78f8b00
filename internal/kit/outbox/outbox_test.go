package outbox_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

func add(t *testing.T, db *pg.DB, subject int64, runAt time.Time) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		return outbox.Add(t.Context(), tx, task.EmailSend, subject, 0, runAt)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAClaimIsALeaseWithAFence(t *testing.T) {
	t.Parallel()
	db, now := pgtest.New(t), time.Now()
	add(t, db, 7, now)
	add(t, db, 8, now.Add(time.Hour))
	first, err := outbox.Claim(t.Context(), db, task.EmailSend, now, time.Minute, 10)
	check.NoError(check.Now(t), err, "claim = %+v, %v; want the due task alone", first, err)
	check.Equal(check.Now(t), "number of tasks", len(first), 1, "claim = %+v, %v; want the due task alone", first, err)
	check.Equal(check.Now(t), "the first task's subject", first[0].Subject, 7, "claim = %+v, %v; want the due task alone", first, err)
	check.Equal(check.Now(t), "the first task's claim", first[0].Claim, 1, "claim = %+v, %v; want the due task alone", first, err)
	if again, _ := outbox.Claim(t.Context(), db, task.EmailSend, now.Add(time.Second), time.Minute, 10); len(again) != 0 {
		t.Fatalf("claimed twice within the lease: %+v", again)
	}
	second, err := outbox.Claim(t.Context(), db, task.EmailSend, now.Add(2*time.Minute), time.Minute, 10)
	check.NoError(check.Now(t), err, "after the lease: %+v, %v", second, err)
	check.Equal(check.Now(t), "number of tasks", len(second), 1, "after the lease: %+v, %v", second, err)
	check.Equal(check.Now(t), "the first task's claim", second[0].Claim, 2, "after the lease: %+v, %v", second, err)
	old, current := task.Outbox{Task: first[0].ID, Claim: 1}, task.Outbox{Task: first[0].ID, Claim: 2}
	if err := outbox.Done(t.Context(), db, old); !errors.Is(err, outbox.ErrLost) {
		t.Fatalf("the lost claim finished the task: %v", err)
	}
	if _, err := outbox.Load(t.Context(), db, old); !errors.Is(err, outbox.ErrLost) {
		t.Fatalf("the lost claim loads the task: %v", err)
	}
	if _, err := outbox.Hold(t.Context(), db, old, now.Add(time.Hour)); !errors.Is(err, outbox.ErrLost) {
		t.Fatalf("the lost claim holds the task: %v", err)
	}
	if held, err := outbox.Hold(t.Context(), db, current, now.Add(time.Hour)); check.NoError(check.Now(t), err, "held = %+v, %v", held, err) {
		check.Equal(check.Now(t), "held", held, second[0], "held = %+v, %v", held, err)
	}
	if none, _ := outbox.Claim(t.Context(), db, task.EmailSend, now.Add(59*time.Minute), time.Minute, 1); len(none) != 0 {
		t.Fatalf("claimed while it was held: %+v", none)
	}
	if err := outbox.Postpone(t.Context(), db, current, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := outbox.Done(t.Context(), db, current); err != nil {
		t.Fatal(err)
	}
}

func TestReleaseMakesTheClaimsDueAgainThatNobodyHolds(t *testing.T) {
	t.Parallel()
	db, now := pgtest.New(t), time.Now()
	for subject := range int64(4) {
		add(t, db, subject, now)
	}
	if other, err := outbox.Claim(t.Context(), db, task.WebhookSkip, now, time.Hour, 10); check.NoError(check.Now(t), err, "claimed another kind: %+v, %v", other, err) {
		check.Equal(check.Now(t), "number of tasks", len(other), 0, "claimed another kind: %+v, %v", other, err)
	}
	got, err := outbox.Claim(t.Context(), db, task.EmailSend, now, time.Hour, 10)
	check.NoError(check.Now(t), err, "claim = %+v, %v", got, err)
	check.Equal(check.Now(t), "number of tasks", len(got), 4, "claim = %+v, %v", got, err)
	refs := []task.Outbox{{Task: got[0].ID, Claim: 1}, {Task: got[1].ID, Claim: 1}, {Task: got[2].ID, Claim: 9}, {Task: got[3].ID, Claim: 1}}
	if _, err := outbox.Hold(t.Context(), db, refs[3], now.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := outbox.Release(t.Context(), db, now, time.Hour, refs); err != nil {
		t.Fatal(err)
	}
	again, err := outbox.Claim(t.Context(), db, task.EmailSend, now, time.Hour, 10)
	check.NoError(check.Now(t), err, "after the release: %+v, %v", again, err)
	check.Equal(check.Now(t), "number of tasks", len(again), 2, "after the release: %+v, %v", again, err)
	check.Equal(check.Now(t), "the first task's claim", again[0].Claim, 2, "after the release: %+v, %v", again, err)
}

func TestParallelClaimsShareNothing(t *testing.T) {
	t.Parallel()
	db, now := pgtest.New(t), time.Now()
	const tasks = 200
	for i := range tasks {
		add(t, db, int64(i), now)
	}
	var mu sync.Mutex
	seen := map[int64]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				got, err := outbox.Claim(t.Context(), db, task.EmailSend, now, time.Hour, 7)
				if err != nil {
					t.Error(err)
				}
				if len(got) == 0 {
					return
				}
				mu.Lock()
				for _, g := range got {
					seen[g.Subject]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// A claimer that saw only rows locked by others gave up early: sweep the rest.
	rest, err := outbox.Claim(t.Context(), db, task.EmailSend, now, time.Hour, tasks)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range rest {
		seen[g.Subject]++
	}
	for subject, n := range seen {
		if n != 1 {
			t.Errorf("task %d was handed out %d times", subject, n)
		}
	}
	if len(seen) != tasks {
		t.Errorf("%d of %d tasks were handed out", len(seen), tasks)
	}
}

func TestMeasureCountsWhatIsDue(t *testing.T) {
	t.Parallel()
	db, now := pgtest.New(t), time.Now()
	add(t, db, 1, now.Add(-time.Minute))
	add(t, db, 2, now.Add(time.Minute))
	lags, err := outbox.Measure(t.Context(), db, now)
	if err != nil {
		t.Fatal(err)
	}
	if l := lags[task.EmailSend]; check.Equal(check.Now(t), "l.Due", l.Due, 1, "lag = %+v", l) &&
		check.True(check.Now(t), "the oldest has waited about a minute", l.Oldest >= 59*time.Second, "lag = %+v", l) {
		check.True(check.Now(t), "the oldest has waited a minute at most", l.Oldest <= 61*time.Second, "lag = %+v", l)
	}
}
