package plan

import (
	"context"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// planRow is a plan as its columns are.
type planRow struct {
	Stored
	OfficialScore    *decimal.Number
	OfficialSections map[string]decimal.Number
	OfficialOn       clock.Date
}

func (r planRow) stored() Stored {
	if r.OfficialScore != nil {
		r.Official = &Official{*r.OfficialScore, r.OfficialSections, r.OfficialOn}
	}
	return r.Stored
}

func selectPlans(ctx context.Context, q pg.Querier, which string, args ...any) ([]Stored, error) {
	rows, err := q.Query(ctx, `
		SELECT
			p.id,
			p.organization_id AS organization,
			p.user_id AS "user",
			p.enrollment_id AS enrollment,
			p.exam,
			p.status,
			true AS has_target,
			p.target_score_e4 AS target_score,
			p.exam_date,
			p.time_zone,
			p.pace,
			p.custom_interval_days,
			p.section_minimums,
			p.practice_drills,
			p.staff_recipients,
			p.extra_recipients,
			p.level,
			p.at_risk,
			p.counted_to,
			p.official_score_e4 AS official_score,
			p.official_sections,
			p.official_on,
			p.news,
			p.news_on,
			p.started_at,
			p.closed_at,
			p.failures,
			c.id AS course,
			c.name AS course_name,
			e.state,
			e.start_date AS access_start,
			e.end_date AS access_end,
			e.grace_period_end AS grace_end
		FROM plans p
		JOIN enrollments e ON e.id = p.enrollment_id
		JOIN courses c ON c.id = e.course_id
		WHERE `+which, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Stored, error) {
		r, err := pgx.RowToStructByName[planRow](row)
		return r.stored(), err
	})
}

// lockPlans takes the row locks first and reads the plans after that. A statement that waits for
// a lock sees the plan as it is after the wait, but the enrollment as it was before.
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

// Find returns a plan of the organization. NotFound when it has no such plan.
func Find(ctx context.Context, q pg.Querier, org id.Organization, plan id.Plan) (Stored, error) {
	return one(selectPlans(ctx, q, `p.organization_id = $1 AND p.id = $2`, org, plan))
}

// Lock returns a plan and locks its row. NotFound when there is none.
func Lock(ctx context.Context, tx *pg.Tx, plan id.Plan) (Stored, error) {
	return one(lockPlans(ctx, tx, `p.id = $1 FOR NO KEY UPDATE`, plan))
}

// LockDue returns up to limit plans that have to be decided by now, by id, and locks their rows. It
// leaves out plans that another transaction has locked.
func LockDue(ctx context.Context, tx *pg.Tx, now time.Time, limit int) ([]Stored, error) {
	return lockPlans(ctx, tx, `p.next_run_at <= $1
		ORDER BY p.next_run_at, p.id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`, now, limit)
}

// LockRunning returns the student's plans that are not closed, by id, and locks their rows.
func LockRunning(ctx context.Context, tx *pg.Tx, org id.Organization, user id.User) ([]Stored, error) {
	return lockPlans(ctx, tx, `p.organization_id = $1 AND p.user_id = $2 AND p.status <> 'closed'
		ORDER BY p.id FOR NO KEY UPDATE`, org, user)
}

// OfStudent returns the student's plans that are not closed, by id.
func OfStudent(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Stored, error) {
	return selectPlans(ctx, q, `p.organization_id = $1 AND p.user_id = $2 AND p.status <> 'closed' ORDER BY p.id`, org, user)
}

// List returns up to limit plans of the organization whose id is above after, by id, with the closed
// ones. The user 0 means everybody.
func List(ctx context.Context, q pg.Querier, org id.Organization, user id.User, after id.Plan, limit int) ([]Stored, error) {
	return selectPlans(ctx, q, `p.organization_id = $1 AND ($2 = 0 OR p.user_id = $2) AND p.id > $3
		ORDER BY p.id LIMIT $4`, org, user, after, limit)
}

func one(found []Stored, err error) (Stored, error) {
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "not_found", "the organization has no such plan")
	}
	if err != nil {
		return Stored{}, err
	}
	return found[0], nil
}

