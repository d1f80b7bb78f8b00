package plan

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const planColumns = `p.id, p.organization_id, p.user_id, p.enrollment_id, p.exam, p.status, p.target_score_e4, p.exam_date,
	p.time_zone, p.pace, p.custom_interval_days, p.section_minimums, p.practice_drills, p.staff_recipients, p.extra_recipients,
	p.level, p.at_risk, p.counted_to, p.official_score_e4, p.official_sections, p.official_on, p.started_at, p.closed_at, p.failures,
	c.id, c.name, e.state, e.start_date, e.end_date, e.grace_period_end`

func selectPlans(ctx context.Context, q pg.Querier, which string, args ...any) ([]Stored, error) {
	rows, err := q.Query(ctx, `
		SELECT `+planColumns+`
		FROM plans p JOIN enrollments e ON e.id = p.enrollment_id JOIN courses c ON c.id = e.course_id
		WHERE `+which, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanPlan)
}

// lockPlans takes the row locks first and reads then: a statement that waits for a lock goes
// on with the plan as it is by then, but with the enrollment as it was when it began.
func lockPlans(ctx context.Context, tx *pg.Tx, which string, args ...any) ([]Stored, error) {
	rows, err := tx.Query(ctx, `SELECT p.id FROM plans p WHERE `+which, args...)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[id.Plan])
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return selectPlans(ctx, tx, `p.id = ANY ($1) ORDER BY p.id`, ids)
}

func scanPlan(row pgx.CollectableRow) (s Stored, err error) {
	var (
		official *decimal.Number
		sections map[string]decimal.Number
		on       clock.Date
		closed   *time.Time
	)
	s.Goal.HasTarget = true
	err = row.Scan(&s.ID, &s.Organization, &s.User, &s.Enrollment, &s.Exam, &s.Status, &s.Goal.TargetScore, &s.Goal.ExamDate,
		&s.Settings.TimeZone, &s.Settings.Pace, &s.Settings.CustomIntervalDays, &s.Settings.SectionMinimums, &s.Settings.PracticeDrills,
		&s.Settings.StaffRecipients, &s.Settings.ExtraRecipients, &s.Level, &s.AtRisk, &s.CountedTo, &official, &sections, &on,
		&s.StartedAt, &closed, &s.Failures, &s.Course, &s.CourseName, &s.State, &s.AccessStart, &s.AccessEnd, &s.GraceEnd)
	if official != nil {
		s.Official = &Official{*official, sections, on}
	}
	if closed != nil {
		s.ClosedAt = *closed
	}
	return s, err
}

func insertPlan(ctx context.Context, q pg.Querier, s Stored, now time.Time) (plan id.Plan, err error) {
	err = q.QueryRow(ctx, `
		INSERT INTO plans (organization_id, user_id, enrollment_id, exam, status, target_score_e4, exam_date, time_zone, pace,
			custom_interval_days, section_minimums, practice_drills, staff_recipients, extra_recipients, level, next_run_at, started_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16, $16) RETURNING id`,
		s.Organization, s.User, s.Enrollment, s.Exam, s.Status, s.Goal.TargetScore, s.Goal.ExamDate, s.Settings.TimeZone, s.Settings.Pace,
		s.Settings.CustomIntervalDays, minimums(s.Settings), s.Settings.PracticeDrills, texts(s.Settings.StaffRecipients),
		texts(s.Settings.ExtraRecipients), s.Level, now).Scan(&plan)
	return plan, err
}

func minimums(s Settings) map[string]decimal.Number {
	if s.SectionMinimums == nil {
		return map[string]decimal.Number{}
	}
	return s.SectionMinimums
}

