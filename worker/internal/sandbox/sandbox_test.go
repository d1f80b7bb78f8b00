package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	store "github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/worker/internal/sandbox"
)

var start = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// school is a sandbox with one organization, which has a webhook URL.
type school struct {
	*flowtest.Fixture
	t      testing.TB
	box    *seal.Box
	zone   *time.Location // the platform's
	who    org.Principal
	config sandbox.Config
	driver *sandbox.Driver
}

func newSchool(t testing.TB, retention int) *school {
	t.Helper()
	return newSchoolIn(t, time.UTC, retention)
}

func newSchoolIn(t testing.TB, zone *time.Location, retention int) *school {
	t.Helper()
	s := &school{Fixture: flowtest.New(t), t: t, box: sealtest.New(t), zone: zone}
	made := s.Organization("north").Set("starter_tests_per_course", 0)
	o, err := org.Find(t.Context(), s.Database, "north")
	check.NoError(check.Now(t), err, "%v", err)
	s.who = org.Principal{Organization: o, Key: org.Key{ID: 1, Access: org.Full}}
	url := "https://hooks.north-institute.org/"
	service := webhook.Service{DB: s.Database, Box: s.box, Policy: egress.New(egress.Config{})}
	_, _, err = service.Add(t.Context(), audit.Platform, made.ID, webhook.Settings{URL: &url}, start)
	check.NoError(check.Now(t), err, "%v", err)
	err = store.Start(t.Context(), s.Database, made.ID, start, clock.DateIn(start, time.UTC))
	check.NoError(check.Now(t), err, "%v", err)
	s.config = sandbox.Config{Box: s.box, Zone: zone, From: netmail.Address{Address: "no-reply@registrar.test"},
		PublicURL: "https://learn.test", WebhookRetention: retention, MaxSize: 1 << 30, Log: slog.New(slog.DiscardHandler), Real: clock.At(start)}
	s.driver = s.other(nil)
	return s
}

// other is another driver of the same sandbox, as another process has one.
func (s *school) other(send func(context.Context, task.Deliver) error) *sandbox.Driver {
	c := s.config
	c.Send = send
	return sandbox.New(s.Database, s.who.Organization.ID, c)
}

func (s *school) now() time.Time {
	s.t.Helper()
	c, err := store.Read(s.t.Context(), s.Database, s.who.Organization.ID)
	check.NoError(check.Now(s.t), err, "%v", err)
	return c.Now.UTC()
}

func (s *school) provision(c provision.Command) provision.Answer {
	s.t.Helper()
	mail, at := email.Service{Box: s.box, Caught: true}, clock.At(s.now())
	service := &provision.Service{DB: s.Database, Mail: mail, Clock: at, Zone: s.zone, PublicURL: "https://learn.test",
		Plans: &testplan.Service{DB: s.Database, Mail: mail, Clock: at, Zone: s.zone, PublicURL: "https://learn.test"}}
	a, err := service.Student(s.t.Context(), s.who, c)
	check.NoError(check.Now(s.t), err, "%v", err)
	return a
}

func (s *school) assign(email string, item id.Item, due string) {
	s.t.Helper()
	service := &assign.Service{DB: s.Database, Clock: s.now, Zone: s.zone}
	_, created, err := service.Assign(s.t.Context(), s.who.Organization, assign.Command{Who: student.Ref{Email: student.Email(email)}, Kind: "test", Item: item, DueDate: due})
	check.NoError(check.Now(s.t), err, "%v", err)
	check.True(check.Now(s.t), "it is new", created, "%s until %s", email, due)
}

// ask says where the clock is to go.
func (s *school) ask(to time.Time, r store.Receiver) {
	s.t.Helper()
	moved, err := store.Move(s.t.Context(), s.Database, s.who.Organization.ID, to, r)
	check.NoError(check.Now(s.t), err, "%v", err)
	check.True(check.Now(s.t), "the clock is moved", moved, "to %v", to)
}

func (s *school) move(to time.Time, r store.Receiver) {
	s.t.Helper()
	s.ask(to, r)
	check.NoError(check.Now(s.t), s.driver.Move(s.t.Context()), "moving to %v", to)
	check.Equal(s.t, "the clock", s.now(), to.UTC(), "after the move")
}

