package wire_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/wire"
)

func TestComesBack(t *testing.T) {
	t.Parallel()
	held := func(start, end int, told course.Standing, state course.State) course.Enrolment {
		e := course.Enrolment{ID: 1, State: state}
		e.StartDate, e.EndDate, e.GracePeriodEnd = day.AddDays(start), day.AddDays(end), day.AddDays(end)
		e.Told.Standing = told
		return e
	}
	look := func(role org.Role, status org.MemberStatus, all ...course.Enrolment) wire.Look {
		return wire.Look{Member: org.Member{Role: role, Status: status}, Held: all}
	}
	active, inactive := look(org.RoleMember, org.MemberActive), look(org.RoleMember, org.MemberInactive)
	running := look("", "", held(-9, 9, course.StandingActive, course.Running))
	for name, c := range map[string]struct {
		before, after wire.Look
		late          bool // the next day begins within a minute
		want          bool
	}{
		"stays":                                 {active, active, false, false},
		"stays by an enrolment":                 {running, running, false, false},
		"leaves":                                {active, inactive, false, false},
		"is made active":                        {inactive, active, false, true},
		"comes for the first time":              {wire.Look{}, running, false, true},
		"was away by the calendar":              {look("", "", held(-9, -1, course.StandingActive, course.Running)), running, false, true},
		"gets an enrolment that begins later":   {wire.Look{}, look("", "", held(3, 9, course.StandingPending, course.Running)), false, false},
		"has one that began unnoticed":          {look("", "", held(0, 9, course.StandingPending, course.Running)), running, false, true},
		"had one that began, and was a member":  {look(org.RoleMember, org.MemberActive, held(0, 9, course.StandingPending, course.Running)), active, false, false},
		"is extended on the last day":           {look("", "", held(-9, 0, course.StandingGracePeriod, course.Running)), running, false, false},
		"is extended as the last day ends":      {look("", "", held(-9, 0, course.StandingGracePeriod, course.Running)), running, true, true},
		"was suspended":                         {look("", "", held(-9, 9, course.StandingSuspended, course.Suspended)), running, false, true},
		"becomes staff":                         {running, look(org.RoleTeacher, org.MemberActive, running.Held...), false, false},
		"was staff, and is enrolled":            {look(org.RoleTeacher, org.MemberActive, running.Held...), running, false, true},
		"staff whose enrolment begins unseen":   {look(org.RoleTeacher, org.MemberActive, held(0, 9, course.StandingPending, course.Running)), look(org.RoleTeacher, org.MemberActive, held(0, 9, course.StandingActive, course.Running)), false, false},
		"inactive staff who is enrolled is not": {look(org.RoleTeacher, org.MemberInactive, running.Held...), look(org.RoleTeacher, org.MemberInactive, running.Held...), false, false},
	} {
		soon := day
		if c.late {
			soon = day.AddDays(1)
		}
		if got := wire.ComesBack(c.before, c.after, day, soon); got != c.want {
			t.Errorf("who %s: %v, want %v", name, got, c.want)
		}
	}
}
