package activity_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// noon is 12:00 in India.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, activity.Zone)

var today = clock.DateIn(noon, activity.Zone)

// school makes two organizations; north has the students 1 to n, staff n+1 and a former
// member n+2, south the student n+3.
func school(t testing.TB, n int) *pg.DB {
	t.Helper()
	f := flowtest.New(t)
	north, south := f.Organization("north"), f.Organization("south")
	north.Students(n)
	north.Member("teacher@x.org", "teacher")
	north.Add(f.Account("former@x.org", "Former", ""), "member", "inactive")
	south.Student("south@x.org")
	return f.Database
}

func report(i int, slug string, user id.User, at time.Time, kind activity.Kind) activity.Report {
	return activity.Report{Index: i, Organization: slug, User: user, Event: activity.Event{At: at, Kind: kind}}
}

func record(t testing.TB, db *pg.DB, now time.Time, reports ...activity.Report) activity.Receipt {
	t.Helper()
	receipt, err := activity.Record(t.Context(), db, reports, now)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// register is the whole register of a day: minutes by user.
// wantRegister checks a register's minutes, which are those of user 1, of user 2 and so on.
func wantRegister(t testing.TB, got map[id.User]int, minutes ...int) {
	t.Helper()
	want := map[id.User]int{}
	for i, n := range minutes {
		want[id.User(i+1)] = n
	}
	check.Equal(t, "the register", fmt.Sprint(got), fmt.Sprint(want), "minutes by user")
}

func register(t testing.TB, db *pg.DB, day clock.Date) map[id.User]int {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT user_id, active_minutes FROM activity_days WHERE date = $1`, day)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	minutes := map[id.User]int{}
	for rows.Next() {
		var user id.User
		var n int
		if err := rows.Scan(&user, &n); err != nil {
			t.Fatal(err)
		}
		minutes[user] = n
	}
	return minutes
}

func compileDue(t testing.TB, db *pg.DB, now time.Time) []activity.Compiled {
	t.Helper()
	days, err := activity.CompileDue(t.Context(), db, now)
	if err != nil {
		t.Fatal(err)
	}
	return days
}

func TestEventsAreTakenOrRefusedOneByOne(t *testing.T) {
	t.Parallel()
	db := school(t, 2)
	receipt := record(t, db, noon,
		report(0, "north", 1, noon, activity.Visit),
		report(1, "nowhere", 1, noon, activity.Visit),
		report(2, "south", 1, noon, activity.Visit),             // another organization's student
		report(3, "north", 3, noon, activity.Visit),             // staff
		report(4, "north", 4, noon, activity.Visit),             // has left, and may have been here before
		report(5, "north", 99, noon, activity.Visit),            // nobody
		report(6, "north", 1, noon, "breath"),                   // unknown
		report(7, "north", 1, noon.Add(6*time.Minute), "visit"), // in the future
		report(8, "north", 1, noon.AddDate(0, 0, -93), "visit"), // too old
		report(9, "north", 2, noon.Add(4*time.Minute), activity.Heartbeat),
		report(10, "north", 2, noon.AddDate(0, 0, -92), activity.Heartbeat),
	)
	if check.Equal(t, "receipt.Accepted", receipt.Accepted, 4, "receipt %+v", receipt) {
		check.Equal(t, "receipt.Late", receipt.Late, 0, "receipt %+v", receipt)
	}
	want := []string{"1 not_found", "2 not_a_student", "3 not_a_student", "5 not_a_student", "6 not_a_choice", "7 in_the_future", "8 too_old"}
	var got []string
	for _, r := range receipt.Refused {
		got = append(got, fmt.Sprint(r.Index, " ", r.Fault.Code))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

// Reference: activity#activity-days.
func TestADayIsCompiledOnceItIsOverAndLateEventsAreReported(t *testing.T) {
	t.Parallel()
	db := school(t, 3)
	midnight := clock.DayStart(today.AddDays(1), activity.Zone)
	lastMoment := report(0, "north", 1, midnight.Add(-time.Millisecond), activity.Heartbeat)
	record(t, db, noon, report(0, "north", 1, noon, activity.Visit), report(1, "north", 2, noon, activity.Visit))
	if days := compileDue(t, db, noon); check.Equal(check.Now(t), "number of days", len(days), 1, "at noon of the first day: %+v", days) &&
		check.Equal(check.Now(t), "the first day's date", days[0].Date, today.AddDays(-1), "at noon of the first day: %+v", days) {
		check.Equal(check.Now(t), "the first day's rows", days[0].Rows, 0, "at noon of the first day: %+v", days)
	}
	if len(register(t, db, today)) != 0 {
		t.Error("today's register is there before the day is over")
	}
	if r := record(t, db, midnight.Add(time.Minute), lastMoment, report(1, "north", 1, midnight, activity.Visit)); r.Late != 0 {
		t.Errorf("a minute after the end: %+v", r)
	}
	if days := compileDue(t, db, midnight.Add(4*time.Minute)); len(days) != 0 {
		t.Errorf("compiled before it has settled: %+v", days)
	}
	days := compileDue(t, db, midnight.Add(5*time.Minute))
	check.Equal(check.Now(t), "number of days", len(days), 1, "compiled %+v", days)
	check.Equal(check.Now(t), "the first day's date", days[0].Date, today, "compiled %+v", days)
	check.Equal(check.Now(t), "the first day's rows", days[0].Rows, 2, "compiled %+v", days)
	check.Equal(check.Now(t), "the first day's events", days[0].Events, 3, "compiled %+v", days)
	wantRegister(t, register(t, db, today), 2, 1)
	if days := compileDue(t, db, midnight.Add(6*time.Minute)); len(days) != 0 {
		t.Errorf("compiled again: %+v", days)
	}
	late := record(t, db, midnight.Add(6*time.Minute), lastMoment, report(1, "north", 3, noon, activity.Visit),
		report(2, "north", 3, midnight, activity.Visit), report(3, "north", 3, noon.AddDate(0, 0, -40), activity.Visit))
	if check.Equal(t, "late.Accepted", late.Accepted, 4, "late ones: %+v", late) &&
		check.Equal(t, "late.Late", late.Late, 3, "late ones: %+v", late) {
		check.Equal(t, "late days", fmt.Sprint(late.LateDays), fmt.Sprint([]clock.Date{today.AddDays(-40), today}), "late ones: %+v", late)
	}
	if len(register(t, db, today)) != 2 {
		t.Error("a late event changed the register by itself")
	}
	for range 2 {
		if _, err := activity.Compile(t.Context(), db, today, midnight.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		wantRegister(t, register(t, db, today), 2, 1, 1) // with the late ones
	}
}

func TestCompilationCatchesUp(t *testing.T) {
	t.Parallel()
	db := school(t, 1)
	record(t, db, noon, report(0, "north", 1, noon.AddDate(0, 0, -3), activity.Visit), report(1, "north", 1, noon, activity.Visit))
	if days := compileDue(t, db, noon); check.Equal(check.Now(t), "number of days", len(days), 3, "from the first event on: %+v", days) &&
		check.Equal(check.Now(t), "the first day's date", days[0].Date, today.AddDays(-3), "from the first event on: %+v", days) {
		check.Equal(check.Now(t), "the first day's rows", days[0].Rows, 1, "from the first event on: %+v", days)
	}
	days := compileDue(t, db, noon.AddDate(0, 0, 10))
	check.Equal(check.Now(t), "number of days", len(days), 10, "after ten days: %+v", days)
	check.Equal(check.Now(t), "the first day's date", days[0].Date, today, "after ten days: %+v", days)
	check.Equal(check.Now(t), "the first day's rows", days[0].Rows, 1, "after ten days: %+v", days)
	check.Equal(check.Now(t), "the tenth day's rows", days[9].Rows, 0, "after ten days: %+v", days)
}

func TestTodayMayBeCompiledAndNoDayBeyondWhatIsKept(t *testing.T) {
	t.Parallel()
	db := school(t, 1)
	record(t, db, noon, report(0, "north", 1, noon, activity.Visit))
	if c, err := activity.Compile(t.Context(), db, today, noon); check.NoError(t, err, "today: %+v, %v", c, err) {
		check.Equal(t, "c.Rows", c.Rows, 1, "today: %+v, %v", c, err)
	}
	if r := record(t, db, noon, report(0, "north", 1, noon.Add(time.Minute), activity.Visit)); r.Late != 0 {
		t.Errorf("a day that goes on has a late event: %+v", r)
	}
	for _, day := range []clock.Date{today.AddDays(1), today.AddDays(-93)} {
		if _, err := activity.Compile(t.Context(), db, day, noon); !fault.Has(err, "out_of_range") {
			t.Errorf("%s: %v", day, err)
		}
	}
}

func TestWhatIsNoLongerKeptIsDroppedDayByDay(t *testing.T) {
	t.Parallel()
	db := school(t, 1)
	if err := activity.MakePartitions(t.Context(), db, today.AddDays(-3), 5); err != nil {
		t.Fatal(err)
	}
	record(t, db, noon, report(0, "north", 1, noon, activity.Visit), report(1, "north", 1, noon.AddDate(0, 0, -2), activity.Visit),
		report(2, "north", 1, noon.AddDate(0, 0, -30), activity.Visit))
	count := func() (events, days int) {
		t.Helper()
		err := db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM activity_events),
			(SELECT count(*) FROM pg_inherits WHERE inhparent = 'activity_events'::regclass) - 1`).Scan(&events, &days)
		if err != nil {
			t.Fatal(err)
		}
		return events, days
	}
	later := noon.AddDate(0, 0, activity.RawDays-1) // the first two days are over
	// A first closed day that is not compiled yet keeps its events.
	if _, err := db.Exec(t.Context(), `INSERT INTO activity_closed_days VALUES ($1, now())`, today.AddDays(-30)); err != nil {
		t.Fatal(err)
	}
	drop := func() {
		t.Helper()
		if err := activity.DropExpired(t.Context(), db, later); err != nil {
			t.Fatal(err)
		}
	}
	_, before := count()
	drop()
	if events, days := count(); check.Equal(t, "events", events, 3, "what is not compiled was dropped: %d events, %d days", events, days) {
		check.Equal(t, "days", days, before, "what is not compiled was dropped: %d events, %d days", events, days)
	}
	compileDue(t, db, later)
	drop()
	if events, days := count(); check.Equal(t, "events", events, 1, "%d events and %d of %d days are left", events, days, before) {
		check.Equal(t, "days", days, before-2, "%d events and %d of %d days are left", events, days, before)
	}
	// A day that began in the default partition gets none of its own.
	record(t, db, later, report(0, "north", 1, later, activity.Visit))
	if err := activity.MakePartitions(t.Context(), db, clock.DateIn(later, activity.Zone), 2); err != nil {
		t.Fatal(err)
	}
	if events, days := count(); check.Equal(t, "events", events, 2, "%d events, %d of %d days", events, days, before) {
		check.Equal(t, "days", days, before-1, "%d events, %d of %d days", events, days, before)
	}
}