// list are the values of a statement's one column.
func (s *school) list(sql string) []string {
	s.t.Helper()
	found, err := pg.Column[string](s.t.Context(), s.Database, sql)
	check.NoError(check.Now(s.t), err, "%v", err)
	return found
}

func (s *school) events() []string {
	s.t.Helper()
	return s.list(`SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS ') || type FROM webhook_events ORDER BY sequence`)
}

func TestAYearHappensEachThingAtItsTime(t *testing.T) {
	t.Parallel()
	s := newSchool(t, 1000)
	item := s.Paper("ielts-1", "ielts")
	s.provision(provision.Command{Email: "ana@anywhere.example", FirstName: "Ana", Courses: []string{"ielts"}, TenureMonths: 2})
	s.assign("ana@anywhere.example", item, "2026-12-01")
	s.move(start.AddDate(1, 0, 0), store.Accepts)
	check.Slices(t, "events", s.events(), []string{
		"2026-11-21 10:00:00 student.joined",
		"2026-11-21 10:00:00 enrollment.created",
		"2026-11-21 10:00:00 assignment.created",
		"2026-12-02 00:00:00 assignment.overdue",
		"2027-01-14 00:00:00 enrollment.expiring",
		"2027-01-22 00:00:00 enrollment.updated",
		"2027-01-29 00:00:00 enrollment.ended",
	}, "of a year")
	check.Slices(t, "ids", s.list(`SELECT DISTINCT 'of another day' FROM webhook_events WHERE abs(extract(epoch FROM uuid7_time(id) - created_at)) > 1`), nil, "of events")
	check.Equal(t, "expired", s.Count("assignments WHERE status = 'expired' AND updated_at = '2027-01-01 00:00:00Z'"), 1, "assignments")
	check.Slices(t, "mails", s.list(`SELECT recipient || to_char(sent_at AT TIME ZONE 'UTC', ' YYYY-MM-DD HH24:MI:SS') FROM sandbox_mails ORDER BY email_id`),
		[]string{"ana@anywhere.example 2026-11-21 10:00:00"}, "that were caught")
	check.Equal(t, "deliveries", s.Count("webhook_queue"), 0, "that wait")
}

func TestWhatIsOldIsDropped(t *testing.T) {
	t.Parallel()
	s := newSchool(t, 30)
	s.provision(provision.Command{Email: "ana@anywhere.example", FirstName: "Ana"})
	s.move(time.Date(2026, 12, 21, 10, 0, 0, 0, time.UTC), store.Accepts)
	check.Equal(t, "entries", s.Count("webhook_journal"), 1, "after 30 days")
	s.move(time.Date(2026, 12, 22, 20, 0, 0, 0, time.UTC), store.Accepts) // the daily work is done at 19:30 UTC
	check.Equal(t, "entries", s.Count("webhook_journal"), 0, "after 31 days")
	check.Equal(t, "events", s.Count("webhook_events"), 0, "after 31 days")
}

// Reference: webhooks#delivery-and-retries.
func TestRetriesComeAtTheirTimes(t *testing.T) {
	t.Parallel()
	s := newSchool(t, 1000)
	s.provision(provision.Command{Email: "ana@anywhere.example", FirstName: "Ana"})
	s.move(start.AddDate(0, 0, 1), store.Fails)
	check.Slices(t, "attempts", s.list(`
		SELECT extract(epoch FROM date_trunc('minute', started_at) - '2026-11-21 10:00:00Z')::int / 60 || ' ' || coalesce(status, '-')
		FROM webhook_journal ORDER BY number`), []string{
		"0 -", "1 -", "3 -", "7 -", "15 -", "31 -", "63 -", "123 -", "183 -", "243 -", "303 -", "363 exhausted",
	}, "in minutes")
}

// Reference: webhooks#switching-off.
func TestAReceiverThatNeverAnswersIsSwitchedOff(t *testing.T) {
	t.Parallel()
	s := newSchool(t, 1000)
	for n := range 10 {
		s.provision(provision.Command{Email: fmt.Sprintf("s%d@anywhere.example", n), FirstName: "S", Courses: []string{"ielts"}})
	}
	s.move(start.AddDate(0, 1, 0), store.Fails)
	check.Equal(t, "attempts", s.Count("webhook_journal WHERE outcome IS NOT NULL"), webhook.SwitchOffAfter, "")
	check.Equal(t, "URLs", s.Count("webhook_endpoints WHERE switched_on"), 0, "that are on")
	check.Equal(t, "deliveries", s.Count("webhook_queue"), 0, "that wait")
}

