package course_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

var (
	ielts = course.Type{Name: "ielts", DisplayName: "IELTS Academic", Active: true}
	toefl = course.Type{Name: "toefl", DisplayName: "TOEFL", Active: true}
	terms = course.Terms{AccessMonths: 6, GraceDays: 7}
)

func open(n id.Course, isDefault bool) course.Course {
	return course.Course{ID: n, Name: "course", Type: "ielts", IsDefault: isDefault, Status: course.StatusActive,
		OpenForEnrollment: true, IsPerpetual: true, StartDate: today.AddDays(-100)}
}

// in places an enrollment, made by held, in a course.
func in(c course.Course, e course.Enrollment) course.Enrollment {
	e.ID, e.Course = id.Enrollment(c.ID*10), c
	return e
}

// The rows are those of the tables (reference: provisioning#enrollment-moves, provisioning#type-or-course),
// and further ones for combinations that the tables do not name.
func TestEnrollmentMoves(t *testing.T) {
	t.Parallel()
	def, batch := open(1, true), open(2, false)
	closed := func(c course.Course) course.Course { c.OpenForEnrollment = false; return c }
	cancelled := func(c course.Course) course.Course { c.Status = course.StatusCancelled; return c }
	later := open(3, false)
	later.StartDate = today.AddDays(30)
	short := open(4, false)
	short.IsPerpetual, short.EndDate = false, today.AddDays(10)
	byType, byID := []string{"ielts"}, func(n ...id.Course) []id.Course { return n }
	active, pending := held(course.Running, -5, 5, 12), held(course.Running, 5, 9, 16)
	grace, expired := held(course.Running, -50, -1, 6), held(course.Running, -50, -20, -13)
	suspended, dropped := held(course.Suspended, -5, 5, 12), held(course.Dropped, -5, 5, 12)
	droppedLongAgo, completed := held(course.Dropped, -50, -20, -13), held(course.Completed, -50, -20, -13)

	for _, c := range []struct {
		name    string
		request course.Request
		offer   []course.Course
		held    []course.Enrollment
		used    []id.Enrollment
		course  id.Course // of the one entry; 0: a default course that is yet to be made
		action  course.Action
		start   int // days from today
		end     string
		note    string
		warning string // a part of the one warning
		fault   string // code
	}{
		{name: "no enrollment, type without a default course", request: course.Request{Types: byType},
			action: course.Created, end: today.AddMonths(6).String()},
		{name: "no enrollment, type named by its display name", request: course.Request{Types: []string{" ielts ACADEMIC"}}, offer: []course.Course{def},
			course: 1, action: course.Created, end: today.AddMonths(6).String()},
		{name: "no enrollment, course id", request: course.Request{Courses: byID(2), TenureMonths: 1}, offer: []course.Course{batch},
			course: 2, action: course.Created, end: today.AddMonths(1).String()},
		{name: "no enrollment, course that starts later", request: course.Request{Courses: byID(3), TenureMonths: 1}, offer: []course.Course{later},
			course: 3, action: course.Created, start: 30, end: today.AddDays(30).AddMonths(1).String()},
		{name: "no enrollment, course that ends before the access", request: course.Request{Courses: byID(4)}, offer: []course.Course{short},
			course: 4, action: course.Created, end: today.AddMonths(6).String(), warning: "after the course's own end"},
		{name: "no enrollment, closed course", request: course.Request{Courses: byID(2)}, offer: []course.Course{closed(batch)}, fault: "course_closed"},
		{name: "no enrollment, closed default course", request: course.Request{Types: byType}, offer: []course.Course{closed(def)}, fault: "course_closed"},
		{name: "unknown type", request: course.Request{Types: []string{"latin"}}, fault: "unknown_course_type"},
		{name: "foreign course id", request: course.Request{Courses: byID(99)}, fault: "unknown_course"},

		{name: "running, same call repeated", request: course.Request{Types: byType}, offer: []course.Course{def}, held: []course.Enrollment{in(def, active)},
			course: 1, action: course.Unchanged, start: -5, end: today.AddDays(5).String()},
		{name: "running in a batch of the type", request: course.Request{Types: byType}, offer: []course.Course{def}, held: []course.Enrollment{in(batch, active)},
			course: 2, action: course.Unchanged, start: -5, end: today.AddDays(5).String()},
		{name: "running in the default course and a batch", request: course.Request{Types: byType}, held: []course.Enrollment{in(batch, active), in(def, active)},
			course: 1, action: course.Unchanged, start: -5, end: today.AddDays(5).String()},
		{name: "scheduled counts as running", request: course.Request{Types: byType}, held: []course.Enrollment{in(def, pending)},
			course: 1, action: course.Unchanged, start: 5, end: today.AddDays(9).String()},
		{name: "running in a closed course", request: course.Request{Types: byType}, offer: []course.Course{closed(def)}, held: []course.Enrollment{in(closed(def), active)},
			course: 1, action: course.Unchanged, start: -5, end: today.AddDays(5).String()},
		{name: "running, tenure_months without extend_access", request: course.Request{Types: byType, TenureMonths: 3}, held: []course.Enrollment{in(def, active)},
			course: 1, action: course.Unchanged, start: -5, end: today.AddDays(5).String(), warning: "tenure_months was not applied"},

		{name: "running, extend_access with a new external_ref", request: course.Request{Types: byType, TenureMonths: 2, Extend: true, Ref: "7"}, held: []course.Enrollment{in(def, active)},
			course: 1, action: course.Extended, start: -5, end: today.AddDays(5).AddMonths(2).String()},
		{name: "running, extend_access by the default length", request: course.Request{Types: byType, Extend: true, Ref: "7"}, held: []course.Enrollment{in(def, active)},
			course: 1, action: course.Extended, start: -5, end: today.AddDays(5).AddMonths(6).String()},
		{name: "running in a closed course is extended", request: course.Request{Courses: byID(2), TenureMonths: 1, Extend: true, Ref: "7"}, offer: []course.Course{closed(batch)}, held: []course.Enrollment{in(closed(batch), active)},
			course: 2, action: course.Extended, start: -5, end: today.AddDays(5).AddMonths(1).String()},
		{name: "extend_access with a used external_ref", request: course.Request{Types: byType, TenureMonths: 2, Extend: true, Ref: "7"}, held: []course.Enrollment{in(def, active)}, used: []id.Enrollment{10},
			course: 1, action: course.Unchanged, start: -5, end: today.AddDays(5).String(), note: "already_extended_for_external_ref"},
		{name: "extension past the last year", request: course.Request{Types: byType, TenureMonths: 120, Extend: true, Ref: "7"},
			held: []course.Enrollment{in(def, held(course.Running, 0, 365*7970, 365*7970))}, fault: "invalid"},

		{name: "grace period counts as ended", request: course.Request{Types: byType}, offer: []course.Course{def}, held: []course.Enrollment{in(def, grace)},
			course: 1, action: course.Reactivated, end: today.AddMonths(6).String()},
		{name: "grace period with extend_access is renewed too", request: course.Request{Types: byType, TenureMonths: 1, Extend: true, Ref: "7"}, held: []course.Enrollment{in(def, grace)},
			course: 1, action: course.Reactivated, end: today.AddMonths(1).String()},
		{name: "expired", request: course.Request{Types: byType}, held: []course.Enrollment{in(def, expired)},
			course: 1, action: course.Reactivated, end: today.AddMonths(6).String()},
		{name: "dropped, end date passed", request: course.Request{Types: byType}, held: []course.Enrollment{in(def, droppedLongAgo)},
			course: 1, action: course.Reactivated, end: today.AddMonths(6).String()},
		{name: "completed, end date passed, by id", request: course.Request{Courses: byID(2)}, offer: []course.Course{batch}, held: []course.Enrollment{in(batch, completed)},
			course: 2, action: course.Reactivated, end: today.AddMonths(6).String()},
		{name: "ended, closed course", request: course.Request{Types: byType}, held: []course.Enrollment{in(closed(def), expired)}, fault: "course_closed"},
		{name: "cancelled default course, no enrollment", request: course.Request{Types: byType}, offer: []course.Course{cancelled(batch)},
			action: course.Created, end: today.AddMonths(6).String()},
		{name: "ended in a cancelled course, by type", request: course.Request{Types: byType}, held: []course.Enrollment{in(cancelled(batch), expired)},
			action: course.Created, end: today.AddMonths(6).String()},
		{name: "grace period in a cancelled course, by type", request: course.Request{Types: byType}, offer: []course.Course{def}, held: []course.Enrollment{in(cancelled(batch), grace)},
			course: 1, action: course.Created, end: today.AddMonths(6).String()},
		{name: "ended in a cancelled course, by id", request: course.Request{Courses: byID(2)}, offer: []course.Course{cancelled(batch)}, held: []course.Enrollment{in(cancelled(batch), expired)}, fault: "course_closed"},
		{name: "running in a cancelled course, by type", request: course.Request{Types: byType}, held: []course.Enrollment{in(cancelled(batch), active)},
			course: 2, action: course.Unchanged, start: -5, end: today.AddDays(5).String()},
		{name: "suspended in a cancelled course, by type", request: course.Request{Types: byType}, held: []course.Enrollment{in(cancelled(batch), held(course.Suspended, -50, -20, -13))},
			course: 2, action: course.Skipped, start: -50, end: today.AddDays(-20).String(), warning: "suspended"},
		{name: "dropped before the end date in a cancelled course", request: course.Request{Types: byType}, held: []course.Enrollment{in(cancelled(batch), dropped)},
			course: 2, action: course.Unchanged, start: -5, end: today.AddDays(5).String(), warning: "is dropped"},
		{name: "only an ended batch, by type", request: course.Request{Types: byType}, offer: []course.Course{def}, held: []course.Enrollment{in(batch, expired)},
			course: 2, action: course.Unchanged, start: -50, end: today.AddDays(-20).String(), warning: "course_ids: [2]"},
		{name: "ended batch, by type and id", request: course.Request{Types: byType, Courses: byID(2)}, offer: []course.Course{def, batch}, held: []course.Enrollment{in(batch, expired)},
			course: 2, action: course.Reactivated, end: today.AddMonths(6).String()},
		{name: "an older ended batch that the call names too", request: course.Request{Types: byType, Courses: byID(2)}, offer: []course.Course{def, batch},
			held: []course.Enrollment{in(open(3, false), grace), in(batch, expired)}, course: 2, action: course.Reactivated, end: today.AddMonths(6).String()},
		{name: "ended default course before an ended batch", request: course.Request{Types: byType}, held: []course.Enrollment{in(batch, grace), in(def, expired)},
			course: 1, action: course.Reactivated, end: today.AddMonths(6).String()},

		{name: "dropped before the end date", request: course.Request{Types: byType}, held: []course.Enrollment{in(def, dropped)},
			course: 1, action: course.Unchanged, start: -5, end: today.AddDays(5).String(), warning: "is dropped"},
		{name: "completed before the end date, with extend_access", request: course.Request{Types: byType, Extend: true, Ref: "7"}, held: []course.Enrollment{in(def, held(course.Completed, -5, 5, 12))},
			course: 1, action: course.Unchanged, start: -5, end: today.AddDays(5).String(), warning: "is completed"},

		{name: "suspended", request: course.Request{Types: byType, Extend: true, Ref: "7"}, held: []course.Enrollment{in(def, suspended)},
			course: 1, action: course.Skipped, start: -5, end: today.AddDays(5).String(), warning: "suspended"},
		{name: "suspended in a batch, ended in the default course", request: course.Request{Types: byType}, held: []course.Enrollment{in(def, expired), in(batch, suspended)},
			course: 2, action: course.Skipped, start: -5, end: today.AddDays(5).String(), warning: "suspended"},
		{name: "suspended in the default course, running in a batch", request: course.Request{Types: byType}, held: []course.Enrollment{in(def, suspended), in(batch, active)},
			course: 2, action: course.Unchanged, start: -5, end: today.AddDays(5).String()},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := course.Held{Enrollments: c.held, RefUsed: map[id.Enrollment]bool{}}
			for _, e := range c.used {
				h.RefUsed[e] = true
			}
			moves, warnings, err := course.Plan(c.request, course.Offer{Types: []course.Type{ielts}, Courses: c.offer}, h, terms, today)
			if c.fault != "" {
				check.True(check.Now(t), "the fault is "+c.fault, fault.Has(err, c.fault), "%v", err)
				check.Equal(check.Now(t), "number of moves", len(moves), 0, "%v beside %v", moves, err)
				return
			}
			check.NoError(check.Now(t), err, "moves: %+v", moves)
			check.Equal(check.Now(t), "number of moves", len(moves), 1, "%+v", moves)
			m := moves[0]
			check.Equal(t, "action", m.Action, c.action, "%+v", m)
			check.Equal(t, "note", m.Note, c.note, "%+v", m)
			check.Equal(t, "course", m.After.Course.ID, c.course, "%+v", m)
			check.Equal(t, "start", m.After.StartDate.String(), today.AddDays(c.start).String(), "%+v", m)
			check.Equal(t, "end", m.After.EndDate.String(), c.end, "%+v", m)
			if m.Granted() {
				check.Equal(t, "the end of the grace period", m.After.GracePeriodEnd.String(), m.After.EndDate.AddDays(7).String(), "%+v", m)
				check.Equal(t, "state", m.After.State, course.Running, "%+v", m)
			}
			check.Equal(t, "the enrollment's id", m.After.ID, m.Before.ID, "%+v", m)
			check.Contains(t, "warnings", strings.Join(warnings, "\n"), c.warning, "%+v", m)
			check.Equal(t, "number of warnings", len(warnings), min(1, len(c.warning)), "%q", warnings)
		})
	}
}

