package rosterimport_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// other begins a transaction of somebody else, with these statements done.
func (h *house) other(t *testing.T, statements ...string) pgx.Tx {
	t.Helper()
	tx, err := h.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	for _, sql := range statements {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return tx
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// types takes the types of the events so far, in their order.
func (h *house) types(t *testing.T) string {
	t.Helper()
	return h.text(t, `WITH gone AS (DELETE FROM webhook_events RETURNING id, type) SELECT coalesce(string_agg(type, ', ' ORDER BY id), '') FROM gone`)
}

// enroll gives a person a course whose access ends after so many days, or before the last
// so many; receivers know an active one.
func (h *house) enroll(t *testing.T, address string, days int) {
	t.Helper()
	h.exec(t, `WITH c AS (INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at) VALUES ($1, 'C', 'ielts', '2026-01-01', now(), now()) RETURNING id)
		INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, notified_status, next_day, created_at, updated_at)
		SELECT $1, a.id, c.id, '2026-01-01', $3::date + $4::integer, $3::date + $4::integer, 'active', $3::date + $4::integer + 1, now(), now() FROM c, accounts a WHERE a.email = $2`,
		h.org, address, h.now, days)
}

// A run is worked on for as long as its file is large. Whoever decides about it meanwhile is
// refused at once, and does not keep others from handing in theirs.
func TestADecisionDoesNotWaitForARunUnderWay(t *testing.T) {
	t.Parallel()
	h := open(t)
	run := h.submit(t, people("s1,ana@institute.org,Ana,Lopez,"))
	h.other(t, `SELECT FROM roster_runs FOR NO KEY UPDATE`) // the worker that plans it
	for name, decide := range map[string]func() error{
		"approve": func() error { return roster.Approve(t.Context(), h.DB, tester, h.org, run, h.now) },
		"discard": func() error { return roster.Discard(t.Context(), h.DB, tester, h.org, run, h.now) },
		"undo": func() error {
			_, err := roster.Undo(t.Context(), h.DB, tester, h.org, run, h.now)
			return err
		},
	} {
		select {
		case err := <-together(decide):
			if !fault.Has(err, "run_state") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s waits for the worker", name)
		}
	}
}

// The end of a run and the decision about another one take their locks in one order.
func TestTheEndOfAnUndoingLocksTheOrganizationFirst(t *testing.T) {
	t.Parallel()
	h := open(t)
	done := h.run(t, people("s1,ana@institute.org,Ana,Lopez,"))
	if _, err := roster.Undo(t.Context(), h.DB, tester, h.org, done.ID, h.now); err != nil {
		t.Fatal(err)
	}
	person := h.other(t, `SELECT pg_advisory_xact_lock(1050, hashtext(id::text)) FROM organizations`)
	over := make(chan struct{})
	go func() { defer close(over); h.work(t) }()
	pgtest.AwaitBlocked(t, h.DB, person) // the worker has come to the end
	if _, err := person.Exec(t.Context(), `SELECT FROM roster_runs WHERE id = $1 FOR NO KEY UPDATE NOWAIT`, done.ID); err != nil {
		t.Errorf("the worker holds the run that is taken back while it waits for its turn: %v", err)
	}
	_ = person.Rollback(t.Context())
	<-over
	if got := h.find(t, done.ID); got.State != roster.Undone {
		t.Errorf("the run is %s", got.State)
	}
}

// The first files from a source may come together. One that waits for the organization's lock has not locked the source yet:
// whoever has that lock refers to it.
func TestASubmissionLocksTheOrganizationBeforeItsSource(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.submit(t, people("s1,ana@institute.org,Ana,Lopez,"))
	run, err := roster.Begin(t.Context(), h.DB, h.org, "test", h.now)
	if err != nil {
		t.Fatal(err)
	}
	first := h.other(t, `SELECT pg_advisory_xact_lock(1050, hashtext(id::text)) FROM organizations`)
	done := together(func() error { // it saw no source when its upload began
		draft := roster.Draft{Source: roster.Source{Name: roster.DefaultSource}, Mode: roster.Additive}
		return roster.Submit(t.Context(), h.DB, tester, h.org, run, draft, h.now)
	})
	pgtest.AwaitBlocked(t, h.DB, first)
	if _, err := first.Exec(t.Context(), `SELECT FROM roster_sources FOR KEY SHARE NOWAIT`); err != nil {
		t.Errorf("it holds the source while it waits for its turn: %v", err)
	}
	_ = first.Rollback(t.Context())
	if err := <-done; err != nil {
		t.Errorf("the submission: %v", err)
	}
}

// The calendar's part is notified by whichever comes first, and then nothing is left to notify.
func TestWhoLeavesAsAccessEndsIsToldOfOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	rows := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,"}
	h.run(t, people(rows...).snapshot())
	h.types(t)                           // of those who came
	h.enroll(t, "ben@institute.org", -1) // the sweep has not come by yet
	h.run(t, people(rows[0], rows[2]).snapshot())
	if got := h.types(t); got != "enrollment.ended, student.left" {
		t.Errorf("notified: %s", got)
	}
	if got := h.text(t, `SELECT concat_ws(' ', notified_status, next_day) FROM enrollments`); got != "expired" {
		t.Errorf("what receivers know of the enrollment, and when it is looked at again: %s", got)
	}
}

// An import and a call about one person go one after the other: nobody is reported to have left
// who is being enrolled.
func TestAnImportWaitsForCallsAboutItsLeavers(t *testing.T) {
	t.Parallel()
	h := open(t)
	rows := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,"}
	h.run(t, people(rows...).snapshot())
	h.types(t) // of those who came
	call := h.other(t, `SELECT pg_advisory_xact_lock(1001, hashtext('ben@institute.org'))`)
	done := together(func() roster.Run { return h.run(t, people(rows[0], rows[2]).snapshot()) })
	pgtest.AwaitBlocked(t, h.DB, call)
	h.enroll(t, "ben@institute.org", 30)
	commit(t, call)
	want(t, <-done, roster.Applied, roster.Counts{Update: 1, Deactivate: 1, Skip: 2})
	if got := h.types(t); got != "" {
		t.Errorf("notified: %s", got)
	}
}

// A course that is bought while an undoing is under way counts as well.
func TestAnUndoingWaitsForCallsAboutItsLeavers(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := h.run(t, people("s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,"))
	call := h.other(t, `SELECT pg_advisory_xact_lock(1001, hashtext('ben@institute.org'))`)
	done := together(func() roster.Run { return h.undo(t, r.ID) })
	pgtest.AwaitBlocked(t, h.DB, call)
	h.enroll(t, "ben@institute.org", 30)
	commit(t, call)
	<-done
	if got := h.members(t); got != "ana@institute.org:Ana Lopez:inactive; ben@institute.org:Ben Okri:active" {
		t.Errorf("members: %s", got)
	}
}

// Both addresses of somebody who gets a new one are the import's until it is done.
func TestAnImportWaitsForCallsToAnAddressThatItReplaces(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("s1,ana@institute.org,Ana,Lopez,"))
	call := h.other(t, `SELECT pg_advisory_xact_lock(1001, hashtext('ana@institute.org'))`)
	done := together(func() roster.Run { return h.run(t, people("s1,ana.lopez@institute.org,Ana,Lopez,")) })
	pgtest.AwaitBlocked(t, h.DB, call)
	commit(t, call)
	want(t, <-done, roster.Applied, roster.Counts{Update: 1})
}

// However many workers import, PostgreSQL's room for locks is not filled with theirs.
func TestTwoBatchesAtOnceTakeTheLocksOfTheirPeople(t *testing.T) {
	t.Parallel()
	h := open(t)
	others := h.other(t, `SELECT pg_advisory_xact_lock(1051, hashtext(place)) FROM unnest(ARRAY['0', '1']) AS place`)
	want(t, h.run(t, people("s1,ana@institute.org,Ana,Lopez,")), roster.Applied, roster.Counts{Create: 1}) // a small one need not wait
	done := together(func() roster.Run { return h.run(t, people(many(100)...)) })
	pgtest.AwaitBlocked(t, h.DB, others)
	if held := h.text(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1001
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); held != "0" {
		t.Errorf("a third batch holds %s locks of addresses", held)
	}
	commit(t, others)
	want(t, <-done, roster.Applied, roster.Counts{Create: 99, Skip: 1})
}
