package course_test

import (
	"errors"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

var (
	now   = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	today = clock.DateIn(now, time.UTC)
)

func organization(t *testing.T, db *pg.DB, slug string) id.Organization {
	t.Helper()
	return flowtest.On(t, db).Organization(slug).ID
}

// person makes an account, a member of org when role is not "".
func person(t *testing.T, db *pg.DB, org id.Organization, email, role string) id.User {
	t.Helper()
	f := flowtest.On(t, db)
	if role == "" {
		return f.Account(email, "Ana", "")
	}
	return f.Of(org).Member(email, role)
}

func enrollment(t *testing.T, db *pg.DB, org id.Organization, user id.User, c id.Course, state, start, end, grace string) {
	t.Helper()
	_, err := db.Exec(t.Context(), `
		INSERT INTO enrollments (organization_id, user_id, course_id, state, start_date, end_date, grace_period_end, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, now(), now())`, org, user, c, state, start, end, grace)
	if err != nil {
		t.Fatal(err)
	}
}

func draft(name, typ string) course.Draft {
	return course.Draft{Name: name, Type: typ, OpenForEnrollment: true, StartDate: today}
}

// Reference: courses#course-types.
func TestTheFourteenTypes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	types, err := course.Types(t.Context(), db)
	check.NoError(check.Now(t), err, "%d types, %v", len(types), err)
	check.Equal(check.Now(t), "number of types", len(types), 14, "%d types, %v", len(types), err)
	if first := types[0]; first != (course.Type{Name: "ielts", DisplayName: "IELTS Academic", Active: true, TestPlanAvailable: true, TargetScoreMax: 9}) {
		t.Fatalf("first type = %+v", first)
	}
	if last := types[13]; check.Equal(check.Now(t), "last.Name", last.Name, "custom", "last type = %+v", last) {
		check.Equal(check.Now(t), "last.TargetScoreMax", last.TargetScoreMax, 100, "last type = %+v", last)
	}
}

func TestAnInactiveTypeIsNotResolved(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if got, err := course.SetTypeActive(t.Context(), db, audit.Platform, "dmat", false, now); check.NoError(check.Now(t), err, "%+v, %v", got, err) {
		check.False(check.Now(t), "got.Active", got.Active, "%+v, %v", got, err)
	}
	if _, err := course.SetTypeActive(t.Context(), db, audit.Platform, "latin", false, now); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("unknown type: %v", err)
	}
	types, err := course.Types(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"ielts": "ielts", " IELTS academic ": "ielts", "PTE_Core": "pte_core", "dMAT": "", "": "", "latin": ""} {
		got, err := course.ResolveType(types, "courses", text)
		check.Equal(t, "type", got.Name, want, "%q: %v", text, err)
		check.Equal(t, "the fault is unknown_course_type", fault.Has(err, "unknown_course_type"), want == "", "%q: %v", text, err)
	}
}

func TestCreateFindAndUpdateStayInTheOrganization(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org, other := organization(t, db, "org"), organization(t, db, "other")
	d := draft("  Evening batch ", "toefl")
	d.EndDate, d.DefaultAccessWeeks = today.AddDays(90), 8
	made, err := course.Create(t.Context(), db, audit.Platform, org, d, now)
	if err != nil {
		t.Fatal(err)
	}
	want := course.Course{ID: made.ID, Name: "Evening batch", Type: "toefl", TypeDisplay: "TOEFL", Status: course.StatusActive,
		OpenForEnrollment: true, StartDate: today, EndDate: today.AddDays(90), DefaultAccessWeeks: 8}
	if made != want {
		t.Fatalf("made %+v\nwant %+v", made, want)
	}
	if got, err := course.Find(t.Context(), db, org, made.ID); check.NoError(check.Now(t), err, "found %+v, %v", got, err) {
		check.Equal(check.Now(t), "got", got, want, "found %+v, %v", got, err)
	}
	if _, err := course.Find(t.Context(), db, other, made.ID); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("another organization finds it: %v", err)
	}

	closed, none, zero := false, clock.Date{}, 0
	patch := course.Patch{OpenForEnrollment: &closed, EndDate: &none, DefaultAccessWeeks: &zero}
	want.OpenForEnrollment, want.EndDate, want.DefaultAccessWeeks = false, none, 0
	update := func(org id.Organization, p course.Patch) (course.Course, error) {
		return course.Update(t.Context(), db, audit.Platform, org, made.ID, p, now)
	}
	if got, err := update(org, patch); check.NoError(check.Now(t), err, "updated %+v, %v\nwant %+v", got, err, want) {
		check.Equal(check.Now(t), "got", got, want, "updated %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := update(other, patch); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("another organization updates it: %v", err)
	}
	early := today.AddDays(-1)
	if _, err := update(org, course.Patch{EndDate: &early}); fault.KindOf(err) != fault.Invalid {
		t.Fatalf("an end before the start: %v", err)
	}
}

