package rest_test

import (
	"fmt"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// offered is a course type as GET /courses/ shows it.
type offered struct {
	Name          string
	DefaultCourse *struct {
		ID   int64
		Name string
	} `json:"default_course"`
	Months   *int `json:"default_access_months"`
	Weeks    *int `json:"default_access_weeks"`
	Starters int  `json:"starter_tests_available"`
}

func typeOf(t *testing.T, o apitest.Organization, name string) offered {
	t.Helper()
	var body struct {
		CourseTypes []offered `json:"course_types"`
	}
	o.ReadOnly.Get(t, "courses/").Want(t, 200).Into(t, &body)
	for _, typ := range body.CourseTypes {
		if typ.Name == name {
			return typ
		}
	}
	t.Fatalf("there is no type %s", name)
	return offered{}
}

// ends is the last day of access from today on, of the length that was shown.
func (o offered) ends() string {
	today := clock.DateIn(apitest.Start, apitest.Start.Location())
	if o.Weeks != nil {
		return today.AddDays(7 * *o.Weeks).String()
	}
	return today.AddMonths(*o.Months).String()
}

// enrolled is an entry of a provisioning answer.
type enrolled struct {
	CourseID     int64  `json:"course_id"`
	EnrollmentID int64  `json:"enrollment_id"`
	EndDate      string `json:"end_date"`
	Status       string `json:"status"`
	Action       string `json:"action"`
}

// granted provisions somebody in IELTS and returns the one enrollment.
func granted(t *testing.T, o apitest.Organization, email string) enrolled {
	t.Helper()
	var body struct{ Enrollments []enrolled }
	a := o.Full.Post(t, provisionPath, fmt.Sprintf(`{"email": %q, "first_name": "Ana", "courses": "ielts"}`, email))
	a.Into(t, &body)
	check.Equal(check.Now(t), "len(enrollments)", len(body.Enrollments), 1, "%d %s", a.Status, a.Body)
	return body.Enrollments[0]
}

// What the type shows is what a grant without tenure_months gives at that moment, whoever decides the
// length. Reference: courses#course-types, courses#access-length.
func TestATypeShowsWhatAGrantGives(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	e.Platform.Put(t, "organizations/north", `{"provisioning_defaults": {"default_access_months": 5}}`).Want(t, 200)
	steps := []func(course int64){
		func(int64) {}, // no default course yet
		func(course int64) { patchCourse(t, e, course, `{"default_access_months": 7}`) },
		func(course int64) { patchCourse(t, e, course, `{"default_access_weeks": 2}`) },
		func(course int64) {
			patchCourse(t, e, course, `{"default_access_weeks": null, "default_access_months": null}`)
		},
		func(int64) { sql(t, e, `UPDATE course_types SET default_access_months = 9 WHERE name = 'ielts'`) },
	}
	var course int64
	for i, step := range steps {
		step(course)
		shown := typeOf(t, north, "ielts")
		check.True(check.Now(t), "one length", (shown.Months == nil) != (shown.Weeks == nil), "step %d: %+v", i, shown)
		got := granted(t, north, fmt.Sprintf("s%d@institute.org", i))
		check.Equal(t, "end_date", got.EndDate, shown.ends(), "step %d: the type shows another length", i)
		course = got.CourseID
	}
}

func patchCourse(t *testing.T, e *apitest.Env, course int64, body string) {
	t.Helper()
	e.Platform.Patch(t, fmt.Sprintf("organizations/north/courses/%d", course), body).Want(t, 200)
}

// Reference: courses#course-types, provisioning#type-or-course.
func TestACancelledDefaultCourseIsReplacedByTheNextGrant(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	first := granted(t, north, "ana@institute.org")
	sql(t, e, `UPDATE enrollments SET start_date = '2026-01-01', end_date = '2026-11-01', grace_period_end = '2026-11-08'`)
	patchCourse(t, e, first.CourseID, `{"status": "cancelled", "default_access_months": 7}`)
	shown := typeOf(t, north, "ielts")
	check.True(t, "default_course is null", shown.DefaultCourse == nil, "%+v", shown)
	check.Equal(t, "default_access_months", *shown.Months, 3, "it is still the cancelled course's")
	second := granted(t, north, "ben@institute.org")
	check.True(t, "another course", second.CourseID != first.CourseID, "the grant is in the cancelled course %d", first.CourseID)
	check.Equal(t, "default_course.id", typeOf(t, north, "ielts").DefaultCourse.ID, second.CourseID, "the new course is not the default")
	// Whose access in the cancelled course has ended is no dead end either.
	again := granted(t, north, "ana@institute.org")
	check.Equal(t, "action", again.Action, "created", "%+v", again)
	check.Equal(t, "course_id", again.CourseID, second.CourseID, "%+v", again)
}

// Reference: courses#course-types.
func TestStarterTestsThatAreSwitchedOffAreNotAvailable(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	e.Platform.Put(t, "catalog/tests/starter", `{"title": "Starter", "type": "ielts", "starter": true}`).Want(t, 201)
	check.Equal(t, "starter_tests_available", typeOf(t, north, "ielts").Starters, 1, "switched on")
	for _, off := range []string{"starter_tests_per_course", "visible_tests_limit"} {
		e.Platform.Put(t, "organizations/north", `{"provisioning_defaults": {"`+off+`": 0}}`).Want(t, 200)
		check.Equal(t, "starter_tests_available", typeOf(t, north, "ielts").Starters, 0, "%s is 0", off)
		e.Platform.Put(t, "organizations/north", `{"provisioning_defaults": {"`+off+`": 5}}`).Want(t, 200)
	}
}