// What is sent in order is attempted one after the other, so a receiver that is down is not asked for all of it.
func TestWhatIsSentInOrderWaitsForASuccess(t *testing.T) {
	t.Parallel()
	s := newSchool(t, 1000)
	for n := range 10 {
		s.provision(provision.Command{Email: fmt.Sprintf("s%d@anywhere.example", n), FirstName: "S", Courses: []string{"ielts"}})
	}
	s.Exec(`UPDATE webhook_queue SET in_order = true`)
	s.move(start.Add(time.Second), store.Fails)
	check.Equal(t, "attempts", s.Count("webhook_journal"), webhook.ProbeAfter, "until the receiver counts as failing")
}

// A process that ends in the middle leaves nothing undone and does nothing twice.
func TestAMoveThatIsBrokenOffGoesOn(t *testing.T) {
	t.Parallel()
	var want []string
	for _, broken := range []bool{false, true} {
		s := fiveWithPlans(t)
		s.ask(start.AddDate(0, 6, 0), store.Fails)
		breaks := 0
		for patience := 5 * time.Millisecond; ; patience += 5 * time.Millisecond {
			ctx, cancel := context.WithCancel(t.Context())
			if broken {
				ctx, cancel = context.WithTimeout(t.Context(), patience)
			}
			err := s.driver.Move(ctx)
			cancel()
			if err == nil {
				break
			}
			if breaks++; !broken || ctx.Err() == nil {
				t.Fatal(err)
			}
		}
		got := slices.Concat(
			s.list(`SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US ') || type || regexp_replace(data::text, 'test-assignment:[0-9]+', 'an assignment', 'g') FROM webhook_events ORDER BY sequence`),
			s.list(`SELECT to_char(sent_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US ') || recipient || ' ' || subject FROM sandbox_mails ORDER BY sent_at, recipient, subject`),
			s.list(`SELECT kind || to_char(run_at AT TIME ZONE 'UTC', ' YYYY-MM-DD HH24:MI:SS.US') FROM outbox_tasks ORDER BY 1`),
			s.list(`SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US ') || event FROM plan_history ORDER BY at, plan_id, id`))
		check.True(t, "there are mails", s.Count("sandbox_mails") > 0, "none was caught")
		if !broken {
			want = got
			check.True(t, "much has happened", len(want) > 50, "%q", want)
			continue
		}
		check.True(t, "it was broken off", breaks > 3, "%d times", breaks)
		check.Slices(t, "what happened", got, want, "in a move that was broken off %d times", breaks)
	}
}

// until waits until a statement's answer is true.
func (s *school) until(sql string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for range clock.Ticks(ctx, 10*time.Millisecond) {
		var yes bool
		if s.Scan(&yes, sql); yes {
			return
		}
	}
	s.t.Fatalf("not true within a minute: %s", sql)
}

// withPlans makes a school with papers and students, who have test plans until an exam.
func withPlans(t testing.TB, retention, papers, students int, exam clock.Date, tenure func(student int) int) *school {
	t.Helper()
	s := newSchool(t, retention)
	for n := range papers {
		s.Paper(fmt.Sprint("ielts-", n), "ielts")
	}
	yes, zone, score := true, "Asia/Kolkata", decimal.Whole(7)
	for n := range students {
		s.provision(provision.Command{Email: fmt.Sprintf("s%d@anywhere.example", n), FirstName: "S", Courses: []string{"ielts"}, TenureMonths: tenure(n),
			Plan: &plan.Request{TargetScore: &score, TestPlan: &yes, TimeZone: &zone, ExamDate: &exam}})
	}
	return s
}

// fiveWithPlans have courses of four months.
func fiveWithPlans(t testing.TB) *school {
	t.Helper()
	return withPlans(t, 1000, 6, 5, clock.Date{Year: 2027, Month: time.March, Day: 1}, func(int) int { return 4 })
}

