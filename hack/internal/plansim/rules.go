package plansim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// refused says whether staff or a call asked for what cannot be done: a plan is over by then,
// or the day is too near.
func refused(err error) bool {
	k := fault.KindOf(err)
	return k == fault.Conflict || k == fault.Invalid
}

// rule is one that holds at every moment, as a query that finds what breaks it.
type rule struct{ name, query string }

const lastDay = `least(e.end_date - 1, coalesce(p.exam_date - 3, e.end_date - 1))`

var always = []rule{
	{"two tests of a plan are open at once", `
		SELECT plan_id::text FROM plan_tests WHERE state IN ('waiting', 'unfilled', 'opened') GROUP BY plan_id HAVING count(*) > 1`},
	{"a test is open or planned after the last test day", `
		SELECT p.id::text FROM plans p JOIN enrollments e ON e.id = p.enrollment_id JOIN plan_tests t ON t.plan_id = p.id
		WHERE p.status = 'active' AND e.state = 'running' AND p.next_run_at > $1::timestamptz
		  AND (t.state IN ('waiting', 'opened') AND t.opens_on > ` + lastDay + ` OR t.state = 'opened' AND t.due_on > ` + lastDay + `)`},
	{"a closed plan has a test that waits or is open", `
		SELECT p.id::text FROM plans p JOIN plan_tests t ON t.plan_id = p.id
		WHERE p.status = 'closed' AND t.state IN ('waiting', 'unfilled', 'opened') AND $1::timestamptz IS NOT NULL`},
	{"a closed plan has a drill that is not begun", `
		SELECT p.id::text FROM plans p JOIN plan_drills d ON d.plan_id = p.id JOIN assignments a ON a.id = d.assignment_id
		WHERE p.status = 'closed' AND a.status = 'pending' AND $1::timestamptz IS NOT NULL`},
	{"a plan goes on after its exam", `
		SELECT id::text FROM plans WHERE status <> 'closed' AND next_run_at > $1::timestamptz AND exam_date < ($1 AT TIME ZONE time_zone)::date`},
	{"a plan is at risk after its last test day", `
		SELECT p.id::text FROM plans p JOIN enrollments e ON e.id = p.enrollment_id
		WHERE p.at_risk AND p.next_run_at > $1::timestamptz AND ($1 AT TIME ZONE p.time_zone)::date > ` + lastDay},
	{"a plan lacks a paper beside one that its student has not seen", `
		SELECT p.id::text FROM plan_tests t JOIN plans p ON p.id = t.plan_id JOIN enrollments e ON e.id = p.enrollment_id
		WHERE t.state = 'unfilled' AND p.status = 'active' AND e.state = 'running' AND p.next_run_at > $1::timestamptz AND EXISTS (
			SELECT FROM catalog_items i WHERE i.kind = 'test' AND i.active AND i.type = p.exam
				AND (i.organization_id = p.organization_id OR i.organization_id IS NULL)
				AND NOT EXISTS (SELECT FROM assignments a WHERE a.organization_id = p.organization_id AND a.user_id = p.user_id AND a.item_id = i.id)
				AND NOT EXISTS (SELECT FROM results r WHERE r.organization_id = p.organization_id AND r.user_id = p.user_id AND r.item_id = i.id))`},
	{"a finished test is not counted, and its slot does not say why", `
		SELECT t.plan_id || '/' || t.slot FROM plan_tests t JOIN plans p ON p.id = t.plan_id JOIN assignments a ON a.id = t.assignment_id
		JOIN results r ON r.organization_id = p.organization_id AND r.ref = a.result_ref AND r.position IS NOT NULL
		WHERE $1::timestamptz IS NOT NULL AND CASE
			WHEN t.state = 'finished' THEN t.score_e4 <> r.score_e4 OR t.late <> (t.finished_on > t.due_on)
				OR t.finished_on <> (r.completed_at AT TIME ZONE p.time_zone)::date
			ELSE t.state NOT IN ('missed', 'skipped', 'withdrawn') OR a.status <> 'expired' OR (r.completed_at AT TIME ZONE p.time_zone)::date <= t.due_on END`},
	{"a baseline is open beside a whole test that is finished", `
		SELECT b.plan_id::text FROM plan_tests b JOIN plan_tests f ON f.plan_id = b.plan_id AND f.slot < b.slot
		WHERE b.state = 'opened' AND b.kind = 'baseline' AND NOT b.fixed AND f.state = 'finished' AND f.kind <> 'skills_check'
			AND $1::timestamptz IS NOT NULL`},
	{"a plan could not be decided", `SELECT id::text FROM plans WHERE failures > 0 AND $1::timestamptz IS NOT NULL`},
	{"a plan was left behind by the pass", `SELECT id::text FROM plans WHERE next_run_at <= $1`},
}

