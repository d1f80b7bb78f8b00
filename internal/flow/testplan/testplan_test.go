package testplan_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

var start = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// school is an organization with a student in an IELTS course, and a clock of its own.
type school struct {
	*testplan.Office
	t       *testing.T
	now     time.Time
	who     org.Principal
	student student.Account
}

func newSchool(t *testing.T) *school {
	t.Helper()
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(keyset)
	if err != nil {
		t.Fatal(err)
	}
	s := &school{t: t, now: start}
	s.Office = &testplan.Office{DB: pgtest.New(t), Mail: email.Desk{Box: box}, Clock: func() time.Time { return s.now },
		Log: slog.New(slog.DiscardHandler), Zone: time.UTC, PublicURL: "https://saffron.school", BrowserAvailable: true}
	s.exec(`INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days, starter_tests_per_course,
			visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
		VALUES ('saffron', 'Saffron School', true, 6, 7, 2, 10, true, 7, now(), now())`)
	s.who = org.Principal{Organization: org.Organization{ID: 1, Name: "Saffron School"}, Key: org.Key{Name: "CRM"}}
	for i, p := range []struct{ email, name, role string }{
		{"ada@saffron.school", "Ada", "member"}, {"owner@saffron.school", "Omar", "owner"}, {"eve@saffron.school", "Eve", "examiner"},
		{"tom@saffron.school", "Tom", "teacher"},
	} {
		s.exec(`INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at) VALUES ($1, $1, $2, 'Lovelace', 'api', now(), now())`, p.email, p.name)
		s.exec(`INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at) VALUES (1, $1, $2, 'active', 'api', now(), now())`, i+1, p.role)
	}
	if s.student, err = student.Find(t.Context(), s.DB, 1); err != nil {
		t.Fatal(err)
	}
	s.enrol("ielts", "Morning batch")
	return s
}

func (s *school) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.DB.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%v: %s", err, sql)
	}
}

func (s *school) enrol(typ, name string) {
	s.exec(`WITH c AS (INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at) VALUES (1, $2, $1, '2027-01-01', now(), now()) RETURNING id)
		INSERT INTO enrolments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
		SELECT 1, 1, id, '2027-02-01', '2027-08-01', '2027-08-08', now(), now() FROM c`, typ, name)
}

// papers adds n tests of the scope to the catalog.
func (s *school) papers(scope string, n int) {
	for i := range n {
		s.exec(`INSERT INTO catalog_items (organization_id, kind, code, title, type, scope, max_score_e4, created_at, updated_at)
			VALUES (1, 'test', $1, $2, 'ielts', $3, 90000, now(), now())`, fmt.Sprintf("%s-%d-%d", scope, s.count("catalog_items"), i), "Paper "+scope, scope)
	}
}

