package testplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func TestCourseLife(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	s.finish("6.5")
	s.Exec(`UPDATE enrollments SET state = 'suspended'`)
	if a, w, err := s.try(plan.Request{Pace: new(plan.Light)}); check.NoError(t, err, "%+v %v %v", a, w, err) &&
		check.Equal(t, "a.Action", a.Action, plan.Left, "%+v %v %v", a, w, err) &&
		check.Equal(t, "number of warnings", len(w), 1, "%+v %v %v", a, w, err) {
		check.Equal(t, "a.TestPlan.Pace", a.TestPlan.Pace, plan.Standard, "%+v %v %v", a, w, err)
	}
	s.pass(10)
	s.want("baseline finished 03-01, mock waiting 03-08")
	s.Exec(`UPDATE enrollments SET state = 'running', end_date = '2027-03-13', grace_period_end = '2027-03-20'`)
	s.pass(1)
	s.want("baseline finished 03-01, mock opened 03-12")
	if n := s.Count(`plan_tests WHERE due_on = '2027-03-12'`); n != 1 {
		t.Error("due after the last test day")
	}
	s.pass(2)
	s.want("baseline finished 03-01, mock missed 03-12")
	s.Exec(`UPDATE enrollments SET end_date = '2027-06-01', grace_period_end = '2027-06-08'`)
	s.pass(1)
	s.want("baseline finished 03-01, mock missed 03-12, mock waiting 03-19")
	s.Exec(`UPDATE enrollments SET state = 'completed'`)
	s.touchCourse()
	s.want("baseline finished 03-01, mock missed 03-12")
	if n := s.Count(`plans WHERE status = 'closed' AND next_run_at IS NULL AND closed_at IS NOT NULL`); check.Equal(t, "n", n, 1, "the plan goes on: %v", s.events()) {
		check.Equal(t, "number of goals of 7", s.Count("plan_goals WHERE target_score_e4 = 70000"), 1, "the plan goes on: %v", s.events())
	}
}

// dates shows when the plan's last test opens, when it is due, and when the assignment is.
func (s *school) dates() string {
	s.t.Helper()
	var shown string
	err := s.DB.QueryRow(s.t.Context(), `
		SELECT concat_ws(' ', t.opens_on, t.due_on, to_char(a.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI'))
		FROM plan_tests t LEFT JOIN assignments a ON a.id = t.assignment_id ORDER BY t.plan_id DESC, t.slot DESC LIMIT 1`).Scan(&shown)
	if err != nil {
		s.t.Fatal(err)
	}
	return shown
}

func (s *school) wantDates(dates string) {
	s.t.Helper()
	if got := s.dates(); got != dates {
		s.t.Errorf("the last test opens and is due %s, want %s", got, dates)
	}
}

// exam moves the exam by a call of the partner's.
func (s *school) exam(month time.Month, day int) {
	s.t.Helper()
	if a := s.set(plan.Request{ExamDate: new(clock.DateOf(2027, month, day))}); check.Equal(s.t, "a.Action", a.Action, plan.Updated, "%s, changes %v", a.Action, a.Changes) {
		check.Slices(s.t, "changes", a.Changes, []string{"exam_date"}, "%s, changes %v", a.Action, a.Changes)
	}
}

// A changed exam date moves tests that are not begun (reference: plans#plan-moves).
func TestTheExamIsMovedEarlierAndLater(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	s.finish("6.5")
	s.exam(time.June, 1)
	s.want("baseline finished 03-01, mock waiting 03-08")
	s.exam(time.March, 12)
	s.wantDates("2027-03-08 2027-03-09")
	s.exam(time.March, 10) // the last test day is before the waiting test
	s.want("baseline finished 03-01")
	s.exam(time.June, 1)
	s.wantDates("2027-03-08 2027-03-10")
	s.pass(7)
	s.wantDates("2027-03-08 2027-03-10 2027-03-10T18:29")
	s.exam(time.March, 12) // an open test keeps its opening day, and is due earlier
	s.wantDates("2027-03-08 2027-03-09 2027-03-09T18:29")
	s.exam(time.June, 1) // and not later again
	s.wantDates("2027-03-08 2027-03-09 2027-03-09T18:29")
	s.Exec(`UPDATE assignments SET status = 'in_progress' WHERE status = 'pending'`)
	s.touch()
	s.exam(time.March, 11) // a started one is never touched
	s.wantDates("2027-03-08 2027-03-09 2027-03-09T18:29")
	s.want("baseline finished 03-01, mock started 03-08")
}

