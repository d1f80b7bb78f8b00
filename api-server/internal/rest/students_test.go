package rest_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// provision onboards a student and returns the user id.
func provision(t *testing.T, o apitest.Organization, email string, more ...string) int64 {
	t.Helper()
	body := fmt.Sprintf(`{"email": %q, "first_name": "Ana", "last_name": "Lopez", "send_welcome_email": false%s}`, email, strings.Join(append([]string{""}, more...), ", "))
	var answer struct {
		UserID int64 `json:"user_id"`
	}
	a := o.Full.Post(t, "provision/student/", body)
	if a.Status >= 300 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a.Into(t, &answer)
	return answer.UserID
}

func sql(t *testing.T, e *apitest.Env, statement string, args ...any) {
	t.Helper()
	if _, err := e.DB.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

type studentPage struct {
	Count      int    `json:"count"`
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
	Students   []struct {
		UserID int64 `json:"user_id"`
	} `json:"students"`
}

func (p studentPage) ids() (ids []int64) {
	for _, s := range p.Students {
		ids = append(ids, s.UserID)
	}
	return ids
}

// Reference: courses#enrollment-fields, students#lookup.
func TestStudentLookup(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	ana := provision(t, north, "ana@school.example", `"courses": ["ielts", "toefl"], "tenure_months": 2`)
	sql(t, e, `UPDATE accounts SET last_login = '2026-11-20T20:00:00Z' WHERE id = $1`, ana)
	north.ReadOnly.Get(t, "students/?email=ANA%40school.example").Want(t, 200).Golden(t, "student")
	north.ReadOnly.Get(t, "students/?email=ana@school.example&tz=Asia/Kolkata").Want(t, 200).Golden(t, "student-in-zone")
	e.Platform.Put(t, "organizations/north/staff/boss@school.example", `{"first_name": "Bo", "role": "owner", "password": "correct horse battery"}`).Want(t, 201)
	if body := string(north.Full.Get(t, "students/?email=boss@school.example").Want(t, 200).Body); !strings.Contains(body, `"role":"owner"`) {
		t.Errorf("a member of the staff: %s", body)
	}
	south.Full.Get(t, "students/?email=ana@school.example").WantFault(t, 404, "student_not_found", "")
	north.Full.Get(t, "students/?email=nobody@school.example").WantFault(t, 404, "student_not_found", "")
	for _, bad := range []string{"", "ana", "%20", "a@b@c", "ana@school.example,b@school.example"} {
		north.Full.Get(t, "students/?email="+bad).WantFault(t, 400, "invalid_email", "email")
	}
	north.Full.Get(t, "students/?email=%00@x.org").Want(t, 400)
	north.Full.Get(t, "students/?email=ana@school.example&tz=Local").WantFault(t, 400, "unknown_time_zone", "tz")
	// Enrolled and no member.
	sql(t, e, `DELETE FROM members WHERE user_id = $1`, ana)
	if body := string(north.Full.Get(t, "students/?email=ana@school.example").Want(t, 200).Body); !strings.Contains(body, `"membership":null`) {
		t.Errorf("enrolled and no member: %s", body)
	}
}

// Reference: students#student-list, students#student-fields, limits#lists.
func TestStudentList(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	north.Full.Get(t, "students/").Want(t, 200)
	active := provision(t, north, "active@school.example", `"courses": ["ielts"]`)
	never := provision(t, north, "never@school.example")
	left := provision(t, north, "left@school.example")
	over := provision(t, north, "over@school.example", `"courses": ["ielts"]`)
	waits := provision(t, north, "waits@school.example", `"courses": ["toefl"]`)
	guest := provision(t, north, "guest@school.example", `"courses": ["ielts"]`)
	dropped := provision(t, north, "dropped@school.example", `"courses": ["ielts"]`)
	suspended := provision(t, north, "suspended@school.example", `"courses": ["ielts"]`)
	grace := provision(t, north, "grace@school.example", `"courses": ["ielts"]`)
	provision(t, south, "elsewhere@school.example", `"courses": ["ielts"]`)
	staff := provision(t, north, "staff@school.example", `"courses": ["ielts"]`)
	e.Platform.Put(t, "organizations/north/staff/staff@school.example", `{"role": "teacher"}`).Want(t, 200)
	sql(t, e, `UPDATE members SET status = 'inactive' WHERE user_id = $1`, left)
	sql(t, e, `UPDATE enrollments SET start_date = '2026-01-01', end_date = '2026-11-13', grace_period_end = '2026-11-20' WHERE user_id = $1`, over)
	sql(t, e, `UPDATE enrollments SET start_date = '2026-01-01', end_date = '2026-11-14', grace_period_end = '2026-11-21' WHERE user_id = $1`, grace)
	sql(t, e, `UPDATE enrollments SET start_date = '2026-11-22' WHERE user_id = $1`, waits)
	sql(t, e, `UPDATE enrollments SET state = 'dropped' WHERE user_id = $1`, dropped)
	sql(t, e, `UPDATE enrollments SET state = 'suspended' WHERE user_id = $1`, suspended)
	sql(t, e, `DELETE FROM members WHERE user_id = $1`, guest)

	list := func(parameters string) []int64 {
		t.Helper()
		var p studentPage
		north.ReadOnly.Get(t, "students/?"+parameters).Want(t, 200).Into(t, &p)
		if check.Equal(t, "p.Count", p.Count, len(p.Students), "%s: %+v", parameters, p) &&
			check.False(t, "p.HasMore", p.HasMore, "%s: %+v", parameters, p) {
			check.True(t, "there is a next cursor", p.NextCursor != "", "%s: %+v", parameters, p)
		}
		return p.ids()
	}
	for parameters, want := range map[string][]int64{
		"":                                   {active, never, left, over, waits, guest, dropped, suspended, grace},
		"status=":                            {active, never, left, over, waits, guest, dropped, suspended, grace},
		"status=active":                      {active, guest, grace},
		"status=Inactive":                    {left, over, dropped, suspended},
		"course_id=" + courseOf(t, e, waits): {waits},
		"status=active&course_id=" + courseOf(t, e, over): {active, guest, grace},
	} {
		if got := list(parameters); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", parameters, got, want)
		}
	}
	if slices.Contains(list(""), staff) {
		t.Error("staff are listed")
	}
	north.ReadOnly.Get(t, "students/?limit=1").Want(t, 200).Golden(t, "students-page")
	for parameters, field := range map[string]string{"limit=0": "limit", "limit=501": "limit", "limit=ten": "limit", "status=gone": "status",
		"course_id=x": "course_id", "course_id=0": "course_id", "tz=Mars": "tz", "cursor=x": "cursor"} {
		if f := north.Full.Get(t, "students/?"+parameters).Want(t, 400).Object(t); f["field"] != field {
			t.Errorf("%s: %v", parameters, f)
		}
	}
	north.Full.Get(t, "students/?course_id="+courseOf(t, e, provision(t, south, "x@school.example", `"courses": ["sat"]`))).WantFault(t, 404, "not_found", "course_id")
}