func (s *school) count(from string, args ...any) (n int) {
	s.t.Helper()
	if err := s.DB.QueryRow(s.t.Context(), "SELECT count(*) FROM "+from, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// moves are what a call that names the student's courses does to them: nothing.
func (s *school) moves() []course.Move {
	s.t.Helper()
	held, err := course.OfStudent(s.t.Context(), s.DB, 1, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	moves := make([]course.Move, len(held))
	for i, e := range held {
		moves[i] = course.Move{Action: course.Unchanged, Before: e, After: e}
	}
	return moves
}

func (s *school) try(r plan.Request) (answer *wire.PlanAnswer, warnings []string, err error) {
	s.t.Helper()
	moves := s.moves()
	err = s.DB.InTx(s.t.Context(), func(tx *pg.Tx) (err error) {
		answer, warnings, err = s.Set(s.t.Context(), tx, s.who, s.student, moves, &r, false, s.now)
		return err
	})
	return answer, warnings, err
}

func (s *school) set(r plan.Request) *wire.PlanAnswer {
	s.t.Helper()
	answer, _, err := s.try(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func num(text string) decimal.Number {
	n, err := decimal.Parse(text)
	if err != nil {
		panic(err)
	}
	return n
}

func begin() plan.Request {
	return plan.Request{TargetScore: new(num("7")), TestPlan: new(true), TimeZone: new("Asia/Kolkata"), Pace: new(plan.Standard),
		ExtraRecipients: []string{"Parent@home.in"}}
}

// pass lets days go by, with the daily pass at each day's start in Kolkata.
func (s *school) pass(days int) {
	s.t.Helper()
	for range days {
		s.now = s.now.Add(24 * time.Hour)
		if _, err := s.Sweep(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// finish is what the finalizing of a session writes for the latest assignment, and its
// touch of the plan.
func (s *school) finish(score string) {
	s.t.Helper()
	s.exec(`WITH a AS (UPDATE assignments SET status = 'completed', completed_at = $1, result_ref = 'test:' || id
			WHERE id = (SELECT max(assignment_id) FROM plan_tests) RETURNING *)
		INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, assignment_id, attempt, state, completed_at, score_e4, max_score_e4,
			sections, final_at, position, updated_at)
		SELECT 1, result_ref, 'test', 'ielts', user_id, item_id, id, 'assigned', 'finished', $1, $2::bigint, 90000,
			json_build_object('listening', $2::bigint / 10000.0, 'reading', $2::bigint / 10000.0, 'writing', $2::bigint / 10000.0, 'speaking', $2::bigint / 10000.0),
			$1, id, $1 FROM a`, s.now, num(score))
	s.touch()
}

// given are the assignments of the student's plans.
func (s *school) given() []id.Assignment {
	s.t.Helper()
	slots, err := plan.Slots(s.t.Context(), s.DB, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	var all []id.Assignment
	for _, slot := range slots[1] {
		all = append(all, slot.Assignment)
	}
	return all
}

// touch owes a step and lets a worker do it.
func (s *school) touch() {
	s.t.Helper()
	err := s.DB.InTx(s.t.Context(), func(tx *pg.Tx) error { return plan.TouchTests(s.t.Context(), tx, 1, s.now, s.given()...) })
	if err != nil {
		s.t.Fatal(err)
	}
	s.work(s.t.Context())
}

// touchCourse is what every change of an enrolment does.
func (s *school) touchCourse() {
	s.t.Helper()
	err := s.DB.InTx(s.t.Context(), func(tx *pg.Tx) error { return plan.TouchEnrolments(s.t.Context(), tx, 1, s.now, 1) })
	if err != nil {
		s.t.Fatal(err)
	}
	s.work(s.t.Context())
}

func (s *school) work(ctx context.Context) {
	s.t.Helper()
	owed, err := outbox.Claim(ctx, s.DB, task.PlanStep, s.now, time.Minute, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range owed {
		if err := s.Step(ctx, task.Outbox{Task: o.ID, Claim: o.Claim}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// tests shows the plan's tests as "kind state opens".
func (s *school) tests() string {
	s.t.Helper()
	slots, err := plan.Slots(s.t.Context(), s.DB, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	shown := make([]string, len(slots[1]))
	for i, slot := range slots[1] {
		shown[i] = fmt.Sprintf("%s %s %s", slot.Kind, slot.State, slot.OpensOn.String()[5:])
	}
	return strings.Join(shown, ", ")
}

func (s *school) want(tests string) {
	s.t.Helper()
	if got := s.tests(); got != tests {
		s.t.Errorf("\ngot  %s\nwant %s", got, tests)
	}
}

// mails lists the types and recipients of the mails made so far.
func (s *school) mails() []string {
	s.t.Helper()
	rows, err := s.DB.Query(s.t.Context(), `SELECT type || ' ' || recipient FROM emails ORDER BY id`)
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

func (s *school) events() []string {
	s.t.Helper()
	history, err := plan.History(s.t.Context(), s.DB, 1, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	all := make([]string, len(history))
	for i, e := range history {
		all[len(history)-1-i] = e.Actor + " " + e.Event
	}
	return all
}

func TestAPlanBeginsWithItsBaselineAndRepeatsAddNothing(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	a := s.set(begin())
	if a.Action != plan.Created || strings.Join(a.Changes, " ") != "target_score test_plan timezone pace extra_recipients" {
		t.Errorf("%+v", a)
	}
	p := a.TestPlan
	if p == nil || p.NextTest == nil || p.NextTest.State != "waiting" || p.NextTest.Kind != plan.Baseline || p.NextTest.OpensOn != clock.DateOf(2027, 3, 1) ||
		p.NextTest.DueOn != clock.DateOf(2027, 3, 3) || p.NextTest.Section != nil {
		t.Errorf("%+v", p)
	}
	if !slices.Equal(p.StaffRecipients, []string{"owner@saffron.school"}) || !slices.Equal(p.ExtraRecipients, []string{"parent@home.in"}) {
		t.Errorf("recipients %v %v", p.StaffRecipients, p.ExtraRecipients)
	}
	s.want("baseline opened 03-01")
	if got := s.mails(); !slices.Equal(got, []string{"plan_notice ada@saffron.school", "plan_test_open ada@saffron.school"}) {
		t.Errorf("mails %v", got)
	}
	if n := s.count(`assignments WHERE source = 'plan' AND status = 'pending' AND due_at = '2027-03-03 18:29:00+00'`); n != 1 {
		t.Errorf("%d assignments", n)
	}
	before := s.count("plan_history") + s.count("emails") + s.count("assignments") + s.count("outbox_tasks")
	if again := s.set(begin()); again.Action != plan.Unchanged || len(again.Changes) != 0 || again.TestPlan == nil {
		t.Errorf("again: %+v", again)
	}
	if after := s.count("plan_history") + s.count("emails") + s.count("assignments") + s.count("outbox_tasks"); after != before {
		t.Errorf("a repeat added %d rows", after-before)
	}
}

func TestTheWorkerReactsToResultsAndOpensTheNextTestAtTheDayStart(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.now = s.now.Add(time.Hour)
	s.finish("6.5")
	s.want("baseline finished 03-01, mock waiting 03-08")
	if got := s.mails()[2:]; !slices.Equal(got, []string{"plan_summary parent@home.in", "plan_result owner@saffron.school"}) {
		t.Errorf("mails %v", got)
	}
	for mail, link := range map[string]bool{"plan_summary": false, "plan_result": true} {
		if n := s.count(`emails WHERE type = $1 AND params::text LIKE '%https://saffron.school/results/test:%'`, mail); (n == 1) != link {
			t.Errorf("%s has a link: %v", mail, n == 1)
		}
	}
	s.now = time.Date(2027, 3, 7, 18, 29, 59, 0, time.UTC) // a second before the 8th in Kolkata
	if _, err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want("baseline finished 03-01, mock waiting 03-08")
	s.now = s.now.Add(time.Second)
	if n, err := s.Sweep(t.Context()); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	s.want("baseline finished 03-01, mock opened 03-08")
	if n, err := s.Sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("the pass came again: %d %v", n, err)
	}
	s.pass(3)
	s.want("baseline finished 03-01, mock missed 03-08, mock waiting 03-15")
	s.now = s.now.AddDate(0, 0, 20) // no worker for long
	s.pass(1)
	s.want("baseline finished 03-01, mock missed 03-08, mock opened 04-01")
}

func TestAPlanIsLeftAloneUntilSomethingIsToBeDone(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.finish("6.5")
	for day := 2; day <= 8; day++ { // the next test opens on the 8th
		s.now = time.Date(2027, 3, day, 12, 0, 0, 0, time.UTC)
		n, err := s.Sweep(t.Context())
		if err != nil || (n == 1) != (day == 8) {
			t.Errorf("day %d: %d plans were looked at, %v", day, n, err)
		}
	}
	s.want("baseline finished 03-01, mock opened 03-08")
}

func TestAPassOverManyPlansDecidesEachOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 3)
	s.set(begin())
	const many = 1000
	s.exec(`INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
		SELECT 's' || i || '@saffron.school', 's' || i, 'S', 'No. ' || i, 'api', now(), now() FROM generate_series(5, $1::integer) AS i`, many)
	s.exec(`INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT 1, i, 'member', 'active', 'api', now(), now() FROM generate_series(5, $1::integer) AS i`, many)
	s.exec(`INSERT INTO enrolments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
		SELECT 1, i, 1, '2027-02-01', '2027-08-01', '2027-08-08', now(), now() FROM generate_series(5, $1::integer) AS i`, many)
	s.exec(`INSERT INTO plans (organization_id, user_id, enrolment_id, exam, status, target_score_e4, time_zone, pace, practice_drills, staff_recipients, level, look_at, started_at, updated_at)
		SELECT 1, user_id, id, 'ielts', 'active', 70000, 'Asia/Kolkata', 'standard', true, '{}', 'standard', '2027-03-01', now(), now() FROM enrolments WHERE user_id > 1`)
	n, err := s.Sweep(t.Context())
	if err != nil || n != many-4 {
		t.Errorf("%d plans were decided: %v", n, err)
	}
	for from, want := range map[string]int{
		"plan_tests WHERE state = 'opened'": many - 3, "plan_tests t JOIN assignments a ON a.id = t.assignment_id AND a.item_id = t.item_id AND a.status = 'pending'": many - 3,
		"assignments": many - 3, "(SELECT DISTINCT position FROM assignments) AS p": many - 3, "emails WHERE type = 'plan_test_open'": many - 3,
		"outbox_tasks WHERE kind = 'email.send'": many - 2, "plan_history WHERE event = 'test_opened'": many - 3, "plans WHERE failures > 0": 0,
	} {
		if got := s.count(from); got != want {
			t.Errorf("%d of %s, want %d", got, from, want)
		}
	}
	if last := s.count("assignment_positions p JOIN (SELECT max(position) AS most FROM assignments) a ON a.most = p.last"); last != 1 {
		t.Error("the positions do not end with the last assignment's")
	}
}

func TestARemarkIsTakenInAndToldOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.finish("6.5")
	mails := len(s.mails())
	s.exec(`UPDATE results SET score_e4 = 70000`)
	s.touch()
	if n := s.count(`plan_tests WHERE score_e4 = 70000`); n != 1 || len(s.mails()) != mails {
		t.Errorf("%d re-marked, mails %v", n, s.mails())
	}
}

func TestAClosedPlanTakesAResultAndIsThenLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.exec(`UPDATE assignments SET status = 'in_progress'`)
	s.touch()
	s.set(plan.Request{TestPlan: new(false)})
	s.finish("6.5")
	s.touch() // and once more, as nothing has changed
	s.want("baseline finished 03-01")
	if n := s.count("plans WHERE status = 'closed' AND look_at IS NULL"); n != 1 {
		t.Error("the closed plan is looked at again")
	}
	if n, err := s.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("the pass decided %d plans: %v", n, err)
	}
}

func TestDrillsAreGivenAndNotCounted(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.papers("reading", 3)
	s.papers("listening", 3)
	s.set(begin())
	s.finish("6.5")
	if n := s.count(`plan_drills d JOIN assignments a ON a.id = d.assignment_id AND a.source = 'plan' WHERE d.due_on = '2027-03-07'`); n != 2 {
		t.Errorf("%d drills", n)
	}
}

func TestPapersRunOutAndComeBack(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 1)
	s.set(begin())
	s.finish("6.5")
	s.pass(10)
	s.want("baseline finished 03-01, mock unfilled 03-08")
	if n := s.count(`emails WHERE type = 'plan_alert' AND params::text LIKE '%unfilled%'`); n != 1 {
		t.Errorf("%d alerts", n)
	}
	if p := s.set(plan.Request{}).TestPlan; p.NextTest == nil || p.NextTest.State != plan.Unfilled {
		t.Errorf("%+v", p.NextTest)
	}
	s.papers("full", 1)
	s.pass(1)
	s.want("baseline finished 03-01, mock opened 03-12")
}

func TestPapersThatTheStudentHasSeenAreNotGiven(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.exec(`UPDATE catalog_items SET active = false WHERE id = 1`)
	s.exec(`INSERT INTO starter_tests (organization_id, user_id, item_id, course_id, placed_at) VALUES (1, 1, 4, 1, now())`)
	s.exec(`INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, attempt, state, updated_at) VALUES (1, 'test:x', 'test', 'ielts', 1, 2, 'practice', 'started', now())`)
	s.exec(`INSERT INTO assignments (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, position, updated_at)
		VALUES (1, 1, 3, 'test', 'expired', 'api', true, now(), 1, now())`)
	s.exec(`INSERT INTO assignment_positions VALUES (1, 1, now())`)
	s.set(begin())
	if n := s.count(`plan_tests WHERE item_id = 5`); n != 1 {
		t.Errorf("another paper than the unseen one: %s", s.tests())
	}
}

func TestTurningOffKeepsWhatWasStarted(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	a := s.set(plan.Request{TestPlan: new(false)})
	if a.Action != plan.Ended || a.TestPlan != nil || a.TargetScore == nil || *a.TargetScore != num("7") {
		t.Errorf("%+v", a)
	}
	s.want("baseline withdrawn 03-01")
	if n := s.count(`assignments WHERE status = 'expired'`); n != 1 {
		t.Error("the assignment is still open")
	}
	a = s.set(plan.Request{TestPlan: new(true), TimeZone: new("UTC")}) // the target is on the course
	if a.Action != plan.Created || *a.TargetScore != num("7") {
		t.Errorf("%+v", a)
	}
	s.exec(`UPDATE assignments SET status = 'in_progress' WHERE status = 'pending'`)
	s.set(plan.Request{TestPlan: new(false)})
	if n := s.count(`assignments WHERE status = 'in_progress'`); n != 1 {
		t.Error("a started test was taken back")
	}
}

func TestRefusalsSaveNothing(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.enrol("toefl", "TOEFL batch")
	for field, r := range map[string]plan.Request{
		"course":           {},
		"course ":          {Course: "sat"},
		"staff_recipients": {Course: "ielts", StaffRecipients: []string{"tom@saffron.school"}, TestPlan: new(true), TargetScore: new(num("7")), TimeZone: new("UTC")},
		"extra_recipients": {Course: "ielts", ExtraRecipients: []string{"nobody"}, TestPlan: new(true), TargetScore: new(num("7")), TimeZone: new("UTC")},
		"test_plan":        {Course: "toefl", TestPlan: new(true)},
	} {
		_, _, err := s.try(r)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "target_score_plan."+strings.TrimSpace(field)) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if n := s.count("plans") + s.count("plan_goals") + s.count("emails"); n != 0 {
		t.Errorf("%d rows were saved", n)
	}
}

func TestASecondPlanForTheExamIsRefusedAndOneForAnotherIsNot(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.enrol("ielts", "Evening batch")
	s.enrol("sat", "SAT batch")
	first, sat := begin(), begin()
	first.Course, sat.Course, sat.TargetScore = "1", "sat", new(num("1400"))
	s.set(first)
	first.Course = "2"
	if _, _, err := s.try(first); !fault.Has(err, "second_plan") {
		t.Errorf("%v", err)
	}
	if a := s.set(sat); a.Action != plan.Created {
		t.Errorf("%+v", a)
	}
}

func TestCourseLife(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	s.finish("6.5")
	s.exec(`UPDATE enrolments SET state = 'suspended'`)
	if a, w, err := s.try(plan.Request{Pace: new(plan.Light)}); err != nil || a.Action != plan.Left || len(w) != 1 || a.TestPlan.Pace != plan.Standard {
		t.Errorf("%+v %v %v", a, w, err)
	}
	s.pass(10)
	s.want("baseline finished 03-01, mock waiting 03-08")
	s.exec(`UPDATE enrolments SET state = 'running', end_date = '2027-03-13', grace_period_end = '2027-03-20'`)
	s.pass(1)
	s.want("baseline finished 03-01, mock opened 03-12")
	if n := s.count(`plan_tests WHERE due_on = '2027-03-12'`); n != 1 {
		t.Error("due after the last test day")
	}
	s.pass(2)
	s.want("baseline finished 03-01, mock missed 03-12")
	s.exec(`UPDATE enrolments SET end_date = '2027-06-01', grace_period_end = '2027-06-08'`)
	s.pass(1)
	s.want("baseline finished 03-01, mock missed 03-12, mock waiting 03-19")
	s.exec(`UPDATE enrolments SET state = 'completed'`)
	s.touchCourse()
	s.want("baseline finished 03-01, mock missed 03-12")
	if n := s.count(`plans WHERE status = 'closed' AND look_at IS NULL AND closed_at IS NOT NULL`); n != 1 || s.count("plan_goals WHERE target_score_e4 = 70000") != 1 {
		t.Errorf("the plan goes on: %v", s.events())
	}
}

func TestHistoryNamesTheKey(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 2)
	s.set(begin())
	s.set(plan.Request{Pace: new(plan.Light)})
	want := []string{"CRM created", "schedule test_planned", "schedule test_opened", "CRM updated"}
	if got := s.events(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestManyWorkersDecideAPlanOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	s.finish("6.5")
	s.now = s.now.AddDate(0, 0, 8)
	errs, given := make(chan error, 16), s.given()
	for range 8 {
		go func() { _, err := s.Sweep(t.Context()); errs <- err }()
		go func() {
			errs <- s.DB.InTx(t.Context(), func(tx *pg.Tx) error { return plan.TouchTests(t.Context(), tx, 1, s.now, given...) })
		}()
	}
	for range 16 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	s.work(t.Context())
	s.want("baseline finished 03-01, mock opened 03-09")
	if n := s.count("assignments"); n != 2 {
		t.Errorf("%d assignments", n)
	}
}

func TestABrokenPlanDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.enrol("ielts_general", "General batch")
	one, two := begin(), begin()
	one.Course, two.Course = "ielts", "ielts_general"
	s.set(one)
	s.set(two)
	s.exec(`UPDATE plans SET time_zone = 'Mars/Olympus' WHERE exam = 'ielts'`)
	s.pass(3) // the baseline is due on the third day
	if n := s.count(`plans WHERE exam = 'ielts' AND failures = 1 AND look_at = $1`, s.now.Add(time.Minute)); n != 1 {
		t.Error("the broken plan was not put off")
	}
	if n := s.count(`plans WHERE exam = 'ielts_general' AND failures = 0 AND look_at > $1`, s.now); n != 1 {
		t.Error("the other one was held up")
	}
}

func TestBlocksOfALookup(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 1)
	s.enrol("toefl", "TOEFL batch")
	one := begin()
	one.Course, one.SafeExamBrowser = "ielts", new(true)
	s.set(one)
	s.set(plan.Request{Course: "toefl", ExamDate: new(clock.DateOf(2027, 6, 1))})
	held, err := course.OfStudent(t.Context(), s.DB, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := s.Blocks(t.Context(), s.DB, 1, id.User(1), held)
	if err != nil || len(blocks) != 2 {
		t.Fatal(blocks, err)
	}
	if b := blocks[0]; b.TestPlan == nil || *b.TargetScore != num("7") || !b.SafeExamBrowser || !b.TestPlanAvailable {
		t.Errorf("%+v", b)
	}
	if b := blocks[1]; b.TestPlan != nil || b.TargetScore != nil || b.ExamDate != clock.DateOf(2027, 6, 1) || !b.SafeExamBrowser || b.TestPlanAvailable {
		t.Errorf("%+v", b)
	}
}

func TestStaffSteerAPlan(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	ctx := t.Context()
	if l, err := s.SkipTest(ctx, 1); err != nil || l.Slots[0].State != plan.Skipped {
		t.Fatal(l, err)
	}
	s.want("baseline skipped 03-01, baseline waiting 03-08")
	if n := s.count("assignments WHERE status = 'expired'"); n != 1 {
		t.Error("the skipped test is still open")
	}
	if _, err := s.OpenTest(ctx, 1); err != nil {
		t.Fatal(err)
	}
	s.want("baseline skipped 03-01, baseline opened 03-01")
	if _, err := s.OpenTest(ctx, 1); !fault.Has(err, "test_is_open") {
		t.Errorf("%v", err)
	}
	if l, err := s.Pause(ctx, 1); err != nil || l.Plan.Status != plan.Paused {
		t.Error(l, err)
	}
	s.pass(5)
	s.want("baseline skipped 03-01, baseline withdrawn 03-01")
	if l, err := s.Resume(ctx, 1); err != nil || l.Plan.Status != plan.Active {
		t.Error(l, err)
	}
	s.want("baseline skipped 03-01, baseline withdrawn 03-01, baseline waiting 03-08")
	official := plan.Official{Score: num("7.5"), Sections: map[string]decimal.Number{"reading": num("8")}, On: clock.DateOf(2027, 3, 5)}
	if l, err := s.RecordOfficial(ctx, 1, official); err != nil || l.Plan.Official.Score != num("7.5") {
		t.Error(l, err)
	}
	official.Score = num("7.3")
	if _, err := s.RecordOfficial(ctx, 1, official); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
	s.set(plan.Request{TestPlan: new(false)})
	if _, err := s.Pause(ctx, 1); !fault.Has(err, "plan_is_closed") {
		t.Errorf("%v", err)
	}
	if _, err := s.SkipTest(ctx, 77); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if got := s.events(); !slices.Contains(got, "platform paused") || !slices.Contains(got, "platform official_result") {
		t.Errorf("%v", got)
	}
}