// A provisioning call that extends access says nothing of the plan, and yet moves its last
// test day.
// Reference: plans#rules.
func TestAnExtensionMovesTheLastTestDay(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.Exec(`UPDATE enrollments SET end_date = '2027-03-09', grace_period_end = '2027-03-16'`)
	s.set(begin())
	s.finish("6.5")
	s.wantDates("2027-03-08 2027-03-08") // the day before access ends
	moves := s.moves()
	s.Exec(`UPDATE enrollments SET end_date = '2027-06-09', grace_period_end = '2027-06-16'`)
	moves[0].Action, moves[0].After = course.Extended, s.moves()[0].Before
	err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		answer, warnings, err := s.Set(t.Context(), tx, testplan.Call{Who: s.who, Account: s.student, Moves: moves, Now: s.now})
		if check.True(t, "there is no answer", answer == nil, "a call without settings answers %+v, %v", answer, warnings) {
			check.Equal(t, "number of warnings", len(warnings), 0, "a call without settings answers %+v, %v", answer, warnings)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.work(t.Context())
	s.wantDates("2027-03-08 2027-03-10")
}

func TestThePlanEndsWithItsCourse(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.Exec(`UPDATE enrollments SET end_date = '2027-03-20', grace_period_end = '2027-03-27'`)
	s.set(begin())
	s.finish("6.5")
	s.pass(30)
	s.want("baseline finished 03-01, mock missed 03-08, mock missed 03-15")
	if n := s.Count(`plans WHERE status = 'closed' AND next_run_at IS NULL`); check.Equal(t, "n", n, 1, "the plan goes on: %v", s.events()) {
		check.Equal(t, "number of goals of 7", s.Count("plan_goals WHERE target_score_e4 = 70000"), 1, "the plan goes on: %v", s.events())
	}
	if n := s.Count(`assignments WHERE status = 'pending' AND due_at > $1`, s.now); n != 0 {
		t.Errorf("%d tests are open", n)
	}
}

// Clocks skip midnight in Havana, Santiago and Cairo on the days on which the second test
// opens; Kiritimati is the first to have a day, and Apia went without 30 December 2011.
func TestTestsOpenAndAreDueInThePlansZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, begins  string // the latter a time in UTC
		opens, before string // likewise, the day's first instant; and how the second test is shown before
		dates         string
	}{
		{"America/Havana", "2027-03-07T12:00:00Z", "2027-03-14T05:00:00Z", "03-14", "2027-03-14 2027-03-16 2027-03-17T03:59"},
		{"America/Santiago", "2027-08-29T12:00:00Z", "2027-09-05T04:00:00Z", "09-05", "2027-09-05 2027-09-07 2027-09-08T02:59"},
		{"Africa/Cairo", "2027-04-23T12:00:00Z", "2027-04-29T22:00:00Z", "04-30", "2027-04-30 2027-05-02 2027-05-02T20:59"},
		{"Pacific/Kiritimati", "2027-02-28T12:00:00Z", "2027-03-07T10:00:00Z", "03-08", "2027-03-08 2027-03-10 2027-03-10T09:59"},
		{"Pacific/Apia", "2011-12-24T12:00:00Z", "2011-12-30T10:00:00Z", "12-31", "2011-12-31 2012-01-02 2012-01-02T09:59"},
	} {
		t.Run(c.zone, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t)
			s.papers("full", 3)
			s.now = instant(t, c.begins)
			s.Exec(`UPDATE enrollments SET start_date = $1::date - 30, end_date = $1::date + 90, grace_period_end = $1::date + 97`, s.now)
			r := begin()
			r.TimeZone = &c.zone
			s.set(r)
			s.finish("6.5")
			s.now = instant(t, c.opens).Add(-time.Second)
			if _, err := s.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.tests(); !strings.HasSuffix(got, "mock waiting "+c.before) {
				t.Errorf("a second before the day: %s", got)
			}
			s.now = instant(t, c.opens)
			if n, err := s.Sweep(t.Context()); check.Equal(t, "n", n, 1, "at the day's first instant %d plans were decided: %v", n, err) {
				check.NoError(t, err, "at the day's first instant %d plans were decided: %v", n, err)
			}
			s.wantDates(c.dates)
		})
	}
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
