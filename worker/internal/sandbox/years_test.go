package sandbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	store "github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// zones are where days are 23, 23.5, 24, 24.5 and 25 hours long, where they begin at one o'clock or have two
// midnights, and where it is tomorrow already.
var zones = []string{"UTC", "America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Santiago", "America/Havana", "Pacific/Apia", "Asia/Kolkata"}

// begins is the first moment of a day: the first minute that the zone's clocks show with this date.
func begins(day clock.Date, zone *time.Location) time.Time {
	for t := day.Time().Add(-16 * time.Hour); ; t = t.Add(time.Minute) {
		if y, m, d := t.In(zone).Date(); y == day.Year && m == day.Month && d == day.Day {
			return t
		}
	}
}

// months adds months to a day: the same day of that month, or its last one.
func months(day clock.Date, n int) clock.Date {
	for last := day.Day; ; last-- {
		t := time.Date(day.Year, day.Month+time.Month(n), last, 0, 0, 0, 0, time.UTC)
		if t.Day() == last {
			return clock.DateIn(t, time.UTC)
		}
	}
}

// notable are the days until a time on which a zone's clocks are changed, and those around the end of February.
func notable(zone *time.Location, from, to time.Time) (days []clock.Date) {
	for t := from; t.Before(to); t = t.Add(24 * time.Hour) {
		day := clock.DateIn(t, zone)
		_, offset := t.In(zone).Zone()
		_, next := t.Add(24 * time.Hour).In(zone).Zone()
		if offset != next || day.Month == time.February && day.Day >= 28 {
			days = append(days, day, day.AddDays(1))
		}
	}
	return days
}

// years is what the ten years of a school are expected to be.
type years struct {
	*school
	rng      *rand.Rand
	notable  []clock.Date
	expected []string
	items    []id.Item
	leaps    int // courses that end on 29 February
}

func (y *years) expect(at time.Time, what, email string) {
	y.expected = append(y.expected, at.UTC().Format("2006-01-02 15:04:05 ")+what+" "+email)
}

// join has a student join today, for some months. The rules say what happens then.
func (y *years) join(n int) {
	now := y.now()
	today, tenure, email := clock.DateIn(now, y.zone), 1+y.rng.IntN(14), fmt.Sprintf("s%d@anywhere.example", n)
	if today.Month == time.August && today.Day >= 29 { // until the end of February
		tenure = 6
	}
	if n%5 == 1 {
		yes, zone, score := true, y.zone.String(), decimal.Whole(7)
		y.provision(provision.Command{Email: "p" + email, FirstName: "P", Courses: []string{"ielts"}, TenureMonths: 2,
			Plan: &plan.Request{TargetScore: &score, TestPlan: &yes, TimeZone: &zone}})
	}
	y.provision(provision.Command{Email: email, FirstName: "S", Courses: []string{"ielts"}, TenureMonths: tenure})
	end := months(today, tenure)
	if end.Month == time.February && end.Day == 29 {
		y.leaps++
	}
	y.expect(begins(end.AddDays(-7), y.zone), "enrollment.expiring", email)
	y.expect(begins(end.AddDays(1), y.zone), "enrollment.updated", email)
	y.expect(begins(end.AddDays(8), y.zone), "enrollment.ended", email)
	due := end
	within := slices.DeleteFunc(slices.Clone(y.notable), func(d clock.Date) bool { return !d.After(today) || d.After(end) })
	if len(within) > 0 {
		due = within[y.rng.IntN(len(within))]
	}
	y.assign(email, y.items[0], due.String())
	y.expect(begins(due.AddDays(1), y.zone), "assignment.overdue", email)
}

// pause is how long the school is left alone: until any second of the next months, or the end of the August before a
// leap year.
func (y *years) pause() time.Time {
	now := y.now()
	to := now.Add(time.Duration(y.rng.Int64N(int64(400 * 24 * time.Hour)))).Truncate(time.Second)
	for leap := 2028; leap <= 2036; leap += 4 {
		august := begins(clock.Date{Year: leap - 1, Month: time.August, Day: 29 + y.rng.IntN(3)}, y.zone).Add(time.Hour)
		if august.After(now) && to.After(august) {
			return august
		}
	}
	return to
}

