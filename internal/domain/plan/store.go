package plan

import (
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Stored is a plan as it is kept, with the access that its enrollment gives.
type Stored struct {
	ID           id.Plan
	Organization id.Organization
	User         id.User
	Enrollment   id.Enrollment
	Exam         string
	Status       Status
	Goal         Goal
	Settings     Settings
	Level        Pace
	AtRisk       bool
	CountedTo    int
	Official     *Official
	StartedAt    time.Time
	ClosedAt     time.Time // zero while it runs
	Failures     int       // to decide it, in a row

	Course      id.Course
	CourseName  string
	State       string // of the enrollment: running, suspended, dropped or completed
	AccessStart clock.Date
	AccessEnd   clock.Date
	GraceEnd    clock.Date
}

// Official is the result of the real exam, as staff recorded it.
type Official struct {
	Score    decimal.Number
	Sections map[string]decimal.Number
	On       clock.Date
}

// access is what the enrollment gives on the day today of the platform's zone.
func (s Stored) access(today clock.Date) Access {
	switch {
	case s.State == "suspended":
		return Idle
	case s.State != "running", today.After(s.GraceEnd):
		return Over
	}
	return Open
}

// Plan is what Decide sees of a stored plan; today is the platform's day. It fails only
// when the time zone is not known any more.
func (s Stored) Plan(scale Scale, today clock.Date) (Plan, error) {
	zone, err := clock.Zone("timezone", s.Settings.TimeZone)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Status: s.Status, Scale: scale, Target: s.Goal.TargetScore, Zone: zone, Pace: s.Settings.Pace,
		CustomDays: s.Settings.CustomIntervalDays, Level: s.Level, Minimums: s.Settings.SectionMinimums, Drills: s.Settings.PracticeDrills,
		FirstDay: s.AccessStart, LastDay: LastDay(s.Goal.ExamDate, s.AccessEnd), Access: s.access(today),
		AtRisk: s.AtRisk, CountedTo: s.CountedTo}, nil
}

// Slot is a test as it is kept, with its result once there is one.
type Slot struct {
	Test
	Assignment id.Assignment // 0 until it is opened
	Score      *decimal.Number
	Sections   map[string]decimal.Number
}

// Tests and Results are what Decide sees of the slots.
func Tests(slots []Slot) ([]Test, []Result) {
	tests, results := make([]Test, len(slots)), []Result{}
	for i, s := range slots {
		tests[i] = s.Test
		if s.Score != nil {
			results = append(results, Result{Slot: s.Slot, On: s.FinishedOn, Score: *s.Score, Sections: s.Sections})
		}
	}
	return tests, results
}

// Work is what the test's assignment and session say now.
type Work struct {
	Begun       bool
	Held        bool
	CompletedAt time.Time
	Score       *decimal.Number // of a final result
	Sections    map[string]decimal.Number
	Ref         string // the result's id
}

// Observe takes over what the student did; changed says whether the slot is different
// now. A test that was missed, skipped or withdrawn stays so.
func (s Slot) Observe(w Work, zone *time.Location) (after Slot, changed bool) {
	after = s
	switch s.State {
	case Opened, Started, Held, Finished:
	case Waiting, Unfilled, Missed, Skipped, Withdrawn:
		return s, false
	}
	switch {
	case w.Score != nil:
		after.State, after.FinishedOn = Finished, clock.DateIn(w.CompletedAt, zone)
		after.Score, after.Sections = w.Score, w.Sections
		if _, ok := w.Sections[s.Section]; s.Section != "" && !ok {
			after.Sections = map[string]decimal.Number{s.Section: *w.Score}
		}
	case s.State == Finished:
	case w.Held:
		after.State, after.FinishedOn = Held, clock.DateIn(w.CompletedAt, zone)
	case w.Begun:
		after.State = Started
	}
	return after, !same(s, after)
}

func same(a, b Slot) bool {
	if a.State != b.State || a.FinishedOn != b.FinishedOn || (a.Score == nil) != (b.Score == nil) || len(a.Sections) != len(b.Sections) {
		return false
	}
	for name, n := range a.Sections {
		if m, ok := b.Sections[name]; !ok || m != n {
			return false
		}
	}
	return a.Score == nil || *a.Score == *b.Score
}