// While the day is closed and compiled, writers go on: each event is in the register or
// was reported as late.
func TestNoEventIsLostBetweenInTimeAndLate(t *testing.T) {
	t.Parallel()
	const writers, calls = 8, 25
	db := school(t, writers*calls)
	now := clock.DayStart(today.AddDays(1), activity.Zone).Add(settled)
	var mu sync.Mutex
	inTime := map[id.User]bool{}
	var wg sync.WaitGroup
	begun, closed := make(chan struct{}, writers*calls), make(chan struct{})
	for w := range writers {
		wg.Go(func() {
			for c := range calls {
				if c == calls-1 {
					<-closed // one is late at least
				}
				user := id.User(w*calls + c + 1)
				r, err := activity.Record(context.WithoutCancel(t.Context()), db, []activity.Report{report(0, "north", user, noon, activity.Visit)}, now)
				if check.NoError(t, err, "%+v, %v", r, err) {
					check.Equal(t, "r.Accepted", r.Accepted, 1, "%+v, %v", r, err)
				}
				mu.Lock()
				inTime[user] = r.Late == 0
				mu.Unlock()
				begun <- struct{}{}
			}
		})
	}
	for range 10 + rand.IntN(30) {
		<-begun
	}
	func() {
		defer close(closed)
		compileDue(t, db, now)
	}()
	wg.Wait()
	compiled, late := register(t, db, today), 0
	for user, in := range inTime {
		if !in {
			late++
		}
		if in {
			check.True(t, "who was in time is in the register", compiled[user] != 0, "user %d", user)
		}
	}
	check.True(t, "some are late", late != 0, "%d of %d: nothing was shown", late, writers*calls)
	check.True(t, "some are in time", late != writers*calls, "%d of %d are late: nothing was shown", late, writers*calls)
}

