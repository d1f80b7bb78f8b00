package retention_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/retention"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// Each kind loses what is too old, under the worker's role and in more than one batch, and nothing else. Reference: limits#retention.
func TestWhatIsTooOldIsDropped(t *testing.T) {
	t.Parallel()
	f := flowtest.New(t)
	north, now := f.Organization("north"), time.Now()
	user := north.Student("ana@institute.org")
	enrollment := north.Enroll(user, north.Course("ielts", "Course"), "2026-01-01", "2026-07-01")
	const old, young = 2500, 7
	at := `now() - CASE WHEN i <= 2500 THEN interval '3 years' ELSE interval '1 day' END FROM generate_series(1, 2507) AS i`
	f.Exec(`INSERT INTO emails (organization_id, user_id, type, recipient, reference, params, status, updated_at, created_at)
		SELECT $1, $2, 'welcome', '', gen_random_uuid(), '{}', CASE WHEN i = 1 THEN 'queued' ELSE 'sent' END, now(), `+at, north.ID, user)
	f.Exec(`INSERT INTO audit_log (organization_id, actor_kind, actor_name, action, target, created_at) SELECT $1, 'schedule', '', '', '', `+at, north.ID)
	f.Exec(`INSERT INTO roster_runs (organization_id, state, requested_by, updated_at, created_at) SELECT $1, CASE WHEN i = 1 THEN 'held' ELSE 'applied' END, '', now(), `+at, north.ID)
	f.Exec(`INSERT INTO roster_runs (organization_id, state, undoes, requested_by, updated_at, created_at) SELECT $1, 'applied', min(id) + 5, '', now(), now() FROM roster_runs`, north.ID)
	f.Exec(`INSERT INTO plans (organization_id, user_id, enrollment_id, exam, status, target_score_e4, time_zone, pace, practice_drills, staff_recipients, level, started_at, closed_at, updated_at)
		SELECT $1, $2, $3, 'ielts' || i, s, 1, 'UTC', 'auto', true, '{}', 'light', now(), at, now()
		FROM (VALUES (1, 'closed', now() - interval '3 years'), (2, 'closed', now()), (3, 'active', NULL)) AS v(i, s, at)`, north.ID, user, enrollment)
	f.Exec(`INSERT INTO plan_history (plan_id, actor, event, detail, at) SELECT p.id, '', '', '{}', now() - interval '4 years' FROM plans p, generate_series(1, 1200)`)
	worker := pgtest.OpenAs(t, f.Database, "worker")
	check.NoError(check.Now(t), retention.Drop(t.Context(), worker, retention.Days{}, now), "keeping all")
	check.Equal(t, "mails", f.Count("emails"), old+young, "are kept for ever")
	for range 2 { // it can be repeated
		check.NoError(check.Now(t), retention.Drop(t.Context(), worker, retention.Days{Mails: 365, Plans: 365, Rosters: 365, Audit: 366}, now), "dropping")
	}
	check.Equal(t, "mails", f.Count("emails"), young+1, "the young ones, and one that waits")
	check.Equal(t, "entries", f.Count("audit_log"), young, "of the audit log")
	check.Equal(t, "runs", f.Count("roster_runs"), young+3, "the young ones, one that is held, one that was taken back, and what took it back")
	check.Equal(t, "lines of history", f.Count("plan_history"), 2*1200, "of plans that are not closed for long")
	check.Equal(t, "plans", f.Count("plans WHERE history_dropped"), 1, "that are not looked at again")
	check.True(t, "it fails", retention.Drop(t.Context(), worker, retention.Days{Audit: 300}, now) != nil, "an audit log of less than a year")
	_, err := worker.Exec(t.Context(), `DELETE FROM audit_log`)
	check.True(t, "the worker itself may not", err != nil, "delete entries")
}
