package rosterimport_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

func (h *house) do(t testing.TB, job outbox.Task) {
	t.Helper()
	if err := h.Run(t.Context(), task.Outbox{Task: job.ID, Claim: job.Claim}); err != nil {
		t.Fatal(err)
	}
}

// A run that breaks off wherever it looks at the clock (before and after planning, and
// within every batch), and is begun again, ends as one that went through.
func TestARunThatBreaksOffAnywhereConverges(t *testing.T) {
	t.Parallel()
	var rows, seats []string
	for i := range 1200 {
		rows = append(rows, fmt.Sprintf("s%d,s%d@institute.org,Given,Family,", i, i))
		seats = append(seats, fmt.Sprintf("s%d,c%d,Class", i, i%7))
	}
	h := open(t)
	h.exec(t, `INSERT INTO webhook_endpoints (organization_id, slot, url, created_at, updated_at) VALUES ($1, 1, 'https://receiver.test/', now(), now())`, h.org)
	run := h.submit(t, people(rows...).with(seats...))
	breaks := 0
	for after := 1; ; after++ {
		job := h.claim(t)
		if len(job) != 1 {
			t.Fatalf("pending: %+v", job)
		}
		err := h.breakOff(t, job[0], after)
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		breaks++
		h.now = h.now.Add(2 * time.Hour)
	}
	if breaks < 5 {
		t.Errorf("only %d breaks were tried", breaks)
	}
	want(t, h.find(t, run), roster.Applied, roster.Counts{Create: 1200, ClassesCreated: 7, SeatsAdded: 1200})
	if got := h.text(t, `SELECT concat_ws(' ', (SELECT count(*) FROM members WHERE organization_id = $1), (SELECT count(*) FROM roster_identities),
		(SELECT count(*) FROM roster_class_members WHERE active), (SELECT count(*) FROM webhook_events), (SELECT count(*) FROM outbox_tasks),
		(SELECT count(*) FROM roster_chunks))`, h.org); got != "1200 1200 1200 1200 0 0" {
		t.Errorf("members, identities, seats, events, pending, chunks: %s", got)
	}
	want(t, h.run(t, people(rows...).with(seats...)), roster.Applied, roster.Counts{Skip: 1200})
}

// breakOff works on the run until the clock is looked at for the given time.
func (h *house) breakOff(t testing.TB, job outbox.Task, after int) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	importer, snapshots := *h.Importer, 0
	importer.Clock = func() time.Time {
		if snapshots++; snapshots == after {
			cancel()
		}
		return h.now
	}
	importer.Lease = time.Hour // nothing else looks at the clock
	return importer.Run(ctx, task.Outbox{Task: job.ID, Claim: job.Claim})
}

func TestWhoHasLostTheClaimWritesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	run := h.submit(t, people("s1,ana@institute.org,Ana,Lopez,"))
	old := h.claim(t)[0]
	h.now = h.now.Add(2 * time.Minute)
	current := h.claim(t)[0]
	h.do(t, old)
	if got := h.members(t); got != "" {
		t.Fatalf("members: %s", got)
	}
	h.do(t, current)
	want(t, h.find(t, run), roster.Applied, roster.Counts{Create: 1})
}