// planColumns are the columns of a plan that both Start and Save write.
var planColumns = pg.Columns{
	{Name: "status"},
	{Name: "target_score_e4"},
	{Name: "exam_date"},
	{Name: "time_zone"},
	{Name: "pace"},
	{Name: "custom_interval_days"},
	{Name: "section_minimums"},
	{Name: "practice_drills"},
	{Name: "staff_recipients"},
	{Name: "extra_recipients"},
	{Name: "level"},
}

// Start stores a new plan and returns its id. Conflict when the student has another plan for the
// exam that is not closed.
func Start(ctx context.Context, tx *pg.Tx, s Stored, now time.Time) (plan id.Plan, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO plans (
			organization_id,
			user_id,
			enrollment_id,
			exam,
			next_run_at,
			started_at,
			updated_at,
			`+planColumns.Names()+`)
		VALUES (
			@organization,
			@user,
			@enrollment,
			@exam,
			@now,
			@now,
			@now,
			`+planColumns.Params()+`)
		RETURNING id`, s.arguments(pg.Args{
		"user":       s.User,
		"enrollment": s.Enrollment,
		"exam":       s.Exam,
		"now":        now,
	})).Scan(&plan)
	if pg.Violates(err, "plans_one_an_exam") {
		return 0, fault.New(fault.Conflict, "second_plan", "the student has a plan for this exam already")
	}
	return plan, err
}

// arguments adds what both writing statements take of the plan.
func (s Stored) arguments(args pg.Args) pg.Args {
	maps.Copy(args, pg.Args{
		"organization":         s.Organization,
		"status":               s.Status,
		"target_score_e4":      s.TargetScore,
		"exam_date":            s.ExamDate,
		"time_zone":            s.TimeZone,
		"pace":                 s.Pace,
		"custom_interval_days": s.CustomIntervalDays,
		"section_minimums":     notNil(s.SectionMinimums),
		"practice_drills":      s.PracticeDrills,
		"staff_recipients":     append([]string{}, s.StaffRecipients...),
		"extra_recipients":     append([]string{}, s.ExtraRecipients...),
		"level":                s.Level,
	})
	return args
}

func notNil[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return m
}

// Save queues a write of the plan. The plan is to be decided again at nextRun; zero means never.
func Save(b *pg.Batch, s Stored, nextRun, now time.Time) {
	var official Official
	var score *decimal.Number
	if s.Official != nil {
		official, score = *s.Official, &s.Official.Score
	}
	b.Queue(`
		UPDATE plans SET
			(`+planColumns.Names()+`) = ROW (`+planColumns.Params()+`),
			at_risk = @at_risk,
			counted_to = @counted_to,
			official_score_e4 = @official_score,
			official_sections = @official_sections,
			official_on = @official_on,
			news = @news,
			news_on = @news_on,
			next_run_at = @next_run,
			failures = 0,
			closed_at = @closed,
			updated_at = @now
		WHERE organization_id = @organization AND id = @id`, s.arguments(pg.Args{
		"id":                s.ID,
		"at_risk":           s.AtRisk,
		"counted_to":        s.CountedTo,
		"official_score":    score,
		"official_sections": official.Sections,
		"official_on":       official.On,
		"news":              append([]News{}, s.News...),
		"news_on":           s.NewsOn,
		"next_run":          moment(nextRun),
		"closed":            s.ClosedAt,
		"now":               now,
	}))
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Reschedule queues the times at which plans that stay as they are have to be decided again, in the
// order of the plans; zero means never.
func Reschedule(b *pg.Batch, plans []id.Plan, nextRuns []time.Time) {
	moments := make([]*time.Time, len(nextRuns))
	for i, at := range nextRuns {
		moments[i] = moment(at)
	}
	b.Queue(`
		UPDATE plans p SET next_run_at = n.next_run_at, failures = 0
		FROM unnest($1::bigint[], $2::timestamptz[]) AS n(id, next_run_at) WHERE p.id = n.id`, plans, moments)
}

// Postpone puts off a plan that could not be decided, and counts the failure.
func Postpone(ctx context.Context, q pg.Querier, plan id.Plan, until time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE plans SET next_run_at = $2, failures = least(failures + 1, 1000)
		WHERE id = $1 AND next_run_at IS NOT NULL`, plan, until)
	return err
}

