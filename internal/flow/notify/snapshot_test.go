package notify_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

var day = clock.Date{Year: 2026, Month: 11, Day: 20}

func TestRejoins(t *testing.T) {
	t.Parallel()
	held := func(start, end int, notified course.EnrollmentStatus, state course.State) course.Enrollment {
		e := course.Enrollment{ID: 1, State: state}
		e.StartDate, e.EndDate, e.GracePeriodEnd = day.AddDays(start), day.AddDays(end), day.AddDays(end)
		e.Notified.Status = notified
		return e
	}
	snapshot := func(role org.Role, status org.MemberStatus, all ...course.Enrollment) notify.Snapshot {
		return notify.Snapshot{Member: org.Member{Role: role, Status: status}, Enrollments: all}
	}
	active, inactive := snapshot(org.RoleMember, org.MemberActive), snapshot(org.RoleMember, org.MemberInactive)
	running := snapshot("", "", held(-9, 9, course.EnrollmentActive, course.Running))
	for name, c := range map[string]struct {
		before, after notify.Snapshot
		late          bool // the next day begins within a minute
		want          bool
	}{
		"stays":                                 {active, active, false, false},
		"stays by an enrollment":                {running, running, false, false},
		"leaves":                                {active, inactive, false, false},
		"is made active":                        {inactive, active, false, true},
		"comes for the first time":              {notify.Snapshot{}, running, false, true},
		"was away by the calendar":              {snapshot("", "", held(-9, -1, course.EnrollmentActive, course.Running)), running, false, true},
		"gets an enrollment that begins later":  {notify.Snapshot{}, snapshot("", "", held(3, 9, course.EnrollmentPending, course.Running)), false, false},
		"has one that began unnoticed":          {snapshot("", "", held(0, 9, course.EnrollmentPending, course.Running)), running, false, true},
		"had one that began, and was a member":  {snapshot(org.RoleMember, org.MemberActive, held(0, 9, course.EnrollmentPending, course.Running)), active, false, false},
		"is extended on the last day":           {snapshot("", "", held(-9, 0, course.EnrollmentGracePeriod, course.Running)), running, false, false},
		"is extended as the last day ends":      {snapshot("", "", held(-9, 0, course.EnrollmentGracePeriod, course.Running)), running, true, true},
		"was suspended":                         {snapshot("", "", held(-9, 9, course.EnrollmentSuspended, course.Suspended)), running, false, true},
		"becomes staff":                         {running, snapshot(org.RoleTeacher, org.MemberActive, running.Enrollments...), false, false},
		"was staff, and is enrolled":            {snapshot(org.RoleTeacher, org.MemberActive, running.Enrollments...), running, false, true},
		"staff whose enrollment begins unseen":  {snapshot(org.RoleTeacher, org.MemberActive, held(0, 9, course.EnrollmentPending, course.Running)), snapshot(org.RoleTeacher, org.MemberActive, held(0, 9, course.EnrollmentActive, course.Running)), false, false},
		"inactive staff who is enrolled is not": {snapshot(org.RoleTeacher, org.MemberInactive, running.Enrollments...), snapshot(org.RoleTeacher, org.MemberInactive, running.Enrollments...), false, false},
	} {
		soon := day
		if c.late {
			soon = day.AddDays(1)
		}
		if got := notify.Rejoins(c.before, c.after, day, soon); got != c.want {
			t.Errorf("who %s: %v, want %v", name, got, c.want)
		}
	}
}
