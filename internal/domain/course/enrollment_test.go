package course_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// held is an enrollment whose days are counted from today.
func held(state course.State, start, end, grace int) course.Enrollment {
	return course.Enrollment{ID: 1, State: state, Window: course.Window{
		StartDate: today.AddDays(start), EndDate: today.AddDays(end), GracePeriodEnd: today.AddDays(grace)}}
}

// Reference: courses#enrollment-status.
func TestStandingFollowsFromTheStateAndTheDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		e      course.Enrollment
		want   course.EnrollmentStatus
		access bool
	}{
		{"the day before the start", held(course.Running, 1, 9, 12), course.EnrollmentPending, false},
		{"the first day", held(course.Running, 0, 9, 12), course.EnrollmentActive, true},
		{"the last day", held(course.Running, -9, 0, 3), course.EnrollmentActive, true},
		{"the first grace day", held(course.Running, -9, -1, 2), course.EnrollmentGracePeriod, true},
		{"the last grace day", held(course.Running, -9, -3, 0), course.EnrollmentGracePeriod, true},
		{"the day after", held(course.Running, -9, -3, -1), course.EnrollmentExpired, false},
		{"no grace days", held(course.Running, -9, -1, -1), course.EnrollmentExpired, false},
		{"suspended", held(course.Suspended, -9, 9, 9), course.EnrollmentSuspended, false},
		{"dropped", held(course.Dropped, -9, 9, 9), course.EnrollmentDropped, false},
		{"completed", held(course.Completed, -9, -1, -1), course.EnrollmentCompleted, false},
	} {
		check.Equal(t, "status", c.e.Status(today), c.want, "%s", c.name)
		check.Equal(t, "access", c.e.HasAccess(today), c.access, "%s", c.name)
		check.Equal(t, "current", c.e.Current(today), c.access || c.want == course.EnrollmentPending, "%s", c.name)
	}
}

// Reference: courses#access-length.
func TestLengthOfAccess(t *testing.T) {
	t.Parallel()
	lastOfJanuary := clock.DateOf(2027, 1, 31)
	for _, c := range []struct {
		name   string
		course course.Course
		tenure int
		want   clock.Date
	}{
		{"the call's months", course.Course{DefaultAccessWeeks: 2, DefaultAccessMonths: 3, TypeAccessMonths: 4}, 1, clock.DateOf(2027, 2, 28)},
		{"else the course's weeks", course.Course{DefaultAccessWeeks: 2, DefaultAccessMonths: 3, TypeAccessMonths: 4}, 0, clock.DateOf(2027, 2, 14)},
		{"else the course's months", course.Course{DefaultAccessMonths: 3, TypeAccessMonths: 4}, 0, clock.DateOf(2027, 4, 30)},
		{"else the type's months", course.Course{TypeAccessMonths: 4}, 0, clock.DateOf(2027, 5, 31)},
		{"else the organization's", course.Course{}, 0, clock.DateOf(2027, 7, 31)},
	} {
		c.course.ID, c.course.Type, c.course.Status, c.course.OpenForEnrollment = 5, "ielts", course.StatusActive, true
		moves, _, err := course.Plan(
			course.Request{Courses: []id.Course{5}, TenureMonths: c.tenure},
			course.Offer{Courses: []course.Course{c.course}}, course.Held{}, course.Terms{AccessMonths: 6, GraceDays: 7}, lastOfJanuary)
		if err != nil {
			t.Fatal(err)
		}
		if got := moves[0].After; check.Equal(t, "got.EndDate", got.EndDate, c.want, "%s: until %v (%v), want %v", c.name, got.EndDate, got.GracePeriodEnd, c.want) {
			check.Equal(t, "got.GracePeriodEnd", got.GracePeriodEnd, c.want.AddDays(7), "%s: until %v (%v), want %v", c.name, got.EndDate, got.GracePeriodEnd, c.want)
		}
	}
}
