package testplan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// report is what the report of a session writes for the test of a slot, and its touch of the plan.
func (s *school) report(slot int, at time.Time, score string) {
	s.t.Helper()
	s.Exec(`WITH a AS (UPDATE assignments SET result_ref = 'test:' || id,
			status = CASE status WHEN 'expired' THEN status ELSE 'completed' END,
			completed_at = CASE status WHEN 'expired' THEN completed_at ELSE $2 END
			WHERE id = (SELECT assignment_id FROM plan_tests WHERE plan_id = 1 AND slot = $1) RETURNING *)
		INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, assignment_id, attempt, state, completed_at,
			score_e4, max_score_e4, final_at, position, updated_at)
		SELECT 1, result_ref, 'test', 'ielts', user_id, item_id, id, 'assigned', 'finished', $2, $3::bigint, 90000, $2, id, $2 FROM a`,
		slot, at, num(score))
	s.touch()
}

// results are the mails with a result that are not yet taken away, which this does.
func (s *school) results() (mails []string) {
	s.t.Helper()
	for _, m := range s.mails() {
		if strings.HasPrefix(m, "plan_result") || strings.HasPrefix(m, "plan_summary") {
			mails = append(mails, m)
		}
	}
	s.Exec(`DELETE FROM emails`)
	return mails
}

func (s *school) wantResults(n int) {
	s.t.Helper()
	got := s.results()
	if len(got) != 2*n { // one to staff and one to the parent
		s.t.Errorf("%d results were mailed: %v, want %d", len(got)/2, got, n)
	}
}

// noon is a day's noon in Kolkata, the plan's zone.
func noon(day int) time.Time { return time.Date(2027, 3, day, 6, 30, 0, 0, time.UTC) }

// A test that is finished in its window and reported after midnight counts, and no second baseline
// follows.
// Reference: plans#late-tests.
func TestATestInTimeCountsWheneverItIsReported(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.pass(3)
	s.want("baseline missed 03-01, baseline waiting 03-08")
	s.report(1, noon(3), "6.5")
	s.want("baseline finished 03-01, mock waiting 03-08")
	s.wantResults(1)
	if n := s.Count("plan_tests WHERE late"); n != 0 {
		t.Error("a test in time is called late")
	}
	s.pass(4)
	s.want("baseline finished 03-01, mock opened 03-08")
}

// A baseline that is reported while the second one is open takes that back.
func TestALateReportTakesTheSecondBaselineBack(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.pass(8)
	s.want("baseline missed 03-01, baseline opened 03-08")
	s.report(1, noon(3), "6.5")
	s.want("baseline finished 03-01, baseline withdrawn 03-08, mock waiting 03-15")
	s.wantResults(1)
	if n := s.Count("assignments WHERE status = 'expired'"); n != 1 {
		t.Errorf("%d assignments are taken back, want 1", n)
	}
}

// A test that is finished after its window, while it is open, counts from then on and is called late.
func TestALateTestCountsWhileItIsOpen(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.pass(8)
	s.report(1, s.now, "6.5")
	s.want("baseline finished 03-01, baseline withdrawn 03-08, mock waiting 03-15")
	s.wantResults(1)
	if n := s.Count("plan_tests WHERE slot = 1 AND late AND score_e4 = 65000"); n != 1 {
		t.Error("the slot does not say that the test was late")
	}
	if n := s.Count(`plan_history WHERE event = 'test_finished' AND (detail ->> 'late')::boolean`); n != 1 {
		t.Error("the history does not say that the test was late")
	}
}

// Work on a test that had been taken back, or had expired, before it was done does not count, and its
// slot says so.
func TestWorkOnATestThatIsOverDoesNotCount(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.pass(5)
	s.Exec(`UPDATE assignments SET status = 'expired'`)
	s.report(1, s.now, "6.5")
	s.want("baseline missed 03-01, baseline waiting 03-08")
	s.wantResults(0)
}

