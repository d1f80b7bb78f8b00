package testplan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// updates are the mails with which the student was notified of drills and due dates, each as
// "Reading drill 03-07; Mock exam 03-09".
func (s *school) updates() []string {
	s.t.Helper()
	rows, err := s.DB.Query(s.t.Context(), `SELECT recipient, params FROM emails WHERE type = 'plan_update' ORDER BY id`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	all := []string{}
	for rows.Next() {
		var to string
		var params []byte
		var mail email.PlanUpdate
		if err := rows.Scan(&to, &params); err != nil {
			s.t.Fatal(err)
		}
		if err := json.Unmarshal(params, &mail); err != nil {
			s.t.Fatal(err)
		}
		check.Equal(s.t, "recipient", to, "ada@saffron.school", "%s", params)
		zone, err := time.LoadLocation(mail.TimeZone)
		if err != nil {
			s.t.Fatal(err)
		}
		var tasks []string
		for _, t := range mail.Tasks {
			name := t.Test
			if t.Drill != "" {
				name = t.Drill + " drill"
			}
			tasks = append(tasks, fmt.Sprintf("%s %s", name, t.Due.In(zone).Format("01-02 15:04")))
		}
		slices.Sort(tasks)
		all = append(all, strings.Join(tasks, "; "))
	}
	return all
}

func (s *school) wantUpdates(want ...string) {
	s.t.Helper()
	if got := s.updates(); !slices.Equal(got, want) {
		s.t.Errorf("the student was notified of %q, want %q", got, want)
	}
}

// drilled is a school whose student has got two drills, due on 7 March.
func drilled(t *testing.T) *school {
	t.Helper()
	s := newSchool(t)
	s.papers("full", 9)
	s.papers("listening", 4)
	s.papers("reading", 4)
	r := begin()
	r.ExamDate = new(clock.DateOf(2027, 6, 1))
	s.set(r)
	s.finish("6.5")
	return s
}

const bothDrills = "Listening drill 03-07 23:59; Reading drill 03-07 23:59"

// Reference: plans#plan-mails.
func TestTheStudentIsToldOfDrills(t *testing.T) {
	t.Parallel()
	s := drilled(t)
	s.wantUpdates(bothDrills)
	s.pass(3)
	s.wantUpdates(bothDrills)
}

// Reference: plans#plan-mails.
func TestTheStudentIsToldThatATestIsDueEarlier(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	r := begin()
	r.ExamDate = new(clock.DateOf(2027, 6, 1))
	s.set(r)
	s.exam(time.March, 5) // the last test day is the 2nd, and the baseline was due on the 3rd
	s.wantUpdates("Baseline 03-02 23:59")
}

// There is one mail a day; what comes later on the day waits for the next one.
func TestNewsOfADayIsBundled(t *testing.T) {
	t.Parallel()
	s := drilled(t)
	s.pass(7) // the mock is open from the 8th to the 10th
	s.finish("6")
	mailed := s.updates()
	if len(mailed) != 2 {
		t.Fatalf("notified of %q, want two mails", mailed)
	}
	if _, err := s.OpenTest(t.Context(), audit.Platform, 1); err != nil { // the next one, due on the 10th
		t.Fatal(err)
	}
	s.exam(time.March, 12) // it is due on the 9th now
	if got := s.updates(); len(got) != 2 {
		t.Errorf("a second mail on one day: %q", got)
	}
	s.pass(1)
	mailed = append(mailed, "Skills check: Listening 03-09 23:59")
	s.wantUpdates(mailed...)
	s.pass(1)
	s.wantUpdates(mailed...)
}

// News that cannot wait for tomorrow is mailed at once.
func TestNewsThatIsDueTodayDoesNotWait(t *testing.T) {
	t.Parallel()
	s := drilled(t)
	s.pass(7)
	s.finish("6")
	if _, err := s.OpenTest(t.Context(), audit.Platform, 1); err != nil {
		t.Fatal(err)
	}
	before := len(s.updates())
	s.exam(time.March, 11) // the last test day is today, the 8th
	got := s.updates()
	if len(got) != before+1 {
		t.Fatalf("notified of %q", got)
	}
	if want := "Skills check: Listening 03-08 23:59"; got[before] != want {
		t.Errorf("notified of %q, want %q", got[before], want)
	}
}

// What was done meanwhile is not mailed on the next day.
func TestNewsThatIsOverIsNotTold(t *testing.T) {
	t.Parallel()
	s := drilled(t)
	s.Exec(`DELETE FROM emails`)
	s.Exec(`UPDATE plans SET news = '[{"slot": 1, "section": "reading", "paper": 14, "due_on": "2027-03-07"},
		{"slot": 1, "section": "listening", "paper": 10, "due_on": "2027-03-07"}]'`)
	s.Exec(`UPDATE assignments SET status = 'completed' WHERE id = (SELECT assignment_id FROM plan_drills WHERE section = 'reading')`)
	s.Exec(`UPDATE plans SET next_run_at = $1`, s.now.Add(24*time.Hour))
	s.pass(1)
	s.wantUpdates("Listening drill 03-07 23:59")
}

// A call with send_welcome_email false mails no news of what it does.
func TestAQuietCallTellsTheStudentNothing(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	r := plan.Request{ExamDate: new(clock.DateOf(2027, 3, 5))}
	err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		_, _, err := s.Set(t.Context(), tx, testplan.Call{Who: s.who, Account: s.student, Moves: s.moves(), Request: &r, Now: s.now, Quiet: true})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.wantDates("2027-03-01 2027-03-02 2027-03-02T18:29")
	s.pass(1)
	s.wantUpdates()
}

// Reference: plans#plan-end.
func TestClosingAPlanTakesItsDrillsBack(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*school){
		"by a call":  func(s *school) { s.set(plan.Request{TestPlan: new(false)}) },
		"by itself":  func(s *school) { s.Exec(`UPDATE enrollments SET state = 'completed'`); s.touchCourse() },
		"after exam": func(s *school) { s.exam(time.March, 5); s.pass(5) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := drilled(t)
			s.Exec(`UPDATE assignments SET status = 'in_progress' WHERE id = (SELECT assignment_id FROM plan_drills WHERE section = 'reading')`)
			end(s)
			if n := s.Count(`plans WHERE status = 'closed'`); n != 1 {
				t.Fatalf("the plan goes on: %v", s.events())
			}
			var states string
			s.Scan(&states, `SELECT string_agg(d.section || ' ' || a.status, ', ' ORDER BY d.section)
				FROM plan_drills d JOIN assignments a ON a.id = d.assignment_id`)
			if want := "listening expired, reading in_progress"; states != want {
				t.Errorf("the drills are %s, want %s", states, want)
			}
		})
	}
}

