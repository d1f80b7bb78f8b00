package journal_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// log is a database with one organization and one URL.
type log struct {
	t       *testing.T
	db      *pg.DB
	service webhook.Service
	org     id.Organization
	url     webhook.Endpoint
	now     time.Time
}

func newLog(t *testing.T) *log {
	t.Helper()
	box := sealtest.New(t)
	l := &log{t: t, db: pgtest.New(t), now: time.Now()}
	l.service = webhook.Service{DB: l.db, Box: box, Policy: egress.New(egress.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})}
	l.org = flowtest.On(t, l.db).Organization("one").ID
	address := "https://hooks.north-institute.org/"
	var err error
	l.url, _, err = l.service.Add(t.Context(), audit.Platform, l.org, webhook.Settings{URL: &address}, l.now)
	must(t, err)
	return l
}

// period is a recovery of that time.
func (l *log) period(since, until time.Time) journal.Recovery {
	return journal.Recovery{Organization: l.org, Endpoint: l.url.ID, Since: since, Until: until}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// record writes n events about the user.
func (l *log) record(n int, user id.User) {
	l.t.Helper()
	must(l.t, l.db.InTx(l.t.Context(), func(tx *pg.Tx) error {
		for i := range n {
			e := webhook.Event{Type: webhook.StudentJoined, User: user, Data: map[string]any{"email": fmt.Sprintf("student-%d@north-institute.org", user), "n": i}}
			if err := webhook.Record(l.t.Context(), tx, l.org, l.now, e); err != nil {
				return err
			}
		}
		return nil
	}))
}

// attempt leases what is due and settles it with one verdict; it returns what was leased.
func (l *log) attempt(verdict webhook.Verdict) []dispatch.Lease {
	l.t.Helper()
	l.now = l.now.Add(2 * time.Second)
	leases, _, err := dispatch.LeaseDue(l.t.Context(), l.db, l.now, 20*time.Second, nil)
	must(l.t, err)
	var outcomes []webhook.Outcome
	for _, lease := range leases {
		held, err := dispatch.Load(l.t.Context(), l.db, lease.Deliver)
		must(l.t, err)
		for _, d := range held[0].Dues {
			outcomes = append(outcomes, webhook.Outcome{Delivery: d.Delivery, Endpoint: lease.Endpoint, Organization: lease.Organization, Lease: d.Lease, Run: d.Run, Number: d.Number, Tries: d.Tries, Ping: d.Event.Type == webhook.Ping,
				StartedAt: l.now, Duration: 3 * time.Millisecond, Verdict: verdict, Cause: "http_410", Status: 410, Response: []byte("no " + fmt.Sprint(d.Number)),
				RequestHeaders: map[string]string{"X-Service-Event": string(d.Event.Type)}, Peer: "203.0.113.7:443",
				Timing: webhook.Timing{DNS: time.Millisecond, FirstByte: 2 * time.Millisecond}})
		}
	}
	must(l.t, l.db.InTx(l.t.Context(), func(tx *pg.Tx) error { return webhook.Settle(l.t.Context(), tx, outcomes) }))
	return leases
}

func (l *log) list(limit int, before id.Delivery, statuses ...webhook.Status) ([]journal.Delivery, bool) {
	l.t.Helper()
	list, err := journal.List(l.t.Context(), l.db, l.org, l.url.ID, journal.Filter{Statuses: statuses}, before, limit+1)
	must(l.t, err)
	return list[:min(limit, len(list))], len(list) > limit
}

func TestTheListWalksBackWithEveryAttempt(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.record(5, 7)
	l.attempt(webhook.Declined)
	var seen []id.Delivery
	var before id.Delivery
	for page := 0; ; page++ {
		list, more := l.list(2, before, webhook.StatusDeclined)
		for _, d := range list {
			a := d.Attempts[0]
			if check.Equal(t, "number of attempts", len(d.Attempts), 1, "attempts of %s: %+v", d.ID, d.Attempts) &&
				check.Equal(t, "a.Number", a.Number, 1, "attempts of %s: %+v", d.ID, d.Attempts) &&
				check.Equal(t, "*a.Status", *a.Status, 410, "attempts of %s: %+v", d.ID, d.Attempts) &&
				check.Equal(t, "the receiver's answer", string(a.Response), "no 1", "attempts of %s: %+v", d.ID, d.Attempts) &&
				check.Equal(t, "a.Peer", a.Peer, "203.0.113.7:443", "attempts of %s: %+v", d.ID, d.Attempts) &&
				check.Equal(t, "X-Service-Event", a.RequestHeaders["X-Service-Event"], "student.joined", "attempts of %s: %+v", d.ID, d.Attempts) &&
				check.Equal(t, "a.Timing.DNS", a.Timing.DNS, time.Millisecond, "attempts of %s: %+v", d.ID, d.Attempts) {
				check.Equal(t, "a.Duration", a.Duration, 3*time.Millisecond, "attempts of %s: %+v", d.ID, d.Attempts)
			}
			seen, before = append(seen, d.ID), d.ID
		}
		if !more {
			break
		}
	}
	if check.Equal(t, "number of deliveries", len(seen), 5, "the pages hold %d deliveries: %v", len(seen), seen) {
		check.True(t, "the latest comes first", slices.IsSortedFunc(seen, func(a, b id.Delivery) int { return -slices.Compare(a[:], b[:]) }), "the pages hold %d deliveries: %v", len(seen), seen)
	}
	if list, _ := l.list(10, id.Delivery{}, webhook.StatusDelivered, webhook.StatusWaiting); len(list) != 0 {
		t.Errorf("%d deliveries of other statuses", len(list))
	}
	if _, err := journal.Find(t.Context(), l.db, l.org+1, l.url.ID, seen[0]); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization's delivery: %v", err)
	}
	if _, err := journal.CheckStatuses([]string{"lost"}); !fault.Has(err, "unknown_status") {
		t.Errorf("an unknown status: %v", err)
	}
}

