package console_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// An import that is under way is followed by the page itself.
func TestARunningImportIsFollowed(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t)
	path := s.hold(t)
	s.enter(b, "olive")
	s.exec(t, `UPDATE roster_runs SET state = 'applying', people_done = 3 WHERE state = 'held'`)
	b.Visit(s.URL() + "/console/north/roster-runs/")
	b.AwaitText("3 of 8 changes")
	b.Visit(s.URL() + path)
	b.AwaitText("3 of 8 changes")
	b.Accessible("a running import")
	b.Screenshot("roster-running")
	s.exec(t, `UPDATE roster_runs SET people_done = 5 WHERE state = 'applying'`)
	b.AwaitText("5 of 8 changes")
	s.exec(t, `UPDATE roster_runs SET state = 'applied', people_done = 8 WHERE state = 'applying'`)
	b.Await("#undo")
}

// A recovery that is under way is followed by the page itself, from its beginning to its end.
func TestARunningRecoveryIsFollowed(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t)
	const page = "/console/north/webhooks/1/deliveries/"
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	s.record(t, 250) // more than one step puts back
	s.exec(t, `WITH gone AS (DELETE FROM webhook_queue RETURNING *)
		INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, status, started_at)
		SELECT organization_id, endpoint_id, id, 1, event_id, 'exhausted', now() FROM gone`)
	s.enter(b, "olive")
	b.Visit(s.URL() + page)
	b.Fill("#since", "2026-01-01T09:00")
	b.Fill("#until", "2126-01-01T09:00")
	b.Press("Recover")
	b.AwaitText("0 of 250 events put back")
	step := s.recovery(t)
	step()
	b.AwaitText("200 of 250 events put back, 200 of them waiting to leave")
	b.Accessible("a running recovery")
	b.Screenshot("recovery-running")
	s.exec(t, `DELETE FROM webhook_queue WHERE id IN (SELECT id FROM webhook_queue WHERE in_order ORDER BY id LIMIT 120)`)
	b.AwaitText("200 of 250 events put back, 80 of them waiting to leave")
	s.exec(t, `DELETE FROM webhook_queue WHERE in_order`)
	step()
	b.AwaitText("250 of 250, 50 waiting") // in the table of those that were
	if running, form := b.Count("[data-live]"), b.Count("#since"); check.Equal(t, "running", running, 0, "%d recoveries are shown as running, %d forms are there for the next one", running, form) {
		check.Equal(t, "form", form, 1, "%d recoveries are shown as running, %d forms are there for the next one", running, form)
	}
	b.Screenshot("recovery-done")
}

// record has n events happen.
func (s *site) record(t *testing.T, n int) {
	t.Helper()
	events := make([]webhook.Event, n)
	for i := range events {
		events[i] = webhook.Event{Type: webhook.StudentJoined, User: 1, Data: struct{}{}}
	}
	if err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error { return webhook.Record(t.Context(), tx, s.north.ID, s.Now(), events...) }); err != nil {
		t.Fatal(err)
	}
}

// recovery claims the recovery that is pending, and gives what does a step of it.
func (s *site) recovery(t *testing.T) (step func()) {
	t.Helper()
	claimed, err := outbox.Claim(t.Context(), s.DB, task.WebhookRecover, s.Now(), time.Minute, 1)
	check.NoError(check.Now(t), err, "%d recoveries are pending (%v)", len(claimed), err)
	check.Equal(check.Now(t), "number of claimed tasks", len(claimed), 1, "%d recoveries are pending (%v)", len(claimed), err)
	return func() {
		t.Helper()
		if err := journal.Step(t.Context(), s.DB, task.Outbox{Task: claimed[0].ID, Claim: claimed[0].Claim}, s.Now()); err != nil {
			t.Fatal(err)
		}
	}
}
