package enrollment_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

var start = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// fixture is the service with one organization that has a webhook URL for all events, and a
// clock that is moved by days.
type fixture struct {
	*enrollment.Service
	*flowtest.Fixture
	t    *testing.T
	org  org.Organization
	days int
}

func open(t *testing.T) *fixture {
	t.Helper()
	d := &fixture{t: t, Fixture: flowtest.New(t)}
	d.Service = &enrollment.Service{DB: d.Database, Zone: time.UTC, Clock: func() time.Time { return start.AddDate(0, 0, d.days) }}
	d.Organization("north").Endpoint()
	var err error
	if d.org, err = org.Find(t.Context(), d.DB, "north"); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *fixture) today() clock.Date { return clock.DateIn(d.Clock(), d.Zone) }

// enroll makes a member with an enrollment of so many weeks, from so many days on; the
// grace period is a week.
func (d *fixture) enroll(address string, in, weeks int) (user id.User, e id.Enrollment) {
	d.t.Helper()
	c, err := course.Create(d.t.Context(), d.DB, audit.Platform, d.org.ID, course.Draft{Name: "Evening", Type: "gre", OpenForEnrollment: true,
		StartDate: d.today().AddDays(in), DefaultAccessWeeks: weeks}, d.Clock())
	if err != nil {
		d.t.Fatal(err)
	}
	d.InTx(func(tx *pg.Tx) error {
		a, err := student.Create(d.t.Context(), tx, student.Draft{Email: student.Email(address), FirstName: "Ana", CreatedBy: d.org.ID, CreatedVia: student.ViaAPI}, d.Clock())
		if err != nil {
			return err
		}
		user = a.ID
		r := course.Request{Courses: []id.Course{c.ID}}
		var read, write pg.Batch
		var offer course.Offer
		course.LoadOffer(&read, d.org.ID, r, &offer)
		if err := read.Send(d.t.Context(), tx); err != nil {
			return err
		}
		moves, _, err := course.Plan(r, offer, course.Held{}, course.Terms{AccessMonths: 1, GraceDays: 7}, d.today())
		if err != nil {
			return err
		}
		moves[0].After = moves[0].After.MarkNotified(d.today())
		org.AddMember(&write, d.org.ID, user, org.RoleMember, org.ViaAPI, d.Clock())
		course.Enroll(&write, d.org.ID, user, moves, d.today(), d.Clock())
		if err := write.Send(d.t.Context(), tx); err != nil {
			return err
		}
		e = moves[0].After.ID
		return nil
	})
	return user, e
}