// Charts count by the hour: each attempt once, also when it is recorded twice, and no tests.
func TestHoursCountAttempts(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.now = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	first := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	l.record(3, 7)
	l.attempt(webhook.Retry)
	_, err := l.service.SendTest(t.Context(), audit.Platform, l.org, l.url.ID, l.now)
	must(t, err)
	l.attempt(webhook.Declined)
	l.now = l.now.Add(time.Hour)
	for range 3 { // one at a time, as the URL is failing
		l.attempt(webhook.Delivered)
	}
	list, _ := l.list(1, id.Delivery{}, webhook.StatusDelivered)
	again := webhook.Outcome{Delivery: list[0].ID, Endpoint: l.url.ID, Organization: l.org, Number: list[0].Attempts[1].Number, StartedAt: l.now, Verdict: webhook.Delivered}
	must(t, l.db.InTx(t.Context(), func(tx *pg.Tx) error { return webhook.Settle(t.Context(), tx, []webhook.Outcome{again}) }))
	hours := func(org id.Organization, since time.Time) string {
		t.Helper()
		all, err := journal.Hours(t.Context(), l.db, org, since)
		must(t, err)
		var words []string
		for _, h := range all {
			words = append(words, fmt.Sprintf("%d %s %d/%d", h.Endpoint-l.url.ID, h.At.UTC().Format("15:04"), h.Delivered, h.Failed))
		}
		return strings.Join(words, ", ")
	}
	check.Equal(t, "hours", hours(l.org, first), "0 09:00 0/3, 0 10:00 3/0", "")
	check.Equal(t, "hours from ten on", hours(l.org, first.Add(time.Minute)), "0 10:00 3/0", "")
	check.Equal(t, "another organization's hours", hours(l.org+1, first), "", "")
	_, err = journal.Drop(t.Context(), l.db, clock.Date{Year: 2026, Month: 3, Day: 1})
	must(t, err)
	check.Equal(t, "hours of a day that is kept", hours(l.org, first), "0 09:00 0/3, 0 10:00 3/0", "")
	_, err = journal.Drop(t.Context(), l.db, clock.Date{Year: 2026, Month: 3, Day: 2})
	must(t, err)
	check.Equal(t, "hours of a day that is dropped", hours(l.org, first), "", "")
}