// Entry is one line of a plan's history.
type Entry struct {
	At     time.Time
	Actor  string // an API key's name, ActorPlatform or ActorSchedule
	Event  string
	Detail map[string]any
}

// Actors that are no API keys.
const (
	ActorPlatform = "platform"
	ActorSchedule = "schedule"
)

// Find reads a plan of the organization. NotFound otherwise.
func Find(ctx context.Context, q pg.Querier, org id.Organization, plan id.Plan) (Stored, error) {
	return one(selectPlans(ctx, q, `p.organization_id = $1 AND p.id = $2`, org, plan))
}

// Lock reads a plan under its row lock. NotFound when there is none.
func Lock(ctx context.Context, tx *pg.Tx, plan id.Plan) (Stored, error) {
	return one(lockPlans(ctx, tx, `p.id = $1 FOR NO KEY UPDATE`, plan))
}

// LockDue reads, under row locks, up to limit plans that have to be decided by now; those
// that others are deciding are left out.
func LockDue(ctx context.Context, tx *pg.Tx, now time.Time, limit int) ([]Stored, error) {
	return lockPlans(ctx, tx, `p.next_run_at <= $1 ORDER BY p.next_run_at, p.id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`, now, limit)
}

// LockRunning reads, under row locks, the student's plans that are on.
func LockRunning(ctx context.Context, tx *pg.Tx, org id.Organization, user id.User) ([]Stored, error) {
	return lockPlans(ctx, tx, `p.organization_id = $1 AND p.user_id = $2 AND p.status <> 'closed' ORDER BY p.id FOR NO KEY UPDATE`, org, user)
}

// OfStudent lists the student's plans that are on, by id.
func OfStudent(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Stored, error) {
	return selectPlans(ctx, q, `p.organization_id = $1 AND p.user_id = $2 AND p.status <> 'closed' ORDER BY p.id`, org, user)
}