// A closed plan keeps what was done in time.
func TestAClosedPlanKeepsATestThatWasInTime(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.set(plan.Request{TestPlan: new(false)})
	s.want("baseline withdrawn 03-01")
	s.now = s.now.Add(time.Hour)
	s.report(1, s.now.Add(-2*time.Hour), "6.5")
	s.want("baseline finished 03-01")
	s.wantResults(1)
}

// A corrected result is mailed again, with the score before (reference: plans#plan-mails).
func TestARemarkIsMailedAsACorrection(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.finish("6.5")
	s.wantResults(1)
	s.Exec(`UPDATE results SET score_e4 = 70000`)
	s.touch()
	s.touch() // and once more, as nothing has changed
	if n := s.Count(`plan_tests WHERE score_e4 = 70000`); n != 1 {
		t.Errorf("%d tests have the new score", n)
	}
	if n := s.Count(`emails WHERE params ->> 'was' = 'Band 6.5' AND params ->> 'score' = 'Band 7.0'`); n != 2 {
		t.Errorf("%d mails have the old and the new score, want 2", n)
	}
	s.wantResults(1)
	s.Exec(`UPDATE results SET sections = '{"listening": 7.5, "reading": 6.5, "writing": 6.5, "speaking": 6.5}'`)
	s.touch()
	if n := s.Count(`emails WHERE params -> 'sections' -> 0 ->> 'was' = '6.5' AND params -> 'sections' -> 1 ->> 'was' IS NULL`); n != 2 {
		t.Errorf("%d mails have the section's old score, want 2", n)
	}
	s.wantResults(1)
	events := s.events()
	remarks := slices.DeleteFunc(events, func(e string) bool { return e != "schedule test_remarked" })
	if len(remarks) != 2 {
		t.Errorf("the history has %d re-marks, want 2: %v", len(remarks), s.events())
	}
}

// Reference: plans#plan-end.
func TestAPlanEndsTheDayAfterItsExam(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	first := begin()
	first.ExamDate, first.TargetScore = new(clock.DateOf(2027, 3, 20)), new(num("9"))
	s.set(first)
	s.finish("4")
	s.pass(19)
	if n := s.Count("plans WHERE status = 'active'"); n != 1 {
		t.Fatalf("on the day of the exam: %v", s.events())
	}
	if n := s.Count("plans WHERE at_risk"); n != 0 {
		t.Error("the plan is at risk after its last test day")
	}
	s.pass(1)
	if n := s.Count("plans WHERE status = 'closed' AND next_run_at IS NULL"); n != 1 {
		t.Fatalf("on the day after: %v", s.events())
	}
	if n := s.Count(`plan_history WHERE event = 'closed' AND detail ->> 'reason' = 'exam_over'`); n != 1 {
		t.Errorf("the history does not say why: %v", s.events())
	}
	s.enroll("ielts", "Retake")
	again := begin()
	again.Course, again.ExamDate = "2", new(clock.DateOf(2027, 6, 20))
	if a := s.set(again); a.Action != plan.Created {
		t.Errorf("the retake course's plan: %+v", a)
	}
}

// The plan of the retake does not wait for the pass that closes the first one.
func TestARetakePlanClosesTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	first := begin()
	first.ExamDate = new(clock.DateOf(2027, 3, 20))
	s.set(first)
	s.now = noon(21)
	s.enroll("ielts", "Retake")
	again := begin()
	again.Course, again.ExamDate = "2", new(clock.DateOf(2027, 6, 20))
	if a := s.set(again); a.Action != plan.Created {
		t.Errorf("the retake course's plan: %+v", a)
	}
	if n := s.Count("plans WHERE id = 1 AND status = 'closed'"); n != 1 {
		t.Error("the first plan goes on")
	}
}