// inTheEnd are rules over everything that has happened.
var inTheEnd = []rule{
	{"a student got a paper twice", `
		SELECT user_id || '/' || item_id FROM assignments GROUP BY user_id, item_id HAVING count(*) > 1`},
	{"a test opened before the one before it was over", `
		SELECT a.plan_id || '/' || b.slot FROM plan_tests a JOIN plan_tests b ON b.plan_id = a.plan_id AND b.slot = a.slot + 1
		WHERE b.assignment_id IS NOT NULL AND a.assignment_id IS NOT NULL
		  AND (b.opens_on <= a.opens_on OR a.state = 'missed' AND b.opens_on <= a.due_on OR a.state IN ('finished', 'held') AND a.finished_on < a.due_on
			AND b.opens_on <= a.finished_on AND a.finished_on >= a.opens_on)`},
	{"a test did not open on its day in the plan's zone", `
		SELECT h.plan_id || '/' || (h.detail ->> 'slot') FROM plan_history h JOIN plans p ON p.id = h.plan_id
		WHERE h.event = 'test_opened' AND (h.at AT TIME ZONE p.time_zone)::date <> (h.detail ->> 'opens_on')::date`},
	{"the pace moved more than a level, or not from where it was", `
		SELECT plan_id::text FROM (
			SELECT plan_id, detail ->> 'from' AS was, detail ->> 'to' AS came, lag(detail ->> 'to') OVER (PARTITION BY plan_id ORDER BY id) AS before
			FROM plan_history WHERE event = 'pace') AS m
		WHERE before <> was OR (was, came) NOT IN (('light', 'standard'), ('standard', 'light'), ('standard', 'intensive'), ('intensive', 'standard'))`},
	{"a plan that was paused or closed opened a test or gave a drill", `
		SELECT o.plan_id::text FROM plan_history o, LATERAL (
			SELECT event FROM plan_history c WHERE c.plan_id = o.plan_id AND c.id < o.id AND c.event IN ('created', 'paused', 'resumed', 'closed') ORDER BY c.id DESC LIMIT 1) AS c
		WHERE o.event IN ('test_opened', 'drill') AND c.event IN ('paused', 'closed')`},
	{"a suspended or ended course gave a test", `
		SELECT a.user_id::text FROM assignments a JOIN enrollments e ON e.user_id = a.user_id WHERE a.assigned_at::date > e.grace_period_end`},
	{"an opened test was mailed other than once", mails(`type = 'plan_test_open'`, `event = 'test_opened'`)},
	{"a result was mailed to others other than once", mails(`type = 'plan_summary' AND params ->> 'was' IS NULL`, `event = 'test_finished'`)},
	{"a correction was mailed to others other than once", mails(`type = 'plan_summary' AND params ->> 'was' IS NOT NULL`, `event = 'test_remarked'`)},
	{"a student was notified of drills and due dates twice a day, though it could wait", `
		SELECT p.user_id::text FROM plans p JOIN emails m ON m.user_id = p.user_id AND m.type = 'plan_update'
		WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(m.params -> 'tasks') AS k
			WHERE ((k ->> 'due')::timestamptz AT TIME ZONE p.time_zone)::date <= (m.created_at AT TIME ZONE p.time_zone)::date)
		GROUP BY p.user_id, (m.created_at AT TIME ZONE p.time_zone)::date HAVING count(*) > 1`},
	{"a student was not notified of a drill", `
		SELECT p.user_id::text FROM plans p JOIN plan_history h ON h.plan_id = p.id AND h.event = 'drill'
		WHERE json_array_length(p.news) = 0 AND p.status <> 'closed' AND h.at > ` + mailsKept + ` AND NOT EXISTS (
			SELECT FROM emails m, jsonb_array_elements(m.params -> 'tasks') AS k
			WHERE m.user_id = p.user_id AND m.type = 'plan_update' AND k ->> 'title' = h.detail ->> 'title')
		AND NOT EXISTS (SELECT FROM plan_drills d JOIN assignments a ON a.id = d.assignment_id JOIN catalog_items i ON i.id = d.item_id
			WHERE d.plan_id = p.id AND i.title = h.detail ->> 'title' AND a.status <> 'pending')`},
	{"a plan's first test was not given at once", `
		SELECT c.plan_id::text FROM plan_history c WHERE c.event = 'created' AND c.at < (
			SELECT min(h.at) FROM plan_history h WHERE h.plan_id = c.plan_id AND h.event = 'test_opened')`},
	{"others got a link to a result", `SELECT id::text FROM emails WHERE type = 'plan_summary' AND params::text LIKE '%/results/%'`},
	{"at risk was found twice in a row", `
		SELECT plan_id::text FROM (
			SELECT plan_id, detail ->> 'at_risk' AS now, lag(detail ->> 'at_risk') OVER (PARTITION BY plan_id ORDER BY id) AS before FROM plan_history WHERE event = 'at_risk') AS r
		WHERE now = before`},
	{"a plan has no test at all", `SELECT p.id::text FROM plans p WHERE NOT EXISTS (SELECT FROM plan_history h WHERE h.plan_id = p.id AND h.event = 'test_opened')
		AND p.status = 'active'`},
}