// List gives the organization's plans by id, closed ones too; user 0 is everyone.
func List(ctx context.Context, q pg.Querier, org id.Organization, user id.User, after id.Plan, limit int) ([]Stored, error) {
	return selectPlans(ctx, q, `p.organization_id = $1 AND ($2 = 0 OR p.user_id = $2) AND p.id > $3 ORDER BY p.id LIMIT $4`, org, user, after, limit)
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

// Slots reads the tests of plans, each plan's in the order of its slots.
func Slots(ctx context.Context, q pg.Querier, plans ...id.Plan) (map[id.Plan][]Slot, error) {
	return selectSlots(ctx, q, plans)
}

// Works reads what became of the tests of plans that are not over, or of all tests that
// have a result too, by assignment.
func Works(ctx context.Context, q pg.Querier, finished bool, plans ...id.Plan) (map[id.Assignment]Work, error) {
	return selectWorks(ctx, q, plans, finished)
}

// Start keeps a new plan; what the row draws itself is in the answer. Conflict when the
// student has a plan for the exam that is on.
func Start(ctx context.Context, tx *pg.Tx, s Stored, now time.Time) (id.Plan, error) {
	plan, err := insertPlan(ctx, tx, s, now)
	if pg.Violates(err, "plans_one_an_exam") {
		return 0, fault.New(fault.Conflict, "second_plan", "the student has a plan for this exam already")
	}
	return plan, err
}

// Reschedule queues when plans that stay as they are have to be decided again; zero is never.
func Reschedule(b *pg.Batch, plans []id.Plan, at []time.Time) { queueReschedule(b, plans, at) }

// Save queues the plan's new values; lookAt zero is never.
func Save(b *pg.Batch, s Stored, nextRuns, now time.Time) { queueSave(b, s, nextRuns, now) }

// SaveSlot queues the insertion or the new values of a test.
func SaveSlot(b *pg.Batch, plan id.Plan, s Slot) { queueSlot(b, plan, s) }

// DropSlot queues the removal of a test that was never opened.
func DropSlot(b *pg.Batch, plan id.Plan, slot int) { queueDropSlot(b, plan, slot) }

// SaveDrill queues a drill that was given after the test of a slot.
func SaveDrill(b *pg.Batch, plan id.Plan, slot int, drill Test, assignment id.Assignment) {
	queueDrill(b, plan, slot, drill, assignment)
}

// Record queues a line of the plan's history.
func Record(b *pg.Batch, plan id.Plan, e Entry) { queueEntry(b, plan, e) }

// History reads the last lines of a plan's history, the latest first.
func History(ctx context.Context, q pg.Querier, plan id.Plan, limit int) ([]Entry, error) {
	return selectHistory(ctx, q, plan, limit)
}

// Postpone puts a plan off that could not be decided.
func Postpone(ctx context.Context, q pg.Querier, plan id.Plan, until time.Time) error {
	return postpone(ctx, q, plan, until)
}

// TouchTests owes a decision of the plans whose tests were given as the assignments,
// because something was heard of them.
func TouchTests(ctx context.Context, tx *pg.Tx, org id.Organization, now time.Time, tests ...id.Assignment) error {
	return owe(ctx, tx, now, `organization_id = $1 AND id IN (SELECT plan_id FROM plan_tests WHERE assignment_id = ANY ($2))`, org, tests)
}

// TouchEnrollments owes a decision of the plans on enrollments, whose access has changed.
func TouchEnrollments(ctx context.Context, tx *pg.Tx, org id.Organization, now time.Time, enrollments ...id.Enrollment) error {
	return owe(ctx, tx, now, `organization_id = $1 AND enrollment_id = ANY ($2)`, org, enrollments)
}

func owe(ctx context.Context, tx *pg.Tx, now time.Time, which string, args ...any) error {
	claimed, err := selectQueued(ctx, tx, which, args...)
	for _, o := range claimed {
		if err == nil {
			err = outbox.Add(ctx, tx, task.PlanStep, int64(o.Plan), o.Organization, now)
		}
	}
	return err
}

// Goals reads what the students prepare for in courses on which no plan is.
func Goals(ctx context.Context, q pg.Querier, org id.Organization, enrollments ...id.Enrollment) (map[id.Enrollment]Goal, error) {
	return selectGoals(ctx, q, org, enrollments)
}

// SaveGoal queues what the student prepares for in a course.
func SaveGoal(b *pg.Batch, org id.Organization, enrollment id.Enrollment, g Goal, now time.Time) {
	queueGoal(b, org, enrollment, g, now)
}

// SafeExamBrowser says whether the student's tests open only in the secure exam browser.
func SafeExamBrowser(ctx context.Context, q pg.Querier, org id.Organization, user id.User) (bool, error) {
	return selectBrowser(ctx, q, org, user)
}

// SetSafeExamBrowser queues whether they do. Started tests are not looked at again.
func SetSafeExamBrowser(b *pg.Batch, org id.Organization, user id.User, on bool, now time.Time) {
	queueBrowser(b, org, user, on, now)
}

// Session is the session of an assigned test, by the ref of its result.
type Session struct {
	Ref    string
	User   id.User
	Begins bool // now: whether its browser is free is settled here
}

// BrowserSessions says which sessions run only in the secure exam browser, and settles it
// for those that begin (reference: plans#settings); started tests are never changed.
func BrowserSessions(ctx context.Context, tx *pg.Tx, org id.Organization, sessions []Session) (map[string]bool, error) {
	if len(sessions) == 0 {
		return nil, nil //nolint:nilnil // of no sessions, none
	}
	return settleSessions(ctx, tx, org, sessions)
}

// StaffMember is somebody who may get results and alerts.
type StaffMember struct {
	Email string
	Role  string // owner, admin or examiner
}

// Staff lists the organizations' active owners, admins and examiners.
func Staff(ctx context.Context, q pg.Querier, orgs ...id.Organization) (map[id.Organization][]StaffMember, error) {
	return selectStaff(ctx, q, orgs)
}

// ActiveStaff are the recipients who are of the staff still, or the default where none is:
// who has left is told of no student.
func ActiveStaff(recipients []string, staff []StaffMember) []string {
	active := slices.DeleteFunc(slices.Clone(recipients), func(address string) bool {
		return !slices.ContainsFunc(staff, func(m StaffMember) bool { return m.Email == address })
	})
	if len(active) == 0 {
		return DefaultStaff(staff)
	}
	return active
}

// DefaultStaff is who gets results where the call does not say: the owners, else all
// admins.
func DefaultStaff(staff []StaffMember) []string {
	list := []string{}
	for _, role := range []string{"owner", "admin"} {
		for _, m := range staff {
			if m.Role == role {
				list = append(list, m.Email)
			}
		}
		if len(list) > 0 {
			break
		}
	}
	return list
}