// Slots returns the tests of the plans, each plan's in the order of their slots.
func Slots(ctx context.Context, q pg.Querier, plans ...id.Plan) (map[id.Plan][]Slot, error) {
	rows, err := q.Query(ctx, `
		SELECT
			plan_id AS plan,
			slot,
			kind,
			section,
			state,
			opens_on,
			due_on,
			decided_on,
			fixed,
			coalesce(item_id, 0) AS paper,
			coalesce(assignment_id, 0) AS assignment,
			finished_on,
			late,
			score_e4 AS score,
			sections
		FROM plan_tests WHERE plan_id = ANY ($1) ORDER BY plan_id, slot`, plans)
	if err != nil {
		return nil, err
	}
	type slotRow struct {
		Plan id.Plan
		Slot
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[slotRow])
	all := make(map[id.Plan][]Slot, len(plans))
	for _, r := range found {
		all[r.Plan] = append(all[r.Plan], r.Slot)
	}
	return all, err
}

// slotColumns are the columns of a test that SaveSlot writes, beside those that name it.
var slotColumns = pg.Columns{
	{Name: "kind"},
	{Name: "section"},
	{Name: "state"},
	{Name: "opens_on"},
	{Name: "due_on"},
	{Name: "decided_on"},
	{Name: "fixed"},
	{Name: "item_id"},
	{Name: "assignment_id"},
	{Name: "finished_on"},
	{Name: "late"},
	{Name: "score_e4"},
	{Name: "sections"},
}

// SaveSlot queues an insertion or update of a test.
func SaveSlot(b *pg.Batch, plan id.Plan, s Slot) {
	b.Queue(`
		INSERT INTO plan_tests (plan_id, slot, `+slotColumns.Names()+`)
		VALUES (@plan, @slot, `+slotColumns.Params()+`)
		ON CONFLICT (plan_id, slot) DO UPDATE SET
			(`+slotColumns.Names()+`) = ROW (`+slotColumns.Of("excluded")+`)`, pg.Args{
		"plan":          plan,
		"slot":          s.Slot,
		"kind":          s.Kind,
		"section":       s.Section,
		"state":         s.State,
		"opens_on":      s.OpensOn,
		"due_on":        s.DueOn,
		"decided_on":    s.DecidedOn,
		"fixed":         s.Fixed,
		"item_id":       orNull(s.Paper),
		"assignment_id": orNull(int64(s.Assignment)),
		"finished_on":   s.FinishedOn,
		"late":          s.Late,
		"score_e4":      s.Score,
		"sections":      s.Sections,
	})
}

func orNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// DropSlot queues the removal of a test that was never opened.
func DropSlot(b *pg.Batch, plan id.Plan, slot int) {
	b.Queue(`DELETE FROM plan_tests WHERE plan_id = $1 AND slot = $2`, plan, slot)
}

// SaveDrill queues a drill that was given after the test of a slot.
func SaveDrill(b *pg.Batch, plan id.Plan, slot int, drill Test, assignment id.Assignment) {
	b.Queue(`
		INSERT INTO plan_drills (plan_id, slot, section, item_id, assignment_id, due_on)
		VALUES (@plan, @slot, @section, @paper, @assignment, @due)`, pg.Args{
		"plan":       plan,
		"slot":       slot,
		"section":    drill.Section,
		"paper":      drill.Paper,
		"assignment": assignment,
		"due":        drill.DueOn,
	})
}

// Drills returns the plans' drills in the order of the tests after which they were given.
func Drills(ctx context.Context, q pg.Querier, plans ...id.Plan) ([]Drilled, error) {
	rows, err := q.Query(ctx, `
		SELECT
			d.plan_id AS plan,
			d.slot,
			d.section,
			coalesce(i.title, '') AS title,
			d.due_on,
			coalesce(a.id, 0) AS assignment,
			coalesce(a.status, '') AS status
		FROM plan_drills d
		LEFT JOIN catalog_items i ON i.id = d.item_id
		LEFT JOIN assignments a ON a.id = d.assignment_id
		WHERE d.plan_id = ANY ($1) ORDER BY d.plan_id, d.slot, d.section`, plans)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Drilled])
}

