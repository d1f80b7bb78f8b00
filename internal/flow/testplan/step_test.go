package testplan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

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
		if n := s.Count(`emails WHERE type = $1 AND params::text LIKE '%https://saffron.school/results/test:%'`, mail); (n == 1) != link {
			t.Errorf("%s has a link: %v", mail, n == 1)
		}
	}
	s.now = time.Date(2027, 3, 7, 18, 29, 59, 0, time.UTC) // a second before the 8th in Kolkata
	if _, err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want("baseline finished 03-01, mock waiting 03-08")
	s.now = s.now.Add(time.Second)
	if n, err := s.Sweep(t.Context()); check.NoError(check.Now(t), err, "%v %v", n, err) {
		check.Equal(check.Now(t), "n", n, 1, "%v %v", n, err)
	}
	s.want("baseline finished 03-01, mock opened 03-08")
	if n, err := s.Sweep(t.Context()); check.NoError(t, err, "the pass came again: %d %v", n, err) {
		check.Equal(t, "n", n, 0, "the pass came again: %d %v", n, err)
	}
	s.pass(3)
	s.want("baseline finished 03-01, mock missed 03-08, mock waiting 03-15")
	s.now = s.now.AddDate(0, 0, 20) // no worker for long
	s.pass(1)
	s.want("baseline finished 03-01, mock missed 03-08, mock opened 04-01")
}

func TestAClosedPlanTakesAResultAndIsThenLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.Exec(`UPDATE assignments SET status = 'in_progress'`)
	s.touch()
	s.set(plan.Request{TestPlan: new(false)})
	s.finish("6.5")
	s.touch() // and once more, as nothing has changed
	s.want("baseline finished 03-01")
	if n := s.Count("plans WHERE status = 'closed' AND next_run_at IS NULL"); n != 1 {
		t.Error("the closed plan is decided again")
	}
	if n, err := s.Sweep(t.Context()); check.Equal(t, "n", n, 0, "the pass decided %d plans: %v", n, err) {
		check.NoError(t, err, "the pass decided %d plans: %v", n, err)
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
	if n := s.Count(`plan_drills d JOIN assignments a ON a.id = d.assignment_id AND a.source = 'plan' WHERE d.due_on = '2027-03-07'`); n != 2 {
		t.Errorf("%d drills", n)
	}
}

// An alert leads to where its reader can do something: who may not open the plan's page is led to the student's.
func TestAlertsLeadToWhereTheyAreMended(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 1)
	r := begin()
	r.StaffRecipients = []string{"owner@saffron.school", "eve@saffron.school"}
	s.set(r)
	s.finish("6.5")
	s.pass(10)
	for to, page := range map[string]string{"owner@saffron.school": "plans/1/", "eve@saffron.school": "students/1/"} {
		var led string
		s.Scan(&led, `SELECT params ->> 'page' FROM emails WHERE type = 'plan_alert' AND recipient = $1`, to)
		check.Equal(t, "the page", led, "https://saffron.school/console/saffron/"+page, "%s", to)
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
	if n := s.Count(`emails WHERE type = 'plan_alert' AND params::text LIKE '%unfilled%'`); n != 1 {
		t.Errorf("%d alerts", n)
	}
	if p := s.set(plan.Request{}).TestPlan; check.True(t, "there is a next test", p.NextTest != nil, "%+v", p.NextTest) {
		check.Equal(t, "p.NextTest.State", p.NextTest.State, plan.Unfilled, "%+v", p.NextTest)
	}
	s.papers("full", 1)
	s.pass(1)
	s.want("baseline finished 03-01, mock opened 03-12")
}

func TestPapersThatTheStudentHasSeenAreNotGiven(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.Exec(`UPDATE catalog_items SET active = false WHERE id = 1`)
	s.Exec(`INSERT INTO starter_tests (organization_id, user_id, item_id, course_id, placed_at) VALUES (1, 1, 4, 1, now())`)
	s.Exec(`INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, attempt, state, updated_at) VALUES (1, 'test:x', 'test', 'ielts', 1, 2, 'practice', 'started', now())`)
	s.Exec(`INSERT INTO assignments (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, position, updated_at)
		VALUES (1, 1, 3, 'test', 'expired', 'api', true, now(), 1, now())`)
	s.Exec(`UPDATE assignment_positions SET last = 1, last_at = now() WHERE organization_id = 1`)
	s.set(begin())
	if n := s.Count(`plan_tests WHERE item_id = 5`); n != 1 {
		t.Errorf("another paper than the unseen one: %s", s.tests())
	}
}

// Somebody who has left the staff gets no mail about students. If no recipient is left, the default gets it.
// Reference: plans#plan-mails.
func TestResultsGoToWhoIsStaffStill(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	r := begin()
	r.StaffRecipients = []string{"owner@saffron.school", "eve@saffron.school"}
	s.set(r)
	notified := func() (to []string) {
		for _, m := range s.mails() {
			if address, is := strings.CutPrefix(m, "plan_result "); is {
				to = append(to, address)
			}
		}
		s.Exec(`DELETE FROM emails`)
		return to
	}
	next := func(score string) []string {
		s.finish(score)
		return notified()
	}
	if to := next("6.5"); !slices.Equal(to, r.StaffRecipients) {
		t.Errorf("at first: %v", to)
	}
	s.Exec(`UPDATE members SET status = 'inactive' WHERE user_id = 3`) // Eve
	s.pass(7)
	if to := next("6.5"); !slices.Equal(to, []string{"owner@saffron.school"}) {
		t.Errorf("once Eve has left: %v", to)
	}
	s.Exec(`UPDATE members SET role = 'teacher' WHERE user_id = 2`)
	s.Exec(`UPDATE members SET role = 'admin' WHERE user_id = 4`)
	s.pass(7)
	if to := next("6.5"); !slices.Equal(to, []string{"tom@saffron.school"}) {
		t.Errorf("with none of them left: %v", to)
	}
	if got := s.set(plan.Request{}).TestPlan.StaffRecipients; !slices.Equal(got, r.StaffRecipients) {
		t.Errorf("the setting has changed: %v", got)
	}
}