const settled = 5 * time.Minute

// Whoever reports events does not wait behind the making and dropping of days, which give way
// to a compilation.
func TestMakingAndDroppingDaysGiveWay(t *testing.T) {
	t.Parallel()
	db := school(t, 1)
	if err := activity.MakePartitions(t.Context(), db, today.AddDays(-3), 5); err != nil {
		t.Fatal(err)
	}
	reading, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reading.Exec(t.Context(), `SELECT count(*) FROM activity_events`); err != nil {
		t.Fatal(err)
	}
	old := today.AddDays(-activity.RawDays - 1)
	for name, do := range map[string]func() error{
		"making":   func() error { return activity.MakePartitions(t.Context(), db, old, 1) },
		"dropping": func() error { return activity.DropExpired(t.Context(), db, noon.AddDate(0, 0, activity.RawDays+9)) },
	} {
		var refused *pgconn.PgError
		if err := do(); check.True(t, "the error is a fault", errors.As(err, &refused), "%s days while events are read: %v", name, err) {
			check.Equal(t, "refused.Code", refused.Code, "55P03", "%s days while events are read: %v", name, err)
		}
	}
	if err := reading.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := activity.MakePartitions(t.Context(), db, old, 1); err != nil {
		t.Errorf("making a day afterwards: %v", err)
	}
}
