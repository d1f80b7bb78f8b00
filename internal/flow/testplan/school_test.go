package testplan_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

var start = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// school is an organization with a student in an IELTS course, and a clock of its own.
type school struct {
	*testplan.Service
	*flowtest.Fixture
	t       *testing.T
	now     time.Time
	who     org.Principal
	student student.Account
}

func newSchool(t *testing.T) *school {
	t.Helper()
	box := sealtest.New(t)
	s := &school{t: t, now: start, Fixture: flowtest.New(t)}
	s.Service = &testplan.Service{DB: s.Database, Mail: email.Service{Box: box}, Clock: func() time.Time { return s.now },
		Log: slog.New(slog.DiscardHandler), Zone: time.UTC, PublicURL: "https://saffron.school", BrowserAvailable: true}
	saffron := s.Organization("saffron").Set("name", "Saffron School")
	s.who = org.Principal{Organization: org.Organization{ID: 1, Name: "Saffron School"}, Key: org.Key{Name: "CRM"}}
	for _, p := range []struct{ email, name, role string }{
		{"ada@saffron.school", "Ada", "member"}, {"owner@saffron.school", "Omar", "owner"}, {"eve@saffron.school", "Eve", "examiner"},
		{"tom@saffron.school", "Tom", "teacher"},
	} {
		saffron.Add(s.Account(p.email, p.name, "Lovelace"), p.role, "active")
	}
	var err error
	if s.student, err = student.Find(t.Context(), s.DB, 1); err != nil {
		t.Fatal(err)
	}
	s.enroll("ielts", "Morning batch")
	return s
}

func (s *school) enroll(typ, name string) {
	o := s.Of(1)
	o.Enroll(1, o.Course(typ, name), "2027-02-01", "2027-08-01")
}

// papers adds n tests of the scope to the catalog.
func (s *school) papers(scope string, n int) {
	for i := range n {
		s.Exec(`INSERT INTO catalog_items (organization_id, kind, code, title, type, scope, max_score_e4, created_at, updated_at)
			VALUES (1, 'test', $1, $2, 'ielts', $3, 90000, now(), now())`, fmt.Sprintf("%s-%d-%d", scope, s.Count("catalog_items"), i), "Paper "+scope, scope)
	}
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
		answer, warnings, err = s.Set(s.t.Context(), tx, testplan.Call{Who: s.who, Account: s.student, Moves: moves, Request: &r, Now: s.now})
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
	s.Exec(`WITH a AS (UPDATE assignments SET status = 'completed', completed_at = $1, result_ref = 'test:' || id
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

// touch queues a step and lets a worker do it.
func (s *school) touch() {
	s.t.Helper()
	err := s.DB.InTx(s.t.Context(), func(tx *pg.Tx) error {
		return plan.TouchTests(s.t.Context(), tx, []id.Organization{1}, s.now, s.given()...)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.work(s.t.Context())
}

// touchCourse is what every change of an enrollment does.
func (s *school) touchCourse() {
	s.t.Helper()
	err := s.DB.InTx(s.t.Context(), func(tx *pg.Tx) error { return plan.TouchEnrollments(s.t.Context(), tx, 1, s.now, 1) })
	if err != nil {
		s.t.Fatal(err)
	}
	s.work(s.t.Context())
}

func (s *school) work(ctx context.Context) {
	s.t.Helper()
	claimed, err := outbox.Claim(ctx, s.DB, task.PlanStep, s.now, time.Minute, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range claimed {
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