// Reference: provisioning#rules.
func TestACourseNamedTwiceIsOneEntryInFirstNamedOrder(t *testing.T) {
	t.Parallel()
	def, batch := open(1, true), open(2, false)
	other := course.Course{ID: 3, Type: "toefl", IsDefault: true, Status: course.StatusActive, OpenForEnrollment: true, IsPerpetual: true, StartDate: today}
	moves, warnings, err := course.Plan(
		course.Request{Types: []string{"toefl", "ielts", "TOEFL"}, Courses: []id.Course{2, 1, 2}},
		course.Offer{Types: []course.Type{ielts, toefl}, Courses: []course.Course{def, batch, other}}, course.Held{}, terms, today)
	check.NoError(check.Now(t), err, "%v %v", err, warnings)
	check.Equal(check.Now(t), "number of warnings", len(warnings), 0, "%v %v", err, warnings)
	var got []id.Course
	for _, m := range moves {
		got = append(got, m.After.Course.ID)
	}
	if want := []id.Course{3, 1, 2}; !slices.Equal(got, want) {
		t.Fatalf("courses %v, want %v", got, want)
	}
}

func TestEveryFaultIsFound(t *testing.T) {
	t.Parallel()
	shut := open(2, false)
	shut.OpenForEnrollment = false
	_, _, err := course.Plan(course.Request{Types: []string{"latin", "greek"}, Courses: []id.Course{2, 9}},
		course.Offer{Types: []course.Type{ielts, toefl}, Courses: []course.Course{shut}}, course.Held{}, terms, today)
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatal(err)
	}
	var codes []string
	for _, one := range f.All() {
		codes = append(codes, one.Field+" "+one.Code)
	}
	want := []string{"courses unknown_course_type", "courses unknown_course_type", "course_ids unknown_course", "course_ids course_closed"}
	if !slices.Equal(codes, want) {
		t.Fatalf("faults %q, want %q", codes, want)
	}
	if !strings.Contains(f.Message, "ielts, toefl") {
		t.Errorf("%q does not list the valid values", f.Message)
	}
}