// Ten years of a school in each zone: enrollments end, warn of it, and work becomes overdue and expires, at the first
// moment of the day that the contract names; plans open tests when their days begin, and close them a minute before
// these are over.
// Reference: courses#enrollment-status, assignments#assignment-status, webhooks#events, plans#rules.
func TestTenYearsOfTheRules(t *testing.T) {
	t.Parallel()
	length := 10
	if testing.Short() {
		length = 2
	}
	leaps := make([]int, len(zones))
	t.Run("zones", func(t *testing.T) {
		for i, name := range zones {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				leaps[i] = liveYears(t, name, uint64(i), length)
			})
		}
	})
	ended := 0
	for _, n := range leaps {
		ended += n
	}
	check.True(t, "courses end on 29 February", ended > 0 || t.Failed(), "")
}

func liveYears(t *testing.T, name string, seed uint64, length int) (leaps int) {
	zone, err := time.LoadLocation(name)
	check.NoError(check.Now(t), err, "%v", err)
	end := start.AddDate(length, 0, 0)
	y := &years{school: newSchoolIn(t, zone, 10_000), rng: rand.New(rand.NewPCG(7, seed)), notable: notable(zone, start, end.AddDate(3, 0, 0))}
	for n := range 12 {
		y.items = append(y.items, y.Paper(fmt.Sprint("ielts-", n), "ielts"))
	}
	for n := 0; y.now().Before(end); n++ {
		y.join(n)
		y.move(y.pause(), store.Accepts)
	}
	now := y.now()
	y.expected = slices.DeleteFunc(y.expected, func(line string) bool { return line[:19] > now.UTC().Format("2006-01-02 15:04:05") })
	slices.Sort(y.expected)
	got := y.list(`
		SELECT to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS ') || e.type || ' ' || a.email
		FROM webhook_events e JOIN accounts a ON a.id = e.user_id
		WHERE a.email LIKE 's%' AND e.type IN ('enrollment.expiring', 'enrollment.updated', 'enrollment.ended', 'assignment.overdue')`)
	slices.Sort(got)
	check.Slices(t, "events", got, y.expected, "in %s", name)
	check.Equal(t, "expired", y.Count(`assignments WHERE status = 'expired' AND updated_at <> due_at + interval '720 hours 1 second'
		AND id NOT IN (SELECT assignment_id FROM plan_tests WHERE assignment_id IS NOT NULL)`), 0, "at another time than 30 days after the due date")
	check.True(t, "work expired", y.Count("assignments WHERE status = 'expired'") > 0, "none")
	y.checkPlans()
	return y.leaps
}

// checkPlans compares when tests were given, and are due, with their days.
func (y *years) checkPlans() {
	type given struct {
		Slot         int
		Opens, Due   clock.Date
		Given, Until time.Time
	}
	all, err := pg.List[given](y.t.Context(), y.Database, `
		SELECT p.slot, p.opens_on AS opens, p.due_on AS due, a.assigned_at AS given, a.due_at AS until
		FROM plan_tests p JOIN assignments a ON a.id = p.assignment_id ORDER BY p.plan_id, p.slot`)
	check.NoError(check.Now(y.t), err, "%v", err)
	check.True(y.t, "plans gave tests", len(all) > 5, "%d", len(all))
	for i, g := range all {
		if i > 0 && g.Slot > all[i-1].Slot { // the first one of a plan is given with the plan
			check.Equal(y.t, "the test was given", g.Given.UTC(), begins(g.Opens, y.zone).UTC(), "in %s: %+v", y.zone, g)
		}
		check.Equal(y.t, "the test is due", g.Until.UTC(), begins(g.Due.AddDays(1), y.zone).Add(-time.Minute).UTC(), "in %s: %+v", y.zone, g)
	}
}
