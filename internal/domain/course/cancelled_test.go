package course_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// A default course that is cancelled is none any more, also when it is offered again later: the next
// grant of the type makes another. Reference: courses#course-fields.
func TestACancelledDefaultCourseIsNone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org := organization(t, db, "org")
	grant := func(email string) course.Course {
		moves, _ := enroll(t, db, org, person(t, db, org, email, "member"), course.Request{Types: []string{"ielts"}})
		return moves[0].After.Course
	}
	first := grant("ana@x.y")
	change := func(status course.Status) course.Course {
		c, err := course.Update(t.Context(), db, audit.Platform, org, first.ID, course.Patch{Status: &status}, now)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	check.False(t, "IsDefault", change(course.StatusCancelled).IsDefault, "the cancelled course is still the default")
	second := grant("ben@x.y")
	check.True(t, "second.ID != first.ID", second.ID != first.ID, "the next grant is in the cancelled course")
	check.True(t, "second.IsDefault", second.IsDefault, "the new course is no default: %+v", second)
	check.False(t, "IsDefault", change(course.StatusActive).IsDefault, "the old course is a default again")
	check.Equal(t, "third.ID", grant("cem@x.y").ID, second.ID, "a third course was made")
}

// Two courses may have one name, so each warning has the course's id.
func TestWarningsTellCoursesOfOneNameApart(t *testing.T) {
	t.Parallel()
	a, b := open(7, false), open(8, false)
	r := course.Request{Courses: []id.Course{7, 8}, TenureMonths: 1}
	h := course.Held{Enrollments: []course.Enrollment{in(a, held(course.Running, -5, 5, 12)), in(b, held(course.Suspended, -5, 5, 12))}}
	_, warnings, err := course.Plan(r, course.Offer{Courses: []course.Course{a, b}}, h, terms, today)
	check.NoError(check.Now(t), err, "warnings = %q", warnings)
	check.Equal(check.Now(t), "len(warnings)", len(warnings), 2, "warnings = %q", warnings)
	check.True(t, "warnings[0] begins with course (7)", strings.HasPrefix(warnings[0], "course (7): "), "got %q", warnings[0])
	check.True(t, "warnings[1] begins with course (8)", strings.HasPrefix(warnings[1], "course (8): "), "got %q", warnings[1])
}
