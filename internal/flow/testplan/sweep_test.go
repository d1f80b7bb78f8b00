package testplan_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func TestAPlanIsLeftAloneUntilSomethingIsToBeDone(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.finish("6.5")
	for day := 2; day <= 8; day++ { // the next test opens on the 8th
		s.now = time.Date(2027, 3, day, 12, 0, 0, 0, time.UTC)
		n, err := s.Sweep(t.Context())
		check.NoError(t, err, "day %d", day)
		check.Equal(t, "one plan was decided", n == 1, day == 8, "day %d: %d plans", day, n)
	}
	s.want("baseline finished 03-01, mock opened 03-08")
}

func TestAPassOverManyPlansDecidesEachOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 3)
	s.set(begin())
	const many = 1000
	s.Of(1).Students(many - 4)
	s.Exec(`INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
		SELECT 1, i, 1, '2027-02-01', '2027-08-01', '2027-08-08', now(), now() FROM generate_series(5, $1::integer) AS i`, many)
	s.Exec(`INSERT INTO plans (organization_id, user_id, enrollment_id, exam, status, target_score_e4, time_zone, pace, practice_drills, staff_recipients, level, next_run_at, started_at, updated_at)
		SELECT 1, user_id, id, 'ielts', 'active', 70000, 'Asia/Kolkata', 'standard', true, '{}', 'standard', '2027-03-01', now(), now() FROM enrollments WHERE user_id > 1`)
	n, err := s.Sweep(t.Context())
	if check.NoError(t, err, "%d plans were decided: %v", n, err) {
		check.Equal(t, "n", n, many-4, "%d plans were decided: %v", n, err)
	}
	for from, want := range map[string]int{
		"plan_tests WHERE state = 'opened'": many - 3, "plan_tests t JOIN assignments a ON a.id = t.assignment_id AND a.item_id = t.item_id AND a.status = 'pending'": many - 3,
		"assignments": many - 3, "(SELECT DISTINCT position FROM assignments) AS p": many - 3, "emails WHERE type = 'plan_test_open'": many - 3,
		"outbox_tasks WHERE kind = 'email.send'": many - 2, "plan_history WHERE event = 'test_opened'": many - 3, "plans WHERE failures > 0": 0,
	} {
		if got := s.Count(from); got != want {
			t.Errorf("%d of %s, want %d", got, from, want)
		}
	}
	if last := s.Count("assignment_positions p JOIN (SELECT max(position) AS most FROM assignments) a ON a.most = p.last"); last != 1 {
		t.Error("the positions do not end with the last assignment's")
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
			errs <- s.DB.InTx(t.Context(), func(tx *pg.Tx) error { return plan.TouchTests(t.Context(), tx, []id.Organization{1}, s.now, given...) })
		}()
	}
	for range 16 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	s.work(t.Context())
	s.want("baseline finished 03-01, mock opened 03-09")
	if n := s.Count("assignments"); n != 2 {
		t.Errorf("%d assignments", n)
	}
}

func TestABrokenPlanDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.enroll("ielts_general", "General batch")
	one, two := begin(), begin()
	one.Course, two.Course = "ielts", "ielts_general"
	s.set(one)
	s.set(two)
	s.Exec(`UPDATE plans SET time_zone = 'Mars/Olympus' WHERE exam = 'ielts'`)
	s.pass(3) // the baseline is due on the third day
	if n := s.Count(`plans WHERE exam = 'ielts' AND failures = 1 AND next_run_at = $1`, s.now.Add(time.Minute)); n != 1 {
		t.Error("the broken plan was not put off")
	}
	if n := s.Count(`plans WHERE exam = 'ielts_general' AND failures = 0 AND next_run_at > $1`, s.now); n != 1 {
		t.Error("the other one was held up")
	}
}

// When the pass cannot search for plans, it fails and does not report that none is due.
func TestAPassThatFindsNoPlansSaysWhy(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.Exec(`ALTER TABLE plans RENAME COLUMN next_run_at TO run_elsewhere`)
	if n, err := s.Sweep(t.Context()); check.True(t, "there is an error", err != nil, "%d plans, %v", n, err) {
		check.Equal(t, "n", n, 0, "%d plans, %v", n, err)
	}
}