func TestAResendIsANewAttemptOfTheSameEvent(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.record(1, 7)
	l.attempt(webhook.Declined)
	list, _ := l.list(1, id.Delivery{})
	for round := range 3 {
		must(t, journal.Resend(t.Context(), l.db, audit.Platform, l.org, l.url.ID, list[0].ID, l.now))
		verdict := webhook.Delivered
		if round == 1 {
			verdict = webhook.Declined
		}
		l.attempt(verdict)
	}
	d, err := journal.Find(t.Context(), l.db, l.org, l.url.ID, list[0].ID)
	must(t, err)
	if check.Equal(t, "d.Event", d.Event, list[0].Event, "after three resends: %+v", d) &&
		check.Equal(t, "d.Status", d.Status, webhook.StatusDelivered, "after three resends: %+v", d) {
		check.Equal(t, "number of attempts", len(d.Attempts), 4, "after three resends: %+v", d)
	}
	if err := journal.Resend(t.Context(), l.db, audit.Platform, l.org+1, l.url.ID, d.ID, l.now); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization's delivery: %v", err)
	}
	must(t, journal.Resend(t.Context(), l.db, audit.Platform, l.org, l.url.ID, d.ID, l.now))
	_, _, err = dispatch.LeaseDue(t.Context(), l.db, l.now, time.Minute, nil)
	must(t, err)
	if err := journal.Resend(t.Context(), l.db, audit.Platform, l.org, l.url.ID, d.ID, l.now); !fault.Has(err, "in_flight") {
		t.Errorf("a resend during an attempt: %v", err)
	}
}

func TestAResendReachesAURLThatIsOffAndIsNotRetriedThere(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.record(1, 7)
	_, err := l.service.SwitchOff(t.Context(), audit.Platform, l.org, l.url.ID, "by hand", l.now)
	must(t, err)
	must(t, webhook.Skip(t.Context(), l.db, l.url.ID, l.now))
	list, _ := l.list(1, id.Delivery{}, webhook.StatusSkipped)
	must(t, journal.Resend(t.Context(), l.db, audit.Platform, l.org, l.url.ID, list[0].ID, l.now))
	if got := l.attempt(webhook.Retry); len(got) != 1 {
		t.Fatalf("%d leases", len(got))
	}
	must(t, journal.Tidy(t.Context(), l.db, l.now))
	if list, _ := l.list(1, id.Delivery{}, webhook.StatusSkipped); check.Equal(t, "number of deliveries", len(list), 1, "afterwards: %+v", list) {
		check.Equal(t, "number of first delivery's attempts", len(list[0].Attempts), 1, "afterwards: %+v", list)
	}
}

// pending is the recovery's task as a worker is given it.
func (l *log) pending() task.Outbox {
	l.t.Helper()
	var ref task.Outbox
	must(l.t, l.db.QueryRow(l.t.Context(), `SELECT id, claims FROM outbox_tasks WHERE kind = $1`, task.WebhookRecover).Scan(&ref.Task, &ref.Claim))
	return ref
}