// next_test names the test that follows while a result is under review
// (reference: plans#test-plan-object).
func TestThereIsANextTestWhileAResultIsHeld(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	s.Exec(`WITH a AS (UPDATE assignments SET status = 'submitted' RETURNING *)
		INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, assignment_id, attempt, state, completed_at, updated_at)
		SELECT 1, 'test:x', 'test', 'ielts', user_id, item_id, id, 'assigned', 'held', $1, $1 FROM a`, s.now)
	s.touch()
	s.want("baseline held 03-01, mock waiting 03-08")
	p := s.set(plan.Request{}).TestPlan
	check.True(check.Now(t), "p.NextTest != nil", p.NextTest != nil, "%+v", p)
	if check.Equal(t, "state", p.NextTest.State, plan.Waiting, "%+v", p.NextTest) {
		check.Equal(t, "opens_on", p.NextTest.OpensOn, clock.DateOf(2027, 3, 8), "%+v", p.NextTest)
	}
}

// Access is judged by the instant: where the plan's zone is west of the platform's, the enrollment's
// first day is tomorrow there.
// Reference: plans#test-kinds.
func TestABaselineOpensAtOnceWestOfThePlatform(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.now = time.Date(2027, 3, 2, 3, 0, 0, 0, time.UTC) // the 1st in New York
	s.Exec(`UPDATE enrollments SET start_date = '2027-03-02'`)
	r := begin()
	r.TimeZone = new("America/New_York")
	s.set(r)
	s.want("baseline opened 03-01")
	s.wantDates("2027-03-01 2027-03-03 2027-03-04T04:59")
}

// Access that begins later opens the baseline with its first instant.
func TestABaselineOpensWhenAccessBegins(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.Exec(`UPDATE enrollments SET start_date = '2027-03-02'`)
	r := begin()
	r.TimeZone = new("America/New_York")
	s.set(r) // at 4 in the morning of the 1st; access begins at 19:00
	s.want("baseline waiting 03-01")
	s.now = time.Date(2027, 3, 1, 23, 59, 59, 0, time.UTC)
	if n, err := s.Sweep(t.Context()); check.NoError(t, err, "%d plans, %v", n, err) {
		check.Equal(t, "plans decided before access", n, 0, "%s", s.tests())
	}
	s.now = s.now.Add(time.Second)
	if n, err := s.Sweep(t.Context()); check.NoError(t, err, "%d plans, %v", n, err) {
		check.Equal(t, "plans decided as access begins", n, 1, "%s", s.tests())
	}
	s.want("baseline opened 03-01")
}

// A plan that waits for a paper gets it with the next pass after the catalog has gained one.
func TestAPaperIsGivenAtOnceToAPlanThatLacksOne(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.set(begin())
	s.want("baseline unfilled 03-01")
	s.papers("full", 1)
	s.now = s.now.Add(time.Minute)
	for _, exam := range []string{"sat", "ielts"} {
		want := strings.Count(exam, "ielts")
		if err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error { return plan.TouchUnfilled(t.Context(), tx, 1, exam, s.now) }); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Sweep(t.Context()); check.NoError(t, err, "%d plans, %v", n, err) {
			check.Equal(t, "plans decided", n, want, "a paper of %s", exam)
		}
	}
	s.want("baseline opened 03-01")
}

// A catalog of whole tests alone keeps a plan going, and the alert says what is missing when there is
// nothing left.
func TestAPlanGoesOnWithMocksAlone(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 3)
	s.set(begin())
	s.finish("5")
	s.pass(7)
	s.want("baseline finished 03-01, mock opened 03-08")
	s.finish("5")
	s.pass(7)
	s.finish("5")
	s.pass(7)
	s.want("baseline finished 03-01, mock finished 03-08, mock finished 03-15, skills_check unfilled 03-22")
	if n := s.Count(`emails WHERE type = 'plan_alert' AND params ->> 'reason' = 'unfilled' AND params ->> 'section' = 'listening'`); n != 1 {
		t.Errorf("%d alerts say that a listening paper is missing: %v", n, s.mails())
	}
}