// Zones returns the time zones of the plans that gave the student the assignments, of those that a
// plan gave.
func Zones(ctx context.Context, q pg.Querier, org id.Organization, user id.User, given []id.Assignment) (map[id.Assignment]string, error) {
	rows, err := q.Query(ctx, `
		SELECT t.assignment_id, p.time_zone FROM plans p
		JOIN (SELECT plan_id, assignment_id FROM plan_tests UNION ALL SELECT plan_id, assignment_id FROM plan_drills) t
			ON t.plan_id = p.id
		WHERE p.organization_id = $1 AND p.user_id = $2 AND t.assignment_id = ANY ($3)`, org, user, given)
	if err != nil {
		return nil, err
	}
	zones := map[id.Assignment]string{}
	var a id.Assignment
	var zone string
	_, err = pgx.ForEachRow(rows, []any{&a, &zone}, func() error { zones[a] = zone; return nil })
	return zones, err
}

// Works returns, by assignment, what students did with the open tests of the plans. over adds the
// tests that are finished, which may have been marked again, and those that were missed, skipped or
// withdrawn, whose work may have been reported since.
func Works(ctx context.Context, q pg.Querier, over bool, plans ...id.Plan) (map[id.Assignment]Work, error) {
	// A final result is found by the assignment's reference. Other work is looked for among the
	// few results of the student that are not final.
	rows, err := q.Query(ctx, `
		SELECT
			a.id AS assignment,
			a.status <> 'pending' AND a.status <> 'expired' OR u.state IS NOT NULL AS begun,
			u.state IS NOT DISTINCT FROM 'held' AS held,
			a.status = 'expired' AS ended,
			coalesce(r.completed_at, u.completed_at, a.completed_at) AS completed,
			r.score_e4 AS score,
			r.sections,
			coalesce(r.ref, '') AS ref
		FROM plan_tests t JOIN plans p ON p.id = t.plan_id
		JOIN assignments a ON a.id = t.assignment_id
		LEFT JOIN results r ON r.organization_id = p.organization_id AND r.ref = a.result_ref AND r.position IS NOT NULL
		LEFT JOIN LATERAL (
			SELECT w.state, w.completed_at FROM results w
			WHERE w.organization_id = p.organization_id AND w.user_id = p.user_id
				AND w.position IS NULL AND w.assignment_id = a.id
			LIMIT 1) u ON r.ref IS NULL
		WHERE t.plan_id = ANY ($1) AND ($2 OR t.state IN ('opened', 'started', 'held'))`, plans, over)
	if err != nil {
		return nil, err
	}
	type workRow struct {
		Assignment id.Assignment
		Completed  *time.Time
		Work
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[workRow])
	works := make(map[id.Assignment]Work, len(found))
	for _, r := range found {
		if r.Completed != nil {
			r.CompletedAt = *r.Completed
		}
		works[r.Assignment] = r.Work
	}
	return works, err
}

// selectPapers returns the exams' active tests that everybody or one of the organizations can see,
// by id.
func selectPapers(ctx context.Context, q pg.Querier, orgs []id.Organization, exams []string) ([]listedPaper, error) {
	rows, err := q.Query(ctx, `
		SELECT
			coalesce(i.organization_id, 0) AS organization,
			i.type AS exam,
			i.id,
			i.scope,
			coalesce(i.difficulty_e4, 0) AS difficulty,
			i.difficulty_e4 IS NOT NULL AS has_difficulty
		FROM catalog_items i
		WHERE i.kind = 'test' AND i.type = ANY ($2) AND i.active
			AND (i.organization_id = ANY ($1) OR i.organization_id IS NULL)
		ORDER BY i.id`, orgs, exams)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[listedPaper])
}

type listedPaper struct {
	Organization id.Organization // 0: everybody's
	Exam         string
	Paper
}