func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func queueSave(b *pg.Batch, s Stored, nextRuns, now time.Time) {
	var score *decimal.Number
	var sections map[string]decimal.Number
	var on clock.Date
	if s.Official != nil {
		score, sections, on = &s.Official.Score, s.Official.Sections, s.Official.On
	}
	b.Queue(`
		UPDATE plans SET status = $3, target_score_e4 = $4, exam_date = $5, time_zone = $6, pace = $7, custom_interval_days = $8,
			section_minimums = $9, practice_drills = $10, staff_recipients = $11, extra_recipients = $12, level = $13, at_risk = $14,
			counted_to = $15, official_score_e4 = $16, official_sections = $17, official_on = $18, next_run_at = $19, failures = 0,
			closed_at = $20, updated_at = $21
		WHERE organization_id = $1 AND id = $2`,
		s.Organization, s.ID, s.Status, s.Goal.TargetScore, s.Goal.ExamDate, s.Settings.TimeZone, s.Settings.Pace,
		s.Settings.CustomIntervalDays, minimums(s.Settings), s.Settings.PracticeDrills, texts(s.Settings.StaffRecipients),
		texts(s.Settings.ExtraRecipients), s.Level, s.AtRisk, s.CountedTo, score, sections, on, moment(nextRuns), moment(s.ClosedAt), now)
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// queueReschedule moves the plan's next look alone: what most plans get on most days.
func queueReschedule(b *pg.Batch, plans []id.Plan, nextRuns []time.Time) {
	moments := make([]*time.Time, len(nextRuns))
	for i, at := range nextRuns {
		moments[i] = moment(at)
	}
	b.Queue(`
		UPDATE plans p SET next_run_at = n.next_run_at, failures = 0
		FROM unnest($1::bigint[], $2::timestamptz[]) AS n(id, next_run_at) WHERE p.id = n.id`, plans, moments)
}

func postpone(ctx context.Context, q pg.Querier, plan id.Plan, until time.Time) error {
	_, err := q.Exec(ctx, `UPDATE plans SET next_run_at = $2, failures = least(failures + 1, 1000) WHERE id = $1 AND next_run_at IS NOT NULL`, plan, until)
	return err
}

func selectSlots(ctx context.Context, q pg.Querier, plans []id.Plan) (map[id.Plan][]Slot, error) {
	rows, err := q.Query(ctx, `
		SELECT plan_id, slot, kind, section, state, opens_on, due_on, decided_on, fixed, coalesce(item_id, 0), coalesce(assignment_id, 0),
			finished_on, score_e4, sections
		FROM plan_tests WHERE plan_id = ANY ($1) ORDER BY plan_id, slot`, plans)
	if err != nil {
		return nil, err
	}
	all := make(map[id.Plan][]Slot, len(plans))
	for rows.Next() {
		var plan id.Plan
		var s Slot
		if err := rows.Scan(&plan, &s.Slot, &s.Kind, &s.Section, &s.State, &s.OpensOn, &s.DueOn, &s.DecidedOn, &s.Fixed, &s.Paper,
			&s.Assignment, &s.FinishedOn, &s.Score, &s.Sections); err != nil {
			rows.Close()
			return nil, err
		}
		all[plan] = append(all[plan], s)
	}
	return all, rows.Err()
}

func queueSlot(b *pg.Batch, plan id.Plan, s Slot) {
	b.Queue(`
		INSERT INTO plan_tests (plan_id, slot, kind, section, state, opens_on, due_on, decided_on, fixed, item_id, assignment_id,
			finished_on, score_e4, sections)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, nullif($10::bigint, 0), nullif($11::bigint, 0), $12, $13, $14)
		ON CONFLICT (plan_id, slot) DO UPDATE SET kind = excluded.kind, section = excluded.section, state = excluded.state,
			opens_on = excluded.opens_on, due_on = excluded.due_on, decided_on = excluded.decided_on, fixed = excluded.fixed,
			item_id = excluded.item_id, assignment_id = excluded.assignment_id, finished_on = excluded.finished_on,
			score_e4 = excluded.score_e4, sections = excluded.sections`,
		plan, s.Slot, s.Kind, s.Section, s.State, s.OpensOn, s.DueOn, s.DecidedOn, s.Fixed, s.Paper, s.Assignment,
		s.FinishedOn, s.Score, s.Sections)
}

func queueDropSlot(b *pg.Batch, plan id.Plan, slot int) {
	b.Queue(`DELETE FROM plan_tests WHERE plan_id = $1 AND slot = $2`, plan, slot)
}

func queueDrill(b *pg.Batch, plan id.Plan, slot int, d Test, assignment id.Assignment) {
	b.Queue(`
		INSERT INTO plan_drills (plan_id, slot, section, item_id, assignment_id, due_on) VALUES ($1, $2, $3, $4, $5, $6)`,
		plan, slot, d.Section, d.Paper, assignment, d.DueOn)
}

// selectWorks finds a final result by the assignment's reference and one that is on its
// way among the little that the student has not finished.
func selectWorks(ctx context.Context, q pg.Querier, plans []id.Plan, finished bool) (map[id.Assignment]Work, error) {
	rows, err := q.Query(ctx, `
		SELECT a.id, a.status <> 'pending' AND a.status <> 'expired' OR u.state IS NOT NULL, u.state IS NOT DISTINCT FROM 'held',
			coalesce(r.completed_at, u.completed_at, a.completed_at), r.score_e4, r.sections, coalesce(r.ref, '')
		FROM plan_tests t JOIN plans p ON p.id = t.plan_id
		JOIN assignments a ON a.id = t.assignment_id
		LEFT JOIN results r ON r.organization_id = p.organization_id AND r.ref = a.result_ref AND r.position IS NOT NULL
		LEFT JOIN LATERAL (
			SELECT w.state, w.completed_at FROM results w
			WHERE w.organization_id = p.organization_id AND w.user_id = p.user_id AND w.position IS NULL AND w.assignment_id = a.id
			LIMIT 1) u ON r.ref IS NULL
		WHERE t.plan_id = ANY ($1) AND (t.state IN ('opened', 'started', 'held') OR $2 AND t.state = 'finished')`, plans, finished)
	if err != nil {
		return nil, err
	}
	works := map[id.Assignment]Work{}
	for rows.Next() {
		var assignment id.Assignment
		var w Work
		var completed *time.Time
		if err := rows.Scan(&assignment, &w.Begun, &w.Held, &completed, &w.Score, &w.Sections, &w.Ref); err != nil {
			rows.Close()
			return nil, err
		}
		if completed != nil {
			w.CompletedAt = *completed
		}
		works[assignment] = w
	}
	return works, rows.Err()
}

// selectPapers gives the exams' active tests that everyone or one of the organizations can
// see, by id.
func selectPapers(ctx context.Context, q pg.Querier, orgs []id.Organization, exams []string) ([]listedPaper, error) {
	rows, err := q.Query(ctx, `
		SELECT coalesce(i.organization_id, 0), i.type, i.id, i.scope, coalesce(i.difficulty_e4, 0), i.difficulty_e4 IS NOT NULL
		FROM catalog_items i
		WHERE i.kind = 'test' AND i.type = ANY ($2) AND i.active AND (i.organization_id = ANY ($1) OR i.organization_id IS NULL)
		ORDER BY i.id`, orgs, exams)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[listedPaper])
}