// A process that stands still in the middle of a transaction, and whose turn is over, keeps its locks for a while. The clock
// waits for it; it does not run past what is locked.
func TestTheClockWaitsForWhatOthersHaveInHand(t *testing.T) {
	t.Parallel()
	want := fiveWithPlans(t)
	want.move(start.AddDate(0, 3, 0), store.Accepts)
	s := fiveWithPlans(t)
	s.ask(start.AddDate(0, 3, 0), store.Accepts)
	frozen, err := s.Database.Begin(t.Context())
	check.NoError(check.Now(t), err, "%v", err)
	defer func() { _ = frozen.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = frozen.Exec(t.Context(), `SELECT FROM plans FOR UPDATE`)
	check.NoError(check.Now(t), err, "%v", err)
	moved := make(chan error)
	go func() { moved <- s.driver.Move(t.Context()) }()
	s.until(`SELECT mover > 0 AND now_at = (SELECT min(next_run_at) FROM plans) FROM sandbox_clock`) // it waits for the transaction first
	check.NoError(check.Now(t), frozen.Rollback(t.Context()), "")
	check.NoError(check.Now(t), <-moved, "")
	check.Slices(t, "events", s.events(), want.events(), "beside a process that stood still")
}

// A process that stood still while another went on with its sandbox changes the clock no more: it would end a move that
// was asked for since.
func TestWhoMovedTheClockBeforeMovesItNoMore(t *testing.T) {
	t.Parallel()
	s := newSchool(t, 1000)
	s.provision(provision.Command{Email: "ana@anywhere.example", FirstName: "Ana"})
	reached, goOn := make(chan struct{}), make(chan struct{})
	slow := s.other(func(context.Context, task.Deliver) error {
		close(reached)
		<-goOn
		return nil
	})
	s.ask(start, store.Real) // what is due by now
	moved := make(chan error)
	go func() { moved <- slow.Move(t.Context()) }()
	<-reached
	s.driver = s.other(func(context.Context, task.Deliver) error {
		s.Exec(`DELETE FROM webhook_queue`)
		s.Exec(`DELETE FROM webhook_leases`)
		return nil
	})
	check.NoError(check.Now(t), s.driver.Move(t.Context()), "")
	check.Equal(t, "the clock", s.now(), start, "moved by another process")
	s.ask(start.AddDate(0, 0, 1), store.Accepts)
	close(goOn)
	err := <-moved
	check.True(t, "it is refused", err != nil && strings.Contains(err.Error(), "another process"), "%v", err)
	c, err := store.Read(t.Context(), s.Database, s.who.Organization.ID)
	check.NoError(check.Now(t), err, "%v", err)
	check.True(t, "the later move is still asked for", c.Target != nil && c.Target.Equal(start.AddDate(0, 0, 1)), "%+v", c)
	check.NoError(check.Now(t), s.driver.Move(t.Context()), "")
	check.Equal(t, "the clock", s.now(), start.AddDate(0, 0, 1), "after the later move")
}

// A year of a hundred students with test plans, who do the tests that they are given at the end of each month.
// Receivers fail in every third month.
func BenchmarkAYear(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := withPlans(b, 30, 8, 100, clock.Date{Year: 2027, Month: time.October, Day: 1}, func(n int) int { return 2 + n%10 })
		b.StartTimer()
		for month := range 12 {
			s.move(start.AddDate(0, month+1, 0), []store.Receiver{store.Accepts, store.Accepts, store.Fails}[month%3])
			s.work()
		}
		b.ReportMetric(float64(s.Count("plan_tests")), "tests/year")
	}
}

// work has every student do what is assigned.
func (s *school) work() {
	s.t.Helper()
	works := &work.Service{DB: s.Database, Clock: clock.At(s.now()), Zone: time.UTC, PublicURL: "https://learn.test"}
	type row struct {
		ID   id.Assignment
		User id.User
		Item id.Item
	}
	open, err := pg.List[row](s.t.Context(), s.Database, `SELECT id, user_id AS user, item_id AS item FROM assignments WHERE status = 'pending' ORDER BY id`)
	check.NoError(check.Now(s.t), err, "%v", err)
	score := decimal.Whole(6)
	for _, a := range open {
		_, err := works.Result(s.t.Context(), work.Record{Kind: catalog.Test, Session: fmt.Sprint("s", a.ID), Organization: "north", User: a.User, Item: a.Item,
			Assignment: fmt.Sprint(a.ID), State: result.Finished, Mark: catalog.Mark{Score: &score}})
		check.NoError(check.Now(s.t), err, "%v", err)
	}
}