// selectSeen calls seen with each item that one of the students has started or was assigned, or
// got as a starter test.
func selectSeen(ctx context.Context, q pg.Querier, orgs []id.Organization, users []id.User, seen func(Student, int64)) error {
	rows, err := q.Query(ctx, `
		WITH s AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS s(org, usr))
		SELECT s.org, s.usr, a.item_id
		FROM s JOIN assignments a ON a.organization_id = s.org AND a.user_id = s.usr
		UNION ALL SELECT s.org, s.usr, r.item_id
		FROM s JOIN results r ON r.organization_id = s.org AND r.user_id = s.usr AND r.position IS NOT NULL
		UNION ALL SELECT s.org, s.usr, r.item_id
		FROM s JOIN results r ON r.organization_id = s.org AND r.user_id = s.usr AND r.position IS NULL
		UNION ALL SELECT s.org, s.usr, t.item_id
		FROM s JOIN starter_tests t ON t.organization_id = s.org AND t.user_id = s.usr`, orgs, users)
	if err != nil {
		return err
	}
	var who Student
	var item int64
	_, err = pgx.ForEachRow(rows, []any{&who.Organization, &who.User, &item}, func() error { seen(who, item); return nil })
	return err
}

// TouchTests queues a decision of the plans whose tests were given as the assignments, because
// students have worked on them. A closed plan keeps the result, too.
func TouchTests(ctx context.Context, tx *pg.Tx, orgs []id.Organization, now time.Time, tests ...id.Assignment) error {
	return queueSteps(ctx, tx, now, `organization_id = ANY ($1)
		AND id IN (SELECT plan_id FROM plan_tests WHERE assignment_id = ANY ($2))`, orgs, tests)
}

// TouchEnrollments queues a decision of the plans on the enrollments, because their access has
// changed.
func TouchEnrollments(ctx context.Context, tx *pg.Tx, org id.Organization, now time.Time, enrollments ...id.Enrollment) error {
	return queueSteps(ctx, tx, now, `organization_id = $1 AND enrollment_id = ANY ($2) AND status <> 'closed'`, org, enrollments)
}

// TouchUnfilled has the active plans for an exam that lack a paper decided by the next pass, because
// the catalog of the organization has gained one. The organization 0 means everybody's catalog.
func TouchUnfilled(ctx context.Context, tx *pg.Tx, org id.Organization, exam string, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE plans SET next_run_at = $3 WHERE id IN (
			SELECT p.id FROM plan_tests t JOIN plans p ON p.id = t.plan_id
			WHERE t.state = 'unfilled' AND p.status = 'active' AND p.exam = $2 AND p.next_run_at > $3
				AND ($1 = 0 OR p.organization_id = $1)
			ORDER BY p.id FOR NO KEY UPDATE OF p)`, org, exam, now)
	return err
}

func queueSteps(ctx context.Context, tx *pg.Tx, now time.Time, which string, args ...any) error {
	rows, err := tx.Query(ctx, `SELECT id, organization_id FROM plans WHERE `+which+` ORDER BY id`, args...)
	if err != nil {
		return err
	}
	type due struct {
		Plan         id.Plan
		Organization id.Organization
	}
	plans, err := pgx.CollectRows(rows, pgx.RowToStructByPos[due])
	for _, p := range plans {
		if err == nil {
			err = outbox.Add(ctx, tx, task.PlanStep, int64(p.Plan), p.Organization, now)
		}
	}
	return err
}

// Goals returns what the student prepares for in the enrollments' courses, where no plan runs.
func Goals(ctx context.Context, q pg.Querier, org id.Organization, enrollments ...id.Enrollment) (map[id.Enrollment]Goal, error) {
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

// SaveGoal queues what the student prepares for in a course.
func SaveGoal(b *pg.Batch, org id.Organization, enrollment id.Enrollment, g Goal, now time.Time) {
	var target *decimal.Number
	if g.HasTarget {
		target = &g.TargetScore
	}
	b.Queue(`
		INSERT INTO plan_goals (enrollment_id, organization_id, target_score_e4, exam_date, updated_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (enrollment_id) DO UPDATE SET
			target_score_e4 = excluded.target_score_e4, exam_date = excluded.exam_date, updated_at = excluded.updated_at`,
		enrollment, org, target, g.ExamDate, now)
}

// SafeExamBrowser says whether the student's tests open only in the secure exam browser.
func SafeExamBrowser(ctx context.Context, q pg.Querier, org id.Organization, user id.User) (on bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM plan_browsers WHERE organization_id = $1 AND user_id = $2)`, org, user).Scan(&on)
	return on, err
}