type listedPaper struct {
	Organization id.Organization // 0: everyone's
	Exam         string
	Paper
}

// selectSeen gives what the students have started, been assigned or been given.
func selectSeen(ctx context.Context, q pg.Querier, orgs []id.Organization, users []id.User, seen func(Student, int64)) error {
	rows, err := q.Query(ctx, `
		WITH s AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS s(org, usr))
		SELECT s.org, s.usr, a.item_id FROM s JOIN assignments a ON a.organization_id = s.org AND a.user_id = s.usr
		UNION ALL SELECT s.org, s.usr, r.item_id FROM s JOIN results r ON r.organization_id = s.org AND r.user_id = s.usr AND r.position IS NOT NULL
		UNION ALL SELECT s.org, s.usr, r.item_id FROM s JOIN results r ON r.organization_id = s.org AND r.user_id = s.usr AND r.position IS NULL
		UNION ALL SELECT s.org, s.usr, t.item_id FROM s JOIN starter_tests t ON t.organization_id = s.org AND t.user_id = s.usr`, orgs, users)
	if err != nil {
		return err
	}
	var who Student
	var item int64
	_, err = pgx.ForEachRow(rows, []any{&who.Organization, &who.User, &item}, func() error { seen(who, item); return nil })
	return err
}

type queuedResult struct {
	Plan         id.Plan
	Organization id.Organization
}

