package testplan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Reference: plans#test-plan-object.
func TestAPlanBeginsWithItsBaselineAndRepeatsAddNothing(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	a := s.set(begin())
	if check.Equal(t, "a.Action", a.Action, plan.Created, "%+v", a) {
		check.Equal(t, "changes", strings.Join(a.Changes, " "), "target_score test_plan timezone pace extra_recipients", "%+v", a)
	}
	p := a.TestPlan
	if check.True(t, "there is a plan", p != nil, "%+v", p) &&
		check.True(t, "there is a next test", p.NextTest != nil, "%+v", p) &&
		check.Equal(t, "p.NextTest.State", p.NextTest.State, "waiting", "%+v", p) &&
		check.Equal(t, "p.NextTest.Kind", p.NextTest.Kind, plan.Baseline, "%+v", p) &&
		check.Equal(t, "p.NextTest.OpensOn", p.NextTest.OpensOn, clock.DateOf(2027, 3, 1), "%+v", p) &&
		check.Equal(t, "p.NextTest.DueOn", p.NextTest.DueOn, clock.DateOf(2027, 3, 3), "%+v", p) {
		check.True(t, "there is no section", p.NextTest.Section == nil, "%+v", p)
	}
	if check.Slices(t, "staff recipients", p.StaffRecipients, []string{"owner@saffron.school"}, "recipients %v %v", p.StaffRecipients, p.ExtraRecipients) {
		check.Slices(t, "extra recipients", p.ExtraRecipients, []string{"parent@home.in"}, "recipients %v %v", p.StaffRecipients, p.ExtraRecipients)
	}
	s.want("baseline opened 03-01")
	if got := s.mails(); !slices.Equal(got, []string{"plan_notice ada@saffron.school", "plan_test_open ada@saffron.school"}) {
		t.Errorf("mails %v", got)
	}
	if n := s.Count(`assignments WHERE source = 'plan' AND status = 'pending' AND due_at = '2027-03-03 18:29:00+00'`); n != 1 {
		t.Errorf("%d assignments", n)
	}
	before := s.Count("plan_history") + s.Count("emails") + s.Count("assignments") + s.Count("outbox_tasks")
	if again := s.set(begin()); check.Equal(t, "again.Action", again.Action, plan.Unchanged, "again: %+v", again) &&
		check.Equal(t, "number of changes", len(again.Changes), 0, "again: %+v", again) {
		check.True(t, "there is a test plan", again.TestPlan != nil, "again: %+v", again)
	}
	if after := s.Count("plan_history") + s.Count("emails") + s.Count("assignments") + s.Count("outbox_tasks"); after != before {
		t.Errorf("a repeat added %d rows", after-before)
	}
}

// Reference: plans#plan-moves.
func TestTurningOffKeepsWhatWasStarted(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	a := s.set(plan.Request{TestPlan: new(false)})
	if check.Equal(t, "a.Action", a.Action, plan.Ended, "%+v", a) &&
		check.True(t, "there is no test plan", a.TestPlan == nil, "%+v", a) &&
		check.True(t, "there is a target score", a.TargetScore != nil, "%+v", a) {
		check.Equal(t, "*a.TargetScore", *a.TargetScore, num("7"), "%+v", a)
	}
	s.want("baseline withdrawn 03-01")
	if n := s.Count(`assignments WHERE status = 'expired'`); n != 1 {
		t.Error("the assignment is still open")
	}
	a = s.set(plan.Request{TestPlan: new(true), TimeZone: new("UTC")}) // the target is on the course
	if check.Equal(t, "a.Action", a.Action, plan.Created, "%+v", a) {
		check.Equal(t, "*a.TargetScore", *a.TargetScore, num("7"), "%+v", a)
	}
	s.Exec(`UPDATE assignments SET status = 'in_progress' WHERE status = 'pending'`)
	s.set(plan.Request{TestPlan: new(false)})
	if n := s.Count(`assignments WHERE status = 'in_progress'`); n != 1 {
		t.Error("a started test was taken back")
	}
}

func TestRefusalsSaveNothing(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.enroll("toefl", "TOEFL batch")
	for field, r := range map[string]plan.Request{
		"course":           {},
		"course ":          {Course: "sat"},
		"staff_recipients": {Course: "ielts", StaffRecipients: []string{"tom@saffron.school"}, TestPlan: new(true), TargetScore: new(num("7")), TimeZone: new("UTC")},
		"extra_recipients": {Course: "ielts", ExtraRecipients: []string{"nobody"}, TestPlan: new(true), TargetScore: new(num("7")), TimeZone: new("UTC")},
		"test_plan":        {Course: "toefl", TestPlan: new(true)},
	} {
		_, _, err := s.try(r)
		if check.Equal(t, "kind of the fault", fault.KindOf(err), fault.Invalid, "%s: %v", field, err) {
			check.True(t, "strings.Contains(err.Error(), \"target_score_plan.\"+string...", strings.Contains(err.Error(), "target_score_plan."+strings.TrimSpace(field)), "%s: %v", field, err)
		}
	}
	if n := s.Count("plans") + s.Count("plan_goals") + s.Count("emails"); n != 0 {
		t.Errorf("%d rows were saved", n)
	}
}

// Reference: plans#rules.
func TestASecondPlanForTheExamIsRefusedAndOneForAnotherIsNot(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.enroll("ielts", "Evening batch")
	s.enroll("sat", "SAT batch")
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

// Reference: plans#rules.
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

// Reference: plans#plan-block.
func TestBlocksOfALookup(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 1)
	s.enroll("toefl", "TOEFL batch")
	one := begin()
	one.Course, one.SafeExamBrowser = "ielts", new(true)
	s.set(one)
	s.set(plan.Request{Course: "toefl", ExamDate: new(clock.DateOf(2027, 6, 1))})
	held, err := course.OfStudent(t.Context(), s.DB, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := s.Blocks(t.Context(), s.DB, 1, id.User(1), held)
	check.NoError(check.Now(t), err, "%v %v", blocks, err)
	check.Equal(check.Now(t), "number of blocks", len(blocks), 2, "%v %v", blocks, err)
	if b := blocks[0]; check.True(t, "there is a test plan", b.TestPlan != nil, "%+v", b) &&
		check.Equal(t, "*b.TargetScore", *b.TargetScore, num("7"), "%+v", b) &&
		check.True(t, "b.SafeExamBrowser", b.SafeExamBrowser, "%+v", b) {
		check.True(t, "b.TestPlanAvailable", b.TestPlanAvailable, "%+v", b)
	}
	if b := blocks[1]; check.True(t, "there is no test plan", b.TestPlan == nil, "%+v", b) &&
		check.True(t, "there is no target score", b.TargetScore == nil, "%+v", b) &&
		check.Equal(t, "b.ExamDate", b.ExamDate, clock.DateOf(2027, 6, 1), "%+v", b) &&
		check.True(t, "b.SafeExamBrowser", b.SafeExamBrowser, "%+v", b) {
		check.False(t, "b.TestPlanAvailable", b.TestPlanAvailable, "%+v", b)
	}
}