func TestCreateNamesEveryFieldAtFault(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := course.Create(t.Context(), db, audit.Platform, organization(t, db, "org"),
		course.Draft{Status: "gone", DefaultAccessMonths: 121, DefaultAccessWeeks: -1}, now)
	var f *fault.Error
	check.True(check.Now(t), "the error is a fault", errors.As(err, &f), "faults: %v", err)
	check.Equal(check.Now(t), "number of faults", len(f.All()), 6, "faults: %v", err)
	if _, err := course.Create(t.Context(), db, audit.Platform, organization(t, db, "second"), draft("Latin", "latin"), now); !fault.Has(err, "unknown_course_type") {
		t.Fatalf("unknown type: %v", err)
	}
}

// Reference: courses#course-fields.
func TestOpenOn(t *testing.T) {
	t.Parallel()
	open := course.Course{Status: course.StatusActive, OpenForEnrollment: true, EndDate: today}
	for name, c := range map[string]struct {
		change func(*course.Course)
		on     clock.Date
		want   bool
	}{
		"open on its last day":            {func(*course.Course) {}, today, true},
		"ended yesterday":                 {func(*course.Course) {}, today.AddDays(1), false},
		"perpetual does not end":          {func(c *course.Course) { c.IsPerpetual = true }, today.AddDays(1), true},
		"no end":                          {func(c *course.Course) { c.EndDate = clock.Date{} }, today.AddDays(999), true},
		"closed":                          {func(c *course.Course) { c.OpenForEnrollment = false }, today, false},
		"completed":                       {func(c *course.Course) { c.Status = course.StatusCompleted }, today, false},
		"cancelled":                       {func(c *course.Course) { c.Status = course.StatusCancelled }, today, false},
		"perpetual, but closed by a hand": {func(c *course.Course) { c.IsPerpetual, c.OpenForEnrollment = true, false }, today, false},
	} {
		got := open
		c.change(&got)
		if got.OpenOn(c.on) != c.want {
			t.Errorf("%s: open = %v", name, !c.want)
		}
	}
}

func TestCountsLeaveOutStaffAndCancelledCourses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org := organization(t, db, "org")
	var made []course.Course
	for _, name := range []string{"a", "b", "cancelled"} {
		d := draft(name, "ielts")
		if name == "cancelled" {
			d.Status = course.StatusCancelled
		}
		c, err := course.Create(t.Context(), db, audit.Platform, org, d, now)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, c)
	}
	day := func(n int) string { return today.AddDays(n).String() }
	ana := person(t, db, org, "ana@x.y", "member")
	ben := person(t, db, org, "ben@x.y", "")
	cat := person(t, db, org, "cat@x.y", "examiner")
	enrollment(t, db, org, ana, made[0].ID, "running", day(-9), day(-3), day(0)) // last day of grace
	enrollment(t, db, org, ana, made[1].ID, "running", day(5), day(9), day(9))   // scheduled
	enrollment(t, db, org, ben, made[0].ID, "suspended", day(-9), day(3), day(9))
	enrollment(t, db, org, ben, made[1].ID, "running", day(-9), day(-3), day(-1)) // over
	enrollment(t, db, org, cat, made[0].ID, "running", day(-9), day(9), day(9))   // staff
	list, err := course.List(t.Context(), db, org, today)
	check.NoError(check.Now(t), err, "list = %+v, %v", list, err)
	check.Equal(check.Now(t), "number of courses", len(list), 2, "list = %+v, %v", list, err)
	check.Equal(check.Now(t), "the first course's students with access", list[0].StudentsWithAccess, 1, "list = %+v, %v", list, err)
	check.Equal(check.Now(t), "the second course's students with access", list[1].StudentsWithAccess, 1, "list = %+v, %v", list, err)
	if got, err := course.Count(t.Context(), db, org, today); check.NoError(check.Now(t), err, "counts = %+v, %v", got, err) {
		check.Equal(check.Now(t), "got", got, (course.Counts{Courses: 2, StudentsWithAccess: 1}), "counts = %+v, %v", got, err)
	}
}