// SetSafeExamBrowser queues whether the student's tests open only in the secure exam browser. Tests
// that were started keep the rule that they were started with.
func SetSafeExamBrowser(b *pg.Batch, org id.Organization, user id.User, on bool, now time.Time) {
	if on {
		b.Queue(`
			INSERT INTO plan_browsers (organization_id, user_id, since) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING`, org, user, now)
		return
	}
	b.Queue(`DELETE FROM plan_browsers WHERE organization_id = $1 AND user_id = $2`, org, user)
}

// Browsers returns which of the plans' students have tests that open only in the secure exam
// browser.
func Browsers(ctx context.Context, q pg.Querier, plans ...Stored) (map[Student]bool, error) {
	if len(plans) == 0 {
		return nil, nil
	}
	orgs, users := pairs(plans)
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

// Session is the session of an assigned test, by the ref of its result.
type Session struct {
	Organization id.Organization
	Ref          string
	User         id.User
	Begins       bool // now: BrowserSessions decides whether it needs the secure exam browser
}

// BrowserSessions says of each session whether it runs only in the secure exam browser. It decides
// that once, for the sessions that begin (reference: plans#settings), and keeps it afterwards.
func BrowserSessions(ctx context.Context, tx *pg.Tx, sessions []Session) ([]bool, error) {
	n := len(sessions)
	only := make([]bool, n)
	if n == 0 {
		return only, nil
	}
	orgs, refs, users, begin := make([]id.Organization, n), make([]string, n), make([]id.User, n), make([]bool, n)
	for i, s := range sessions {
		orgs[i], refs[i], users[i], begin[i] = s.Organization, s.Ref, s.User, s.Begins
	}
	rows, err := tx.Query(ctx, `
		WITH session AS (
			SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bool[]) AS s(org, ref, usr, begins)
		), begun AS (
			INSERT INTO plan_browser_sessions (organization_id, ref)
			SELECT s.org, s.ref FROM session s
			JOIN plan_browsers b ON b.organization_id = s.org AND b.user_id = s.usr
			WHERE s.begins ORDER BY s.org, s.ref
			ON CONFLICT DO NOTHING RETURNING organization_id, ref
		)
		SELECT organization_id, ref FROM begun
		UNION SELECT p.organization_id, p.ref
		FROM session s JOIN plan_browser_sessions p ON p.organization_id = s.org AND p.ref = s.ref`, orgs, refs, users, begin)
	if err != nil {
		return nil, err
	}
	type key struct {
		org id.Organization
		ref string
	}
	found, k := map[key]bool{}, key{}
	_, err = pgx.ForEachRow(rows, []any{&k.org, &k.ref}, func() error { found[k] = true; return nil })
	for i, s := range sessions {
		only[i] = found[key{s.Organization, s.Ref}]
	}
	return only, err
}

// Record queues a line of the plan's history.
func Record(b *pg.Batch, plan id.Plan, e Entry) {
	b.Queue(`INSERT INTO plan_history (plan_id, at, actor, event, detail) VALUES ($1, $2, $3, $4, $5)`,
		plan, e.At, e.Actor, e.Event, notNil(e.Detail))
}

// History returns the last lines of a plan's history, up to limit, the latest first.
func History(ctx context.Context, q pg.Querier, plan id.Plan, limit int) ([]Entry, error) {
	rows, err := q.Query(ctx, `
		SELECT at, actor, event, detail FROM plan_history WHERE plan_id = $1 ORDER BY id DESC LIMIT $2`, plan, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
}

// Decisions lists up to limit lines of the history of the student's plans until that time, the last one first.
func Decisions(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]Decision, error) {
	return pg.List[Decision](ctx, q, `
		SELECT
			p.id AS plan,
			p.exam,
			h.at,
			h.actor,
			h.event,
			h.detail
		FROM plans p JOIN plan_history h ON h.plan_id = p.id
		WHERE p.organization_id = $1 AND p.user_id = $2 AND h.at <= $3
		ORDER BY h.at DESC, h.id DESC LIMIT $4`, org, user, until, limit)
}

// Lines returns up to limit plans of the organization, the latest first. The user 0 means
// everybody; which is a status, ChooseAtRisk or "" for all; below is the id of the last plan of the
// page before, or 0.
func Lines(ctx context.Context, q pg.Querier, org id.Organization, user id.User, which string, below id.Plan, limit int) ([]Line, error) {
	rows, err := q.Query(ctx, `
		SELECT
			p.id,
			a.email,
			a.first_name,
			a.last_name,
			p.exam,
			p.status,
			p.at_risk,
			p.target_score_e4 AS target,
			p.exam_date,
			coalesce(t.kind, '') AS last_kind,
			coalesce(t.section, '') AS last_section,
			coalesce(t.state, '') AS last_state,
			t.opens_on AS last_opens_on,
			t.due_on AS last_due_on
		FROM plans p
		CROSS JOIN LATERAL `+scope.Person("p.organization_id", "p.user_id")+` AS a
		LEFT JOIN LATERAL (
			SELECT kind, section, state, opens_on, due_on FROM plan_tests
			WHERE plan_id = p.id ORDER BY slot DESC LIMIT 1) t ON true
		WHERE p.organization_id = $1 AND ($2 = 0 OR p.user_id = $2) AND ($4 = 0 OR p.id < $4)
			AND CASE $3 WHEN 'at_risk' THEN p.at_risk AND p.status = 'active' WHEN '' THEN true ELSE p.status = $3 END
		ORDER BY p.id DESC LIMIT $5`, org, user, which, below, limit)
	if err != nil {
		return nil, err
	}
	type lineRow struct {
		Line
		LastKind    Kind
		LastSection string
		LastState   State
		LastOpensOn clock.Date
		LastDueOn   clock.Date
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Line, error) {
		r, err := pgx.RowToStructByName[lineRow](row)
		r.Last = Test{Kind: r.LastKind, Section: r.LastSection, State: r.LastState, OpensOn: r.LastOpensOn, DueOn: r.LastDueOn}
		return r.Line, err
	})
}