func courseOf(t *testing.T, e *apitest.Env, user int64) (course string) {
	t.Helper()
	if err := e.DB.QueryRow(t.Context(), `SELECT course_id::text FROM enrollments WHERE user_id = $1`, user).Scan(&course); err != nil {
		t.Fatal(err)
	}
	return course
}

// Walking with limit=1 gives the same as one page of the maximum, and whoever is there
// from the beginning to the end of a walk is seen, whatever else comes and goes.
// Reference: conventions#pages.
func TestStudentWalk(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	var want []int64
	for i := range 12 {
		want = append(want, provision(t, north, "s"+strconv.Itoa(i)+"@school.example", `"courses": ["ielts"]`))
	}
	for _, filter := range []string{"", "&status=active", "&course_id=1"} {
		var all studentPage
		north.Full.Get(t, "students/?limit=500"+filter).Want(t, 200).Into(t, &all)
		var walked []int64
		cursor := ""
		for {
			var p studentPage
			north.Full.Get(t, "students/?limit=1"+filter+"&cursor="+url.QueryEscape(cursor)).Want(t, 200).Into(t, &p)
			walked, cursor = append(walked, p.ids()...), p.NextCursor
			if !p.HasMore {
				break
			}
		}
		if check.Slices(t, "the ids one by one", walked, all.ids(), "%q: walked %v, one page %v", filter, walked, all.ids()) &&
			check.Slices(t, "the ids one by one", walked, want, "%q: walked %v, one page %v", filter, walked, all.ids()) {
			check.Equal(t, "cursor", cursor, all.NextCursor, "%q: walked %v, one page %v", filter, walked, all.ids())
		}
		// The end gives its own cursor again, and who comes later is found from there.
		var end studentPage
		north.Full.Get(t, "students/?limit=1"+filter+"&cursor="+cursor).Want(t, 200).Into(t, &end)
		if check.Equal(t, "end.NextCursor", end.NextCursor, cursor, "%q: %+v", filter, end) {
			check.Equal(t, "end.Count", end.Count, 0, "%q: %+v", filter, end)
		}
		want = append(want, provision(t, north, "late"+strconv.Itoa(len(want))+"@school.example", `"courses": ["ielts"]`))
		north.Full.Get(t, "students/?limit=1"+filter+"&cursor="+cursor).Want(t, 200).Into(t, &end)
		if !slices.Equal(end.ids(), want[len(want)-1:]) {
			t.Errorf("%q: %v", filter, end.ids())
		}
	}
	var first studentPage
	north.Full.Get(t, "students/?limit=5").Want(t, 200).Into(t, &first)
	sql(t, e, `DELETE FROM members WHERE user_id = $1`, want[4]) // still enrolled
	sql(t, e, `UPDATE members SET status = 'inactive' WHERE user_id = $1`, want[5])
	var rest studentPage
	north.Full.Get(t, "students/?limit=500&tz=Asia/Tokyo&cursor="+first.NextCursor).Want(t, 200).Into(t, &rest)
	if got := append(first.ids(), rest.ids()...); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	e.Advance(10 * 365 * 24 * time.Hour)
	north.Full.Get(t, "students/?cursor="+first.NextCursor).Want(t, 200) // never expires
	north.Full.Get(t, "students/?status=active&cursor="+first.NextCursor).WantFault(t, 400, "invalid_cursor", "cursor")
	e.Organization(t, "south").Full.Get(t, "students/?cursor="+first.NextCursor).WantFault(t, 400, "invalid_cursor", "cursor")
}