// Reference: plans#rules.
func TestTheHistorySaysWhatWasChanged(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	s.set(plan.Request{Pace: new(plan.Light), ExamDate: new(clock.DateOf(2027, 6, 1))})
	var values string
	s.Scan(&values, `SELECT (detail -> 'values')::text FROM plan_history WHERE event = 'updated'`)
	if want := `{"exam_date":{"from":null,"to":"2027-06-01"},"pace":{"from":"standard","to":"light"}}`; values != want {
		t.Errorf("the values are %s, want %s", values, want)
	}
	if _, err := s.SkipTest(t.Context(), audit.Platform, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenTest(t.Context(), audit.Platform, 1); err != nil {
		t.Fatal(err)
	}
	for event, want := range map[string]string{"test_skipped": "1 baseline 2027-03-01", "test_opened_today": "2 baseline 2027-03-01"} {
		var got string
		s.Scan(&got, `SELECT concat_ws(' ', detail ->> 'slot', detail ->> 'kind', detail ->> 'opens_on') FROM plan_history WHERE event = $1`, event)
		if got != want {
			t.Errorf("%s has %q, want %q", event, got, want)
		}
	}
}

// The exam has been by the time that its result is known (reference: plans#rules).
func TestAnOfficialResultIsNotOfTheFuture(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	s.now = time.Date(2027, 3, 1, 20, 0, 0, 0, time.UTC) // the 2nd in Kolkata
	if _, err := s.RecordOfficial(t.Context(), audit.Platform, 1, plan.Official{Score: num("7"), On: clock.DateOf(2027, 3, 3)}); !fault.Has(err, "in_the_future") {
		t.Errorf("tomorrow's result gives %v", err)
	}
	if _, err := s.RecordOfficial(t.Context(), audit.Platform, 1, plan.Official{Score: num("7"), On: clock.DateOf(2027, 3, 2)}); err != nil {
		t.Errorf("today's result gives %v", err)
	}
}