func TestARecoveryGoesInOrderAndSurvivesACrash(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	_, err := l.service.SwitchOff(t.Context(), audit.Platform, l.org, l.url.ID, "by hand", l.now)
	must(t, err)
	since := l.now.Add(-time.Minute)
	l.record(250, 7) // more than one step
	_, err = l.service.SendTest(t.Context(), audit.Platform, l.org, l.url.ID, l.now)
	must(t, err)
	l.attempt(webhook.Declined) // the ping, which is not recovered
	if _, err := journal.Recover(t.Context(), l.db, audit.Platform, l.period(since, l.now.Add(time.Minute)), l.now); !fault.Has(err, "switched_off") {
		t.Fatalf("a recovery of a URL that is off: %v", err)
	}
	_, err = l.service.TurnOn(t.Context(), audit.Platform, l.org, l.url.ID, l.now)
	must(t, err)
	run, err := journal.Recover(t.Context(), l.db, audit.Platform, l.period(since, l.now.Add(time.Minute)), l.now)
	must(t, err)
	check.Equal(check.Now(t), "total", run.Total, 250, "%+v", run)
	check.Equal(check.Now(t), "status", run.Status, "running", "%+v", run)
	if _, err := journal.Recover(t.Context(), l.db, audit.Platform, l.period(since, l.now), l.now); !fault.Has(err, "recovery_running") {
		t.Errorf("a second recovery: %v", err)
	}
	ref := l.pending()
	must(t, journal.Step(t.Context(), l.db, ref, l.now))
	must(t, journal.Step(t.Context(), l.db, ref, l.now)) // waits for the first two hundred
	var order []id.Delivery
	for step := 0; step < 60; step++ {
		for _, l := range l.attempt(webhook.Delivered) {
			if !l.InOrder {
				t.Fatalf("a lease out of order: %+v", l)
			}
			order = append(order, l.Deliveries...)
		}
		if step == 10 { // the worker that did the second step crashed; another has the claim
			must(t, l.move(ref))
			ref.Claim++
		}
		must(t, journal.Step(t.Context(), l.db, ref, l.now))
	}
	if check.Equal(t, "number of recovered deliveries", len(order), 250, "%d deliveries were recovered, want 250 in their order", len(order)) {
		check.True(t, "the oldest comes first", slices.IsSortedFunc(order, func(a, b id.Delivery) int { return slices.Compare(a[:], b[:]) }), "%d deliveries were recovered, want 250 in their order", len(order))
	}
	runs, err := journal.Recoveries(t.Context(), l.db, l.org, l.url.ID)
	must(t, err)
	if check.Equal(t, "number of runs", len(runs), 1, "recoveries: %+v", runs) &&
		check.Equal(t, "the first run's status", runs[0].Status, "done", "recoveries: %+v", runs) &&
		check.Equal(t, "the first run's number put back", runs[0].PutBack, 250, "recoveries: %+v", runs) &&
		check.Equal(t, "the first run's number waiting", runs[0].Waiting, 0, "recoveries: %+v", runs) {
		check.True(t, "the first run has ended", runs[0].FinishedAt != nil, "recoveries: %+v", runs)
	}
}

