package rosterimport_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// many are rows of so many people.
func many(n int) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("s%d,s%d@institute.org,Given,Family,", i, i)
	}
	return rows
}

// Turns go round between the runs that ask for them, whoever has had more before.
func TestTurnsGoRoundBetweenRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := rosterimport.NewTurns(1)
		giveBack, err := turns.HoldTurns(t.Context(), 1)
		check.NoError(check.Now(t), err, "%v", err)
		var order []string
		for _, name := range []string{"a", "b", "c"} {
			go turns.Work(t.Context(), 4, func() { order = append(order, name) })
			synctest.Wait() // it has asked for its turn
		}
		giveBack()
		synctest.Wait()
		got := strings.Join(order, "")
		check.Equal(t, "the order of batches", got, "abcabcabcabc", "%s", got)
	})
}

// While others have all the turns, a file of one line is imported, and a large one waits.
func TestASmallFilePassesLargeOnesBy(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Turns = rosterimport.NewTurns(1)
	giveBack, err := h.Turns.HoldTurns(t.Context(), 1) // as a large one does in its batch
	check.NoError(check.Now(t), err, "%v", err)
	houses, done := []*house{}, make(chan error, 3)
	for n := range 3 {
		other := *h
		other.org = h.organization(t, fmt.Sprintf("large-%d", n))
		houses = append(houses, &other)
		rows := strings.Split(strings.ReplaceAll(strings.Join(many(5000), "\n"), "@institute", fmt.Sprintf("@institute-%d", n)), "\n")
		other.submit(t, people(rows...))
	}
	for _, o := range h.claim(t) {
		go func() { done <- h.Run(t.Context(), task.Outbox{Task: o.ID, Claim: o.Claim}) }()
	}
	want(t, h.run(t, people("s1,ana@institute.org,Ana,Lopez,").with("s1,c1,One")), roster.Applied,
		roster.Counts{Create: 1, ClassesCreated: 1, SeatsAdded: 1})
	states := h.text(t, `SELECT string_agg(state, ' ') FROM roster_runs WHERE organization_id <> $1`, h.org)
	check.Equal(t, "the large runs", states, "queued queued queued", "while all turns are taken, the large runs are %s", states)
	giveBack()
	for range houses {
		err := <-done
		check.NoError(t, err, "%v", err)
	}
	states = h.text(t, `SELECT string_agg(state, ' ') FROM roster_runs WHERE organization_id <> $1`, h.org)
	check.Equal(t, "the large runs", states, "applied applied applied", "in the end the large runs are %s", states)
}

// A run that fails is begun again after a short pause, which grows, and not at the end of its lease.
func TestAFailedRunIsBegunAgainSoon(t *testing.T) {
	t.Parallel()
	h := open(t)
	run := h.submit(t, people("s1,ana@institute.org,Ana,Lopez,"))
	h.exec(t, `ALTER TABLE roster_identities ADD CONSTRAINT nobody CHECK (external_id = '')`)
	var pauses []time.Duration
	for range 4 {
		at := h.now
		jobs := h.claim(t)
		for len(jobs) == 0 {
			h.now = h.now.Add(50 * time.Millisecond)
			jobs = h.claim(t)
		}
		pauses = append(pauses, h.now.Sub(at))
		if err := h.Run(t.Context(), task.Outbox{Task: jobs[0].ID, Claim: jobs[0].Claim}); err == nil {
			t.Fatal("the run did not fail")
		}
	}
	soon := []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, time.Second}
	check.True(t, "pauses", slices.Equal(pauses, soon), "the pauses are %v, want %v", pauses, soon)
	h.exec(t, `ALTER TABLE roster_identities DROP CONSTRAINT nobody`)
	h.now = h.now.Add(2 * time.Second)
	h.work(t)
	want(t, h.find(t, run), roster.Applied, roster.Counts{Create: 1})
}

// A worker that stops hands its run to another one at once.
func TestAStoppingWorkerHandsItsRunOn(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.submit(t, people("s1,ana@institute.org,Ana,Lopez,"))
	job := h.claim(t)[0]
	if err := h.breakOff(t, job, 2); err == nil {
		t.Fatal("the run did not break off")
	}
	if next := h.claim(t); len(next) != 1 {
		t.Errorf("%d runs are due at once, want 1", len(next))
	}
}

// A transaction that keeps one address does not keep the other people of its batch for longer than
// an import waits for it.
func TestABatchGivesWayToAnAddressThatIsKept(t *testing.T) {
	t.Parallel()
	h := open(t)
	call := h.other(t, `SELECT pg_advisory_xact_lock(1001, hashtext('ben@institute.org'))`)
	run := h.submit(t, people("s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,"))
	job := h.claim(t)[0]
	if err := h.Run(t.Context(), task.Outbox{Task: job.ID, Claim: job.Claim}); err == nil {
		t.Fatal("the run did not give way")
	}
	commit(t, call)
	h.now = h.now.Add(time.Second)
	h.work(t)
	want(t, h.find(t, run), roster.Applied, roster.Counts{Create: 2})
}

// A source is new to the planner until the next ANALYZE, which expects one place of it then.
func TestPlacesOfANewSourceAreNotComparedOneByOne(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.snapshots(t)
	const n, classes = 4000, 4000
	seats := make([]string, n)
	for i := range seats {
		seats[i] = fmt.Sprintf("s%d,c%d,Class", i, i%classes)
	}
	// Other sources have so many classes and places that this one's are none in the statistics.
	h.exec(t, `INSERT INTO roster_sources (organization_id, name, created_at, updated_at)
		SELECT $1, 'other ' || n, now(), now() FROM generate_series(1, 200) AS n`, h.org)
	h.exec(t, `INSERT INTO roster_classes (organization_id, source_id, external_id, name, updated_at)
		SELECT $1, s.id, 'c' || n, 'Class', now() FROM roster_sources s, generate_series(1, 100) AS n`, h.org)
	h.exec(t, `INSERT INTO roster_identities (source_id, organization_id, external_id, user_id, present)
		SELECT s.id, s.organization_id, 's' || n, -n, true FROM roster_sources s, generate_series(1, 500) AS n WHERE s.name <> 'default' AND s.organization_id = $1`, h.org)
	h.exec(t, `INSERT INTO roster_class_members (class_id, user_id, active, updated_at)
		SELECT k.id, -n, true, now() FROM roster_classes k, generate_series(1, 5) AS n WHERE k.organization_id = $1`, h.org)
	for _, table := range []string{"roster_sources", "roster_classes", "roster_identities", "roster_class_members"} {
		h.exec(t, `ANALYZE `+table)
	}
	u := people(many(n)...).with(seats...).snapshot()
	u.source = "new"
	if _, err := roster.PutSource(t.Context(), h.DB, olive, h.org, "new", func(s *roster.Settings) { s.AuthoritativeEnabled = true }, h.now); err != nil {
		t.Fatal(err)
	}
	want(t, h.run(t, u), roster.Applied, roster.Counts{Create: n, ClassesCreated: classes, SeatsAdded: n})
	took := time.Hour // half a second, and half a minute for each person in each class
	for try := 0; try < 3 && took >= 10*time.Second; try++ {
		began := time.Now()
		want(t, h.run(t, u), roster.Applied, roster.Counts{Skip: n})
		took = time.Since(began)
	}
	check.True(t, "the time of the same file again", took < 10*time.Second, "the same file again took %s", took)
}