func (d *fixture) sweep() {
	d.t.Helper()
	if _, err := d.Sweep(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// notified takes the recorded events, each as its type with what it says of the change.
func (d *fixture) notified() []string {
	d.t.Helper()
	rows, err := d.DB.Query(d.t.Context(), `WITH gone AS (DELETE FROM webhook_events RETURNING id, type, data) SELECT type, data FROM gone ORDER BY id`)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	notified := []string{}
	for rows.Next() {
		var typ string
		var raw []byte
		if err := rows.Scan(&typ, &raw); err != nil {
			d.t.Fatal(err)
		}
		notified = append(notified, typ+brief(d.t, raw))
	}
	return notified
}

func brief(t *testing.T, raw []byte) string {
	var data struct {
		Enrollment     *struct{ Status string }
		Previous       map[string]any
		PreviousStatus string `json:"previous_status"`
		DaysLeft       int    `json:"days_left"`
	}
	if err := json.Unmarshal(raw, &data); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if data.Enrollment != nil {
		b.WriteString(" " + data.Enrollment.Status)
	}
	if data.Previous != nil {
		text, _ := json.Marshal(data.Previous)
		b.WriteString(" before " + strings.ReplaceAll(string(text), `"`, ""))
	}
	if data.PreviousStatus != "" {
		b.WriteString(" before " + data.PreviousStatus)
	}
	if data.DaysLeft != 0 {
		fmt.Fprintf(&b, " days_left %d", data.DaysLeft)
	}
	return b.String()
}

func (d *fixture) want(what string, want ...string) {
	d.t.Helper()
	if got := d.notified(); !slices.Equal(got, append([]string{}, want...)) {
		d.t.Errorf("day %d, %s: notified\n  %s\nwant\n  %s", d.days, what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

const left = "student.left"

func TestASweepInTurnNotifiesInOrder(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.InTurn = true
	var want []id.User
	for i := range 1600 { // four pages
		user, _ := d.enroll(fmt.Sprintf("s%d@institute.org", i), 0, 1)
		want = append(want, user)
	}
	d.days = 30
	d.sweep()
	got, err := pg.Column[id.User](t.Context(), d.DB, `SELECT user_id FROM webhook_events ORDER BY sequence`)
	check.NoError(check.Now(t), err, "")
	check.Slices(t, "whom the events are about", got, want, "")
}

// Reference: courses#enrollment-status.
func TestTheCalendarIsNotifiedOfDayByDay(t *testing.T) {
	t.Parallel()
	d := open(t)
	user, _ := d.enroll("ana@institute.org", 3, 2) // days 3 to 17, grace to 24
	days := map[int][]string{
		3:  {"enrollment.updated active before {has_access:false,status:pending}"},
		10: {"enrollment.expiring active days_left 7"},
		18: {"enrollment.updated grace_period before {status:active}"},
		25: {"enrollment.ended expired before grace_period"},
	}
	for ; d.days < 40; d.days++ {
		for range 3 {
			d.sweep()
		}
		d.want("the day's", days[d.days]...)
		if d.days == 20 {
			d.Exec(`UPDATE members SET status = 'inactive' WHERE user_id = $1`, user)
			days[25] = append(days[25], left)
		}
	}
}

func TestTheCalendarIsNotifiedOfAfterDaysOfDowntime(t *testing.T) {
	t.Parallel()
	for days, want := range map[int][]string{
		2:   {},
		9:   {"enrollment.updated active before {has_access:false,status:pending}"},
		12:  {"enrollment.updated active before {has_access:false,status:pending}", "enrollment.expiring active days_left 5"},
		17:  {"enrollment.updated active before {has_access:false,status:pending}"}, // the last day: none is left
		19:  {"enrollment.updated grace_period before {has_access:false,status:pending}"},
		400: {"enrollment.ended expired before pending"},
	} {
		t.Run(fmt.Sprint(days), func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.enroll("ana@institute.org", 3, 2)
			d.days = days
			d.sweep()
			d.want("after the downtime", want...)
			d.sweep()
			d.want("again")
		})
	}
}

func TestManyWorkersNotifyOnce(t *testing.T) {
	t.Parallel()
	d := open(t)
	const students = 1050 // more than two pages
	for i := range students {
		d.enroll(fmt.Sprintf("s%d@institute.org", i), 0, 1)
	}
	d.Exec(`UPDATE members SET status = 'inactive'`)
	d.days = 30
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := d.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	d.sweep() // what was busy then
	counts := map[string]int{}
	for _, e := range d.notified() {
		counts[e]++
	}
	if check.Equal(t, "number of kinds of events", len(counts), 2, "notified %v, want each of two events %d times", counts, students) &&
		check.Equal(t, "enrollment.ended expired before active", counts["enrollment.ended expired before active"], students, "notified %v, want each of two events %d times", counts, students) {
		check.Equal(t, "number of leavers", counts[left], students, "notified %v, want each of two events %d times", counts, students)
	}
}

func TestRowsOfAnEarlierVersionAreTakenAsNotified(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.enroll("ana@institute.org", 0, 4)
	d.Exec(`UPDATE enrollments SET notified_status = NULL, next_day = DEFAULT`)
	d.days = 1
	d.sweep()
	d.want("nothing is made up")
	d.days = 60
	d.sweep()
	d.want("then it is as ever", "enrollment.ended expired before active")
}

func TestNobodyIsNotifiedOfStaff(t *testing.T) {
	t.Parallel()
	d := open(t)
	user, e := d.enroll("ana@institute.org", 0, 1)
	d.Exec(`UPDATE members SET role = 'teacher'`)
	d.change(e, course.Change{State: new(course.Suspended)})
	if _, err := d.SetMember(t.Context(), audit.Platform, d.org.ID, user, org.MemberInactive); err != nil {
		t.Fatal(err)
	}
	d.days = 30
	d.sweep()
	d.want("staff")
}

func (d *fixture) change(e id.Enrollment, c course.Change) enrollment.Enrollment {
	d.t.Helper()
	got, err := d.ChangeEnrollment(d.t.Context(), audit.Platform, d.org, e, c)
	if err != nil {
		d.t.Fatal(err)
	}
	return got
}

func TestAdministratorsChanges(t *testing.T) {
	t.Parallel()
	d := open(t)
	user, e := d.enroll("ana@institute.org", 0, 4)
	day := func(n int) *clock.Date { return new(clock.DateIn(start, time.UTC).AddDays(n)) }
	got := d.change(e, course.Change{State: new(course.Suspended)})
	if check.Equal(t, "got.Status", got.Status, course.EnrollmentSuspended, "%+v", got) &&
		check.False(t, "got.HasAccess", got.HasAccess, "%+v", got) {
		check.Equal(t, "got.Student.UserID", got.Student.UserID, user, "%+v", got)
	}
	d.want("suspended", "enrollment.ended suspended before active")
	d.change(e, course.Change{State: new(course.Suspended)})
	d.want("suspended again")
	d.change(e, course.Change{State: new(course.Running)})
	d.want("resumed", "enrollment.updated active before {has_access:false,status:suspended}")
	got = d.change(e, course.Change{EndDate: day(10)})
	if got.GracePeriodEnd != *day(17) {
		t.Errorf("the grace period ends on %v", got.GracePeriodEnd)
	}
	d.want("shortened", "enrollment.updated active before {end_date:2026-12-19,grace_period_end:2026-12-26}")
	d.change(e, course.Change{StartDate: day(2)})
	d.want("later", "enrollment.updated pending before {has_access:true,start_date:2026-11-21,status:active}")
	d.change(e, course.Change{StartDate: day(-60), EndDate: day(-30)})
	d.want("over", "enrollment.ended expired before pending")
	d.change(e, course.Change{EndDate: day(10)})
	d.want("and again not", "enrollment.updated active before {end_date:2026-10-22,grace_period_end:2026-10-29,has_access:false,status:expired}")
	for _, state := range []course.State{course.Dropped, course.Completed} {
		d.change(e, course.Change{State: &state})
		d.notified()
	}
	if _, err := d.ChangeEnrollment(t.Context(), audit.Platform, d.org, e, course.Change{StartDate: day(11)}); !fault.Has(err, "invalid") {
		t.Errorf("the start after the end: %v", err)
	}
	other := d.org
	other.ID++
	if _, err := d.ChangeEnrollment(t.Context(), audit.Platform, other, e, course.Change{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization: %v", err)
	}
	d.want("what was refused")
}

// The end date's approach is notified once for each end date, also for one that comes back.
// Reference: webhooks#events.
func TestExpiringIsNotifiedOfOnceAnEndDate(t *testing.T) {
	t.Parallel()
	d := open(t)
	_, e := d.enroll("ana@institute.org", 0, 1)
	end := func(n int) course.Change {
		return course.Change{EndDate: new(clock.DateIn(start, time.UTC).AddDays(n))}
	}
	d.sweep()
	d.want("first", "enrollment.expiring active days_left 7")
	d.change(e, end(5))
	d.notified()
	d.sweep()
	d.want("an earlier one", "enrollment.expiring active days_left 5")
	d.change(e, end(7))
	d.notified()
	d.sweep()
	d.want("the first again")
}

func TestMemberships(t *testing.T) {
	t.Parallel()
	d := open(t)
	user, e := d.enroll("ana@institute.org", 0, 4)
	set := func(status org.MemberStatus) {
		t.Helper()
		if m, err := d.SetMember(t.Context(), audit.Platform, d.org.ID, user, status); check.NoError(check.Now(t), err, "%v %v", m, err) {
			check.Equal(check.Now(t), "m.Membership.Status", m.Membership.Status, status, "%v %v", m, err)
		}
	}
	set(org.MemberInactive)
	d.want("inactive, with an enrollment")
	d.change(e, course.Change{State: new(course.Dropped)})
	d.want("the last enrollment", "enrollment.ended dropped before active", left)
	set(org.MemberActive)
	d.want("active", "student.joined")
	set(org.MemberInactive)
	d.want("inactive, with none", left)
	set(org.MemberActive)
	d.notified()
	if err := d.RemoveMember(t.Context(), audit.Platform, d.org.ID, user); err != nil {
		t.Fatal(err)
	}
	d.want("removed", left)
	if err := d.RemoveMember(t.Context(), audit.Platform, d.org.ID, user); fault.KindOf(err) != fault.NotFound {
		t.Errorf("removed again: %v", err)
	}
	if _, err := d.SetMember(t.Context(), audit.Platform, d.org.ID, user, org.MemberActive); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no member: %v", err)
	}
}