// selectQueued leaves out closed plans, but for those with a test that the student may
// still finish or that is marked again.
func selectQueued(ctx context.Context, q pg.Querier, which string, args ...any) ([]queuedResult, error) {
	rows, err := q.Query(ctx, `
		SELECT id, organization_id FROM plans p WHERE `+which+` AND (status <> 'closed' OR EXISTS (
			SELECT FROM plan_tests t WHERE t.plan_id = p.id AND t.state IN ('started', 'held', 'finished'))) ORDER BY id`, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[queuedResult])
}

func selectGoals(ctx context.Context, q pg.Querier, org id.Organization, enrollments []id.Enrollment) (map[id.Enrollment]Goal, error) {
	rows, err := q.Query(ctx, `
		SELECT enrollment_id, coalesce(target_score_e4, 0), target_score_e4 IS NOT NULL, exam_date FROM plan_goals
		WHERE organization_id = $1 AND enrollment_id = ANY ($2)`, org, enrollments)
	if err != nil {
		return nil, err
	}
	goals := map[id.Enrollment]Goal{}
	var enrollment id.Enrollment
	var g Goal
	_, err = pgx.ForEachRow(rows, []any{&enrollment, &g.TargetScore, &g.HasTarget, &g.ExamDate}, func() error {
		goals[enrollment] = g
		return nil
	})
	return goals, err
}

func queueGoal(b *pg.Batch, org id.Organization, enrollment id.Enrollment, g Goal, now time.Time) {
	var target *decimal.Number
	if g.HasTarget {
		target = &g.TargetScore
	}
	b.Queue(`
		INSERT INTO plan_goals (enrollment_id, organization_id, target_score_e4, exam_date, updated_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (enrollment_id) DO UPDATE SET target_score_e4 = excluded.target_score_e4, exam_date = excluded.exam_date,
			updated_at = excluded.updated_at`, enrollment, org, target, g.ExamDate, now)
}

func selectBrowser(ctx context.Context, q pg.Querier, org id.Organization, user id.User) (on bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM plan_browsers WHERE organization_id = $1 AND user_id = $2)`, org, user).Scan(&on)
	return on, err
}

func selectBrowsers(ctx context.Context, q pg.Querier, orgs []id.Organization, users []id.User) (map[Student]bool, error) {
	rows, err := q.Query(ctx, `
		SELECT b.organization_id, b.user_id FROM unnest($1::bigint[], $2::bigint[]) AS s(org, usr)
		JOIN plan_browsers b ON b.organization_id = s.org AND b.user_id = s.usr`, orgs, users)
	if err != nil {
		return nil, err
	}
	on := map[Student]bool{}
	var who Student
	_, err = pgx.ForEachRow(rows, []any{&who.Organization, &who.User}, func() error { on[who] = true; return nil })
	return on, err
}

func queueBrowser(b *pg.Batch, org id.Organization, user id.User, on bool, now time.Time) {
	if on {
		b.Queue(`INSERT INTO plan_browsers (organization_id, user_id, since) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, org, user, now)
		return
	}
	b.Queue(`DELETE FROM plan_browsers WHERE organization_id = $1 AND user_id = $2`, org, user)
}

func settleSessions(ctx context.Context, tx *pg.Tx, org id.Organization, sessions []Session) (map[string]bool, error) {
	refs, users, begin := make([]string, len(sessions)), make([]id.User, len(sessions)), make([]bool, len(sessions))
	for i, s := range sessions {
		refs[i], users[i], begin[i] = s.Ref, s.User, s.Begins
	}
	rows, err := tx.Query(ctx, `
		WITH begun AS (
			INSERT INTO plan_browser_sessions (organization_id, ref)
			SELECT b.organization_id, s.ref FROM unnest($2::text[], $3::bigint[], $4::bool[]) AS s(ref, usr, begins)
			JOIN plan_browsers b ON b.organization_id = $1 AND b.user_id = s.usr
			WHERE s.begins
			ON CONFLICT DO NOTHING RETURNING ref
		)
		SELECT ref FROM begun UNION SELECT ref FROM plan_browser_sessions WHERE organization_id = $1 AND ref = ANY ($2)`, org, refs, users, begin)
	if err != nil {
		return nil, err
	}
	only := map[string]bool{}
	var ref string
	_, err = pgx.ForEachRow(rows, []any{&ref}, func() error { only[ref] = true; return nil })
	return only, err
}