// A recovery may be of some events alone, and its resource may end it.
func TestARecoveryOfAResource(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	since, by := l.now.Add(-time.Minute), audit.Actor{Kind: audit.Operator, Name: "kubernetes/a/school/again"}
	_, err := l.service.SwitchOff(t.Context(), by, l.org, l.url.ID, "by hand", l.now)
	must(t, err)
	l.record(3, 7) // student.joined
	_, err = l.service.TurnOn(t.Context(), by, l.org, l.url.ID, l.now)
	must(t, err)
	recover := func(managedBy string, events ...webhook.Type) (journal.Recovery, error) {
		asked := l.period(since, l.now.Add(time.Minute))
		asked.ManagedBy, asked.Events = managedBy, events
		return journal.Recover(t.Context(), l.db, by, asked, l.now)
	}
	_, err = recover("first", "unknown")
	check.True(t, "an unknown event is refused", fault.Has(err, "unknown_event"), "%v", err)
	run, err := recover("first", webhook.StudentJoined)
	must(t, err)
	check.Equal(t, "total", run.Total, 3, "")
	managed, err := journal.Managed(t.Context(), l.db, "first")
	must(t, err)
	check.True(t, "it is the resource's", len(managed) == 1 && managed[0].ID == run.ID, "%+v", managed)
	must(t, journal.Stop(t.Context(), l.db, by, "second", l.now))
	must(t, journal.Stop(t.Context(), l.db, by, "first", l.now))
	ref := l.pending()
	must(t, journal.Step(t.Context(), l.db, ref, l.now))
	managed, err = journal.Managed(t.Context(), l.db, "first")
	must(t, err)
	check.Equal(t, "the state", managed[0].Status, journal.RecoveryStopped, "%+v", managed)
	check.Equal(t, "number put back", managed[0].PutBack, 0, "of one that was stopped")
	for _, c := range []struct {
		events []webhook.Type
		total  int
	}{{[]webhook.Type{webhook.EnrollmentEnded}, 0}, {[]webhook.Type{webhook.EnrollmentEnded, webhook.StudentJoined}, 3}} {
		run, err := recover("of "+string(c.events[len(c.events)-1]), c.events...)
		must(t, err)
		check.Equal(t, "total", run.Total, c.total, "%v", c.events)
		must(t, journal.Step(t.Context(), l.db, l.pending(), l.now))
		runs, err := journal.Recoveries(t.Context(), l.db, l.org, l.url.ID)
		must(t, err)
		check.Equal(t, "the state", runs[0].Status, journal.RecoveryDone, "%v", c.events)
		check.Equal(t, "number put back", runs[0].PutBack, c.total, "%v", c.events)
	}
}

func (l *log) move(ref task.Outbox) error {
	_, err := l.db.Exec(l.t.Context(), `UPDATE outbox_tasks SET claims = claims + 1 WHERE id = $1`, ref.Task)
	return err
}