// Staff returns the organizations' active owners, admins and examiners.
func Staff(ctx context.Context, q pg.Querier, orgs ...id.Organization) (map[id.Organization][]StaffMember, error) {
	rows, err := q.Query(ctx, `
		SELECT m.organization_id, a.email, m.role FROM members m JOIN accounts a ON a.id = m.user_id
		WHERE m.organization_id = ANY ($1) AND m.status = 'active' AND m.role IN ('owner', 'admin', 'examiner')
		ORDER BY a.id`, orgs)
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

// Measure returns how far behind the plans of all organizations are. A plan that failed is put off
// for at most 256 minutes, so those of the next five hours are counted.
func Measure(ctx context.Context, q pg.Querier, now time.Time) (l Lag, err error) {
	var since time.Time
	err = q.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM plans WHERE next_run_at <= $1),
			coalesce((SELECT min(next_run_at) FROM plans WHERE next_run_at <= $1), $1),
			(SELECT count(*) FROM plans WHERE failures > 0 AND next_run_at <= $1 + interval '5 hours')`, now).
		Scan(&l.Due, &since, &l.Failing)
	l.Oldest = now.Sub(since)
	return l, err
}

// Current reads the plans of the users that are not closed, the latest one each, without tests and names.
func Current(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) (map[id.User]Line, error) {
	type row struct {
		User   id.User
		ID     id.Plan
		Exam   string
		Status Status
		AtRisk bool
		Target decimal.Number
	}
	rows, err := pg.List[row](ctx, q, `
		SELECT
			p.user_id AS "user",
			p.id,
			p.exam,
			p.status,
			p.at_risk,
			p.target_score_e4 AS target
		FROM unnest($2::bigint[]) AS u(id)
		CROSS JOIN LATERAL (
			SELECT * FROM plans
			WHERE organization_id = $1 AND user_id = u.id AND status <> 'closed'
			ORDER BY id DESC LIMIT 1) AS p`, org, users)
	current := make(map[id.User]Line, len(rows))
	for _, r := range rows {
		current[r.User] = Line{ID: r.ID, Exam: r.Exam, Status: r.Status, AtRisk: r.AtRisk, Target: r.Target}
	}
	return current, err
}