func queueEntry(b *pg.Batch, plan id.Plan, e Entry) {
	if e.Detail == nil {
		e.Detail = map[string]any{}
	}
	b.Queue(`INSERT INTO plan_history (plan_id, at, actor, event, detail) VALUES ($1, $2, $3, $4, $5)`, plan, e.At, e.Actor, e.Event, e.Detail)
}

func selectHistory(ctx context.Context, q pg.Querier, plan id.Plan, limit int) ([]Entry, error) {
	rows, err := q.Query(ctx, `SELECT at, actor, event, detail FROM plan_history WHERE plan_id = $1 ORDER BY id DESC LIMIT $2`, plan, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
}

// selectLines narrows an organization's plans down, the latest first.
func selectLines(ctx context.Context, q pg.Querier, org id.Organization, user id.User, which string, below id.Plan, limit int) ([]Line, error) {
	rows, err := q.Query(ctx, `
		SELECT p.id, a.email, a.first_name, a.last_name, p.exam, p.status, p.at_risk, p.target_score_e4, p.exam_date,
			coalesce(t.kind, ''), coalesce(t.section, ''), coalesce(t.state, ''), t.opens_on, t.due_on
		FROM plans p JOIN accounts a ON a.id = p.user_id
		LEFT JOIN LATERAL (
			SELECT kind, section, state, opens_on, due_on FROM plan_tests WHERE plan_id = p.id ORDER BY slot DESC LIMIT 1) t ON true
		WHERE p.organization_id = $1 AND ($2 = 0 OR p.user_id = $2) AND ($4 = 0 OR p.id < $4)
		  AND CASE $3 WHEN 'at_risk' THEN p.at_risk AND p.status = 'active' WHEN '' THEN true ELSE p.status = $3 END
		ORDER BY p.id DESC LIMIT $5`, org, user, which, below, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Line, err error) {
		err = row.Scan(&l.ID, &l.Email, &l.FirstName, &l.LastName, &l.Exam, &l.Status, &l.AtRisk, &l.Target, &l.ExamDate,
			&l.Last.Kind, &l.Last.Section, &l.Last.State, &l.Last.OpensOn, &l.Last.DueOn)
		return l, err
	})
}

func selectDrills(ctx context.Context, q pg.Querier, plan id.Plan) ([]Drilled, error) {
	rows, err := q.Query(ctx, `
		SELECT d.slot, d.section, coalesce(i.title, ''), d.due_on, coalesce(a.status, '')
		FROM plan_drills d LEFT JOIN catalog_items i ON i.id = d.item_id LEFT JOIN assignments a ON a.id = d.assignment_id
		WHERE d.plan_id = $1 ORDER BY d.slot, d.section`, plan)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Drilled])
}

func selectStaff(ctx context.Context, q pg.Querier, orgs []id.Organization) (map[id.Organization][]StaffMember, error) {
	rows, err := q.Query(ctx, `
		SELECT m.organization_id, a.email, m.role FROM members m JOIN accounts a ON a.id = m.user_id
		WHERE m.organization_id = ANY ($1) AND m.status = 'active' AND m.role IN ('owner', 'admin', 'examiner') ORDER BY a.id`, orgs)
	if err != nil {
		return nil, err
	}
	staff := map[id.Organization][]StaffMember{}
	var org id.Organization
	var m StaffMember
	_, err = pgx.ForEachRow(rows, []any{&org, &m.Email, &m.Role}, func() error {
		staff[org] = append(staff[org], m)
		return nil
	})
	return staff, err
}

// selectLate counts the plans of all organizations that had to be decided by now, and those that
// were put off because they could not be, for at most 256 minutes.
func selectLate(ctx context.Context, q pg.Querier, now time.Time) (l Lag, since time.Time, err error) {
	err = q.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM plans WHERE next_run_at <= $1),
			coalesce((SELECT min(next_run_at) FROM plans WHERE next_run_at <= $1), $1),
			(SELECT count(*) FROM plans WHERE failures > 0 AND next_run_at <= $1 + interval '5 hours')`, now).Scan(&l.Due, &since, &l.Failing)
	return l, since, err
}