func TestErasingAPersonLeavesNothingOfThem(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.record(2, 7)
	l.attempt(webhook.Declined)
	l.record(1, 7)
	l.record(1, 8)
	n, err := journal.Erase(t.Context(), l.db, audit.Platform, 7, l.now)
	must(t, err)
	if n != 3 {
		t.Errorf("%d events were erased, want 3", n)
	}
	var left int
	must(t, l.db.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM webhook_events WHERE user_id = 7 OR data::text LIKE '%student-7@%')
			+ (SELECT count(*) FROM webhook_journal WHERE response_body IS NOT NULL)`).Scan(&left))
	if left != 0 {
		t.Errorf("%d rows still speak of the person", left)
	}
	if list, _ := l.list(9, id.Delivery{}, webhook.StatusCancelled); len(list) != 1 {
		t.Errorf("%d deliveries were cancelled, want the one that had not left", len(list))
	}
	if list, _ := l.list(9, id.Delivery{}, webhook.StatusWaiting); len(list) != 1 {
		t.Errorf("%d deliveries wait, want the other person's", len(list))
	}
	list, _ := l.list(9, id.Delivery{}, webhook.StatusDeclined)
	if err := journal.Resend(t.Context(), l.db, audit.Platform, l.org, l.url.ID, list[0].ID, l.now); !fault.Has(err, "erased") {
		t.Errorf("a resend of an erased event: %v", err)
	}
}

func TestOldDaysAreDroppedUnlessSomethingWaits(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	old := clock.Date{Year: 2026, Month: 1, Day: 10}
	must(t, webhook.MakePartitions(t.Context(), l.db, old, 3))
	insert := func(day int, status string) {
		t.Helper()
		_, err := l.db.Exec(t.Context(), `
			WITH v AS (INSERT INTO webhook_events (id, organization_id, type, created_at, data)
				VALUES (uuid7_floor(make_timestamptz(2026, 1, $1, 12, 0, 0, 'UTC')), $2, 'student.joined', now(), '{}') RETURNING id)
			, queued AS (INSERT INTO webhook_queue (id, event_id, organization_id, endpoint_id, due_at, entries)
				SELECT id, id, $2, $3, now(), 1 FROM v WHERE $4 = 'waiting')
			INSERT INTO webhook_journal (delivery_id, number, event_id, organization_id, endpoint_id, status, started_at)
			SELECT id, 1, id, $2, $3, nullif($4, 'waiting'), now() FROM v`, day, l.org, l.url.ID, status)
		must(t, err)
	}
	insert(10, "delivered")
	insert(11, "waiting")
	insert(12, "delivered")
	insert(20, "delivered") // in the default partition
	insert(21, "waiting")
	for range 2 {
		_, err := journal.Drop(t.Context(), l.db, clock.Date{Year: 2026, Month: 3, Day: 1})
		must(t, err)
	}
	rows, err := l.db.Query(t.Context(), `SELECT extract(day FROM uuid7_time(id) AT TIME ZONE 'UTC')::int FROM webhook_states ORDER BY id`)
	must(t, err)
	var days []int
	for rows.Next() {
		var day int
		must(t, rows.Scan(&day))
		days = append(days, day)
	}
	if !slices.Equal(days, []int{11, 21}) {
		t.Errorf("deliveries are left of the days %v, want 11 and 21, which wait", days)
	}
	var events int
	must(t, l.db.QueryRow(t.Context(), `SELECT count(*) FROM webhook_events v JOIN webhook_journal j ON j.event_id = v.id`).Scan(&events))
	if events != 2 {
		t.Errorf("%d events are left of the two that wait", events)
	}
	must(t, webhook.MakePartitions(t.Context(), l.db, clock.Date{Year: 2026, Month: 1, Day: 21}, 1)) // takes the row out of the default
	var inDefault int
	must(t, l.db.QueryRow(t.Context(), `SELECT count(*) FROM webhook_journal_default`).Scan(&inDefault))
	if inDefault != 0 {
		t.Errorf("%d rows are left in the default partition", inDefault)
	}
	if got := l.attempt(webhook.Delivered); len(got) != 2 {
		t.Errorf("%d leases of the two that waited", len(got))
	}
}

func TestWhatWaitsForAURLThatIsGoneIsCancelled(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.record(3, 7)
	_, err := l.db.Exec(t.Context(), `DELETE FROM webhook_endpoints WHERE id = $1`, l.url.ID)
	must(t, err)
	must(t, journal.Tidy(t.Context(), l.db, l.now))
	if list, _ := l.list(9, id.Delivery{}, webhook.StatusCancelled); len(list) != 3 {
		t.Errorf("%d are cancelled, want 3", len(list))
	}
}

func TestTheMeasurementCountsWhatWaitsAndWhatNobodyMoves(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.record(5, 7)
	l.now = time.Now()
	m, err := journal.Measure(t.Context(), l.db, l.now.Add(time.Minute))
	must(t, err)
	if check.Equal(t, "number of backlogs", len(m.Backlogs), 1, "%+v", m) &&
		check.Equal(t, "the first backlog's organization", m.Backlogs[0].Organization, "one", "%+v", m) &&
		check.Equal(t, "the first backlog's number waiting", m.Backlogs[0].Waiting, 5, "%+v", m) &&
		check.True(t, "the oldest has waited 50 seconds at least", m.Backlogs[0].Oldest >= 50*time.Second, "%+v", m) &&
		check.Equal(t, "m.On", m.On, 1, "%+v", m) &&
		check.Equal(t, "m.Off", m.Off, 0, "%+v", m) &&
		check.Equal(t, "m.Allowance", m.Allowance, 8, "%+v", m) {
		check.Equal(t, "m.Unaccounted", m.Unaccounted, 0, "%+v", m)
	}
	_, _, err = dispatch.LeaseDue(t.Context(), l.db, l.now, time.Minute, nil)
	must(t, err)
	if m, err = journal.Measure(t.Context(), l.db, l.now); check.NoError(t, err, "under way: %+v, %v", m, err) &&
		check.Equal(t, "m.InFlight", m.InFlight, 5, "under way: %+v, %v", m, err) {
		check.Equal(t, "m.Unaccounted", m.Unaccounted, 0, "under way: %+v, %v", m, err)
	}
	if m, err = journal.Measure(t.Context(), l.db, l.now.Add(time.Hour)); check.NoError(t, err, "an hour after leases ran out: %+v, %v", m, err) {
		check.Equal(t, "m.Unaccounted", m.Unaccounted, 5, "an hour after leases ran out: %+v, %v", m, err)
	}
}

// What a program of the version before has left, or still records, is in the queue and in the journal
// afterwards, with its attempts. What its senders have in hand stays until they have settled it.
func TestWhatTheVersionBeforeLeftIsAdopted(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := l.db.Exec(t.Context(), sql, args...)
		must(t, err)
	}
	insert := func(status string, attempts int, lease string) {
		t.Helper()
		exec(`
			WITH v AS (INSERT INTO webhook_events (id, organization_id, type, created_at, data)
				VALUES (uuid7(), $1, 'student.joined', now(), '{}') RETURNING id
			), d AS (
				INSERT INTO webhook_deliveries (id, event_id, organization_id, endpoint_id, status, attempts, tries, due_at, finished_at, lease, lease_until)
				SELECT id, id, $1, $2, $3, $4::int, $4::int, $5, CASE WHEN $3::text NOT IN ('waiting', 'leased') THEN now() END,
					CASE WHEN $6::text <> '' THEN gen_random_uuid() END, now() + nullif($6, '')::interval
				FROM v RETURNING id
			)
			INSERT INTO webhook_attempts (delivery_id, number, endpoint_id, started_at, duration_us, outcome, cause, request_headers)
			SELECT v.id, n, $2, now(), 1000, CASE WHEN n = $4::int AND $3 = 'delivered' THEN 'delivered' ELSE 'retry' END, 'timeout', '{"A": "b"}'
			FROM v, generate_series(1, $4::int) AS n`, l.org, l.url.ID, status, attempts, l.now, lease)
	}
	exec(`ALTER TABLE webhook_deliveries DISABLE TRIGGER webhook_deliveries_to_queue`)
	insert("waiting", 2, "")
	insert("delivered", 3, "")
	insert("skipped", 0, "")
	insert("leased", 1, "1 hour")
	insert("leased", 1, "-1 hour")
	exec(`ALTER TABLE webhook_deliveries ENABLE TRIGGER webhook_deliveries_to_queue`)
	insert("waiting", 0, "") // by a program that still runs
	for range 2 {
		must(t, journal.Adopt(t.Context(), l.db))
	}
	states := func() string {
		t.Helper()
		list, _ := l.list(9, id.Delivery{})
		var states []string
		for _, d := range list {
			states = append(states, fmt.Sprintf("%s %d", d.Status, len(d.Attempts)))
		}
		slices.Sort(states)
		return strings.Join(states, ", ")
	}
	check.Equal(t, "deliveries with their attempts", states(), "delivered 3, skipped 0, waiting 0, waiting 1, waiting 2", "after the first time")
	exec(`UPDATE webhook_deliveries SET status = 'waiting', lease = NULL`) // its sender settles it
	must(t, journal.Adopt(t.Context(), l.db))
	if got := l.attempt(webhook.Delivered); len(got) == 0 {
		t.Error("nothing of it is due")
	}
	check.Equal(t, "deliveries with their attempts", states(), "delivered 1, delivered 2, delivered 2, delivered 3, delivered 3, skipped 0", "in the end")
	var left int
	must(t, l.db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM webhook_deliveries) + (SELECT count(*) FROM webhook_attempts)`).Scan(&left))
	check.Equal(t, "rows left", left, 0, "in the old tables")
}
