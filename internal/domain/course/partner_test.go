package course_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Reference: courses#end-suspend-resume.
func TestWhatAnOrganizationDoesToItsEnrollments(t *testing.T) {
	t.Parallel()
	active, pending := held(course.Running, -5, 5, 12), held(course.Running, 5, 9, 16)
	grace, expired := held(course.Running, -50, -1, 6), held(course.Running, -50, -20, -13)
	byPlatform, dropped := held(course.Suspended, -5, 5, 12), held(course.Dropped, -5, 5, 12)
	byPartner := byPlatform
	byPartner.PartnerSuspended = true
	overMeanwhile := held(course.Suspended, -50, -20, -13)
	overMeanwhile.PartnerSuspended = true
	type rule = func(course.Enrollment, course.Terms, clock.Date) (course.Enrollment, error)
	on := func(days int) rule { return course.Shorten(today.AddDays(days)) }
	for _, c := range []struct {
		name   string
		before course.Enrollment
		do     rule
		code   string                  // of the fault
		status course.EnrollmentStatus // afterwards
		end    int                     // days from today
		same   bool                    // nothing to do
	}{
		{name: "active ends", before: active, do: course.End, status: course.EnrollmentDropped},
		{name: "pending ends", before: pending, do: course.End, status: course.EnrollmentDropped, end: 5},
		{name: "grace period ends", before: grace, do: course.End, status: course.EnrollmentDropped, end: -1},
		{name: "expired ends", before: expired, do: course.End, status: course.EnrollmentExpired, end: -20, same: true},
		{name: "dropped ends", before: dropped, do: course.End, status: course.EnrollmentDropped, end: 5, same: true},
		{name: "suspended by the partner ends", before: byPartner, do: course.End, status: course.EnrollmentDropped},
		{name: "suspended by the platform ends", before: byPlatform, do: course.End, code: "suspended_by_platform"},

		{name: "active is shortened", before: active, do: on(2), status: course.EnrollmentActive, end: 2},
		{name: "active is shortened to today", before: active, do: on(0), status: course.EnrollmentActive, end: 0},
		{name: "active is shortened to its end", before: active, do: on(5), status: course.EnrollmentActive, end: 5, same: true},
		{name: "active is shortened beyond its end", before: active, do: on(6), code: "after_the_end"},
		{name: "active is shortened to yesterday", before: active, do: on(-1), code: "in_the_past"},
		{name: "pending is shortened before its start", before: pending, do: on(4), code: "in_the_past"},
		{name: "grace period is shortened", before: grace, do: on(0), code: "after_the_end"},
		{name: "suspended by the partner is shortened", before: byPartner, do: on(2), status: course.EnrollmentSuspended, end: 2},
		{name: "suspended by the platform is shortened", before: byPlatform, do: on(2), code: "suspended_by_platform"},
		{name: "dropped is shortened", before: dropped, do: on(2), code: "enrollment_over"},

		{name: "active is suspended", before: active, do: course.Suspend, status: course.EnrollmentSuspended, end: 5},
		{name: "pending is suspended", before: pending, do: course.Suspend, status: course.EnrollmentSuspended, end: 9},
		{name: "suspended by the platform is suspended", before: byPlatform, do: course.Suspend, status: course.EnrollmentSuspended, end: 5, same: true},
		{name: "expired is suspended", before: expired, do: course.Suspend, code: "enrollment_over"},
		{name: "suspended by the partner is resumed", before: byPartner, do: course.Resume, status: course.EnrollmentActive, end: 5},
		{name: "over meanwhile, is resumed", before: overMeanwhile, do: course.Resume, status: course.EnrollmentExpired, end: -20},
		{name: "suspended by the platform is resumed", before: byPlatform, do: course.Resume, code: "suspended_by_platform"},
		{name: "active is resumed", before: active, do: course.Resume, status: course.EnrollmentActive, end: 5, same: true},
		{name: "dropped is resumed", before: dropped, do: course.Resume, code: "enrollment_over"},
	} {
		after, err := c.do(c.before, terms, today)
		if c.code != "" {
			check.True(t, "has the code "+c.code, fault.Has(err, c.code), "%s: %v", c.name, err)
			check.False(t, "changed", after.Differs(c.before), "%s", c.name)
			continue
		}
		check.NoError(t, err, "%s", c.name)
		check.Equal(t, "status", after.Status(today), c.status, "%s", c.name)
		check.Equal(t, "end date", after.EndDate, today.AddDays(c.end), "%s", c.name)
		check.Equal(t, "nothing to do", !after.Differs(c.before), c.same, "%s", c.name)
		check.True(t, "the dates are in order", !after.EndDate.Before(after.StartDate) && !after.GracePeriodEnd.Before(after.EndDate), "%s: %+v", c.name, after.Window)
		lifted, _ := course.Resume(after, terms, today)
		check.False(t, "a platform's suspension is lifted", c.before.State == course.Suspended && !c.before.PartnerSuspended && lifted.State == course.Running, "%s", c.name)
	}
}

// An administrator makes a suspension the platform's, also one that the organization made.
func TestThePlatformTakesASuspensionOver(t *testing.T) {
	t.Parallel()
	mine, err := course.Suspend(held(course.Running, -5, 5, 12), terms, today)
	check.NoError(check.Now(t), err, "suspending")
	suspended := course.Suspended
	theirs, err := course.Change{State: &suspended}.Apply(mine, terms)
	check.NoError(check.Now(t), err, "changing")
	check.True(t, "is stored", theirs.Differs(mine), "%+v", theirs)
	_, err = course.Resume(theirs, terms, today)
	check.True(t, "suspended_by_platform", fault.Has(err, "suspended_by_platform"), "%v", err)
}