// toStaff are rules over everything that has happened where an organization has staff.
var toStaff = []rule{
	{"a plan that fell behind was mailed other than once a change", mails(`type = 'plan_alert' AND params ->> 'reason' = 'at_risk'`, `event = 'at_risk' AND detail ->> 'at_risk' = 'true'`)},
	{"a missing paper was mailed other than once", mails(`type = 'plan_alert' AND params ->> 'reason' = 'unfilled'`, `event = 'test_unfilled'`)},
	{"a result was mailed to staff other than once", mails(`type = 'plan_result' AND params ->> 'was' IS NULL`, `event = 'test_finished'`)},
	{"a correction was mailed to staff other than once", mails(`type = 'plan_result' AND params ->> 'was' IS NOT NULL`, `event = 'test_remarked'`)},
}

// mailsKept is since when mails are there: for as long as MAIL_RETENTION_DAYS says by default, less a day.
const mailsKept = `$1::timestamptz - interval '364 days'`

// mails finds students who do not have one mail of a kind for each change since mailsKept.
func mails(which, event string) string {
	return fmt.Sprintf(`
		SELECT p.user_id::text FROM plans p
		WHERE (SELECT count(*) FROM emails m WHERE m.user_id = p.user_id AND m.created_at > %[3]s AND %[1]s)
			<> (SELECT count(*) FROM plan_history h WHERE h.plan_id = p.id AND h.at > %[3]s AND %[2]s)`, which, event, mailsKept)
}

// checkDay holds the rules of every moment; what breaks them is reported by Rules.
func (w *World) checkDay(ctx context.Context) error { return w.hold(ctx, always) }

// Rules gives an error that names every rule that was broken, at any time, and by whom.
func (w *World) Rules(ctx context.Context) error {
	if err := w.hold(ctx, slices.Concat(inTheEnd, toStaff)); err != nil {
		return err
	}
	var all []error
	for _, b := range w.broken {
		all = append(all, errors.New(b))
	}
	return errors.Join(all...)
}

// EachDay is how many rules are held after each day, and Count how many altogether.
func EachDay() int { return len(always) }

// Count is how many rules are held.
func Count() int { return len(always) + len(inTheEnd) + len(toStaff) }

func (w *World) hold(ctx context.Context, rules []rule) error {
	broken, err := hold(ctx, w.db, w.now, rules)
	w.broken = append(w.broken, broken...)
	return err
}

// Broken names the rules that are broken in a database whose time is now, and where no organization has staff.
func Broken(ctx context.Context, db *pg.DB, now time.Time) ([]string, error) {
	return hold(ctx, db, now, slices.Concat(always, inTheEnd))
}

// BrokenNow names the rules of every moment that are broken in a database, also where papers are assigned by hand besides.
func BrokenNow(ctx context.Context, db *pg.DB, now time.Time) ([]string, error) {
	return hold(ctx, db, now, always)
}

// hold names those of the rules that are broken, and by whom.
func hold(ctx context.Context, db *pg.DB, now time.Time, rules []rule) (broken []string, err error) {
	for _, r := range rules {
		var args []any
		if strings.Contains(r.query, "$1") {
			args = append(args, now)
		}
		found, err := pg.Column[string](ctx, db, r.query, args...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		if len(found) > 0 {
			broken = append(broken, fmt.Sprintf("%s, %s: %d, such as %s", now.Format("2 January"), r.name, len(found), found[0]))
		}
	}
	return broken, nil
}
