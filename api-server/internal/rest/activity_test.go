package rest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// seen reports one page view.
func seen(t *testing.T, e *apitest.Env, slug string, user int, at time.Time) {
	t.Helper()
	body := fmt.Sprintf(`{"events": [{"organization": %q, "user_id": %d, "at": %q, "kind": "page_view"}]}`, slug, user, at.Format(time.RFC3339))
	var receipt struct {
		Accepted int `json:"accepted"`
	}
	if a := e.Platform.Post(t, "activity", body).Want(t, 200).Into(t, &receipt); receipt.Accepted != 1 {
		t.Fatalf("%s", a.Body)
	}
}

func compile(t *testing.T, e *apitest.Env, days ...string) {
	t.Helper()
	for _, day := range days {
		e.Platform.Post(t, "activity/compile", map[string]any{"date": day}).Want(t, 200)
	}
}

func onboard(t *testing.T, o apitest.Organization, body string) {
	t.Helper()
	o.Full.Post(t, "provision/student/", body).Want(t, 201)
}

// Reference: activity#activity-rows.
func TestActivityByDay(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	onboard(t, north, `{"email": "ana@institute.org", "first_name": "Ana", "last_name": "Lopez", "courses": "ielts"}`)
	onboard(t, north, `{"email": "ben@institute.org", "first_name": "Ben"}`)
	// 18:30 UTC is midnight in India: these are two days there and one in UTC.
	seen(t, e, "north", 1, time.Date(2026, 11, 19, 18, 29, 0, 0, time.UTC))
	seen(t, e, "north", 1, time.Date(2026, 11, 19, 18, 30, 0, 0, time.UTC))
	seen(t, e, "north", 2, time.Date(2026, 11, 20, 18, 29, 0, 0, time.UTC))
	north.ReadOnly.Get(t, "activity/daily/").Want(t, 200).Golden(t, "activity-none")
	compile(t, e, "2026-11-19", "2026-11-20")
	north.ReadOnly.Get(t, "activity/daily/").Want(t, 200).Golden(t, "activity")
	north.ReadOnly.Get(t, "activity/daily/?tz=America/New_York&from=2026-11-20&to=2026-11-20&user_id=1").Want(t, 200).Golden(t, "activity-new-york")
	north.ReadOnly.Get(t, "activity/daily/?email=Ana@institute.org&to=2026-11-19").Want(t, 200).Golden(t, "activity-one")
	north.ReadOnly.Get(t, "activity/daily/?course_id=1&from=2026-11-20").Want(t, 200).Golden(t, "activity-course")
}

// Reference: limits#lists.
func TestActivityRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	onboard(t, north, `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts"}`)
	e.Platform.Put(t, "organizations/north/staff/owner@institute.org", `{"first_name": "Olive", "role": "owner"}`).Want(t, 201)
	get := func(query string) *apitest.Answer { return north.Full.Get(t, "activity/daily/?"+query) }
	get("from=2026-11-02&to=2026-11-01").WantFault(t, 400, "after_to", "from")
	get("from=2025-11-19&to=2026-11-20").WantFault(t, 400, "range_too_long", "from")
	get("from=2025-11-20&to=2026-11-20").Want(t, 200) // 366 days
	get("from=yesterday").WantFault(t, 400, "not_a_date", "from")
	get("limit=1001").WantFault(t, 400, "out_of_range", "limit")
	get("limit=1000").Want(t, 200)
	get("limit=0").WantFault(t, 400, "out_of_range", "limit")
	get("tz=Local").WantFault(t, 400, "unknown_time_zone", "tz")
	get("email=").WantFault(t, 400, "invalid_email", "email")
	get("user_id=x").WantFault(t, 400, "not_an_id", "user_id")
	get("cursor=x").WantFault(t, 400, "invalid_cursor", "cursor")
	get("email=owner@institute.org").WantFault(t, 404, "student_not_found", "")
	get("user_id=99").WantFault(t, 404, "student_not_found", "")
	get("course_id=99").WantFault(t, 404, "not_found", "course_id")
	for _, query := range []string{"email=ana@institute.org", "user_id=1", "course_id=1"} {
		south.Full.Get(t, "activity/daily/?"+query).Want(t, 404)
	}
	var page struct {
		Cursor string `json:"next_cursor"`
	}
	get("").Want(t, 200).Into(t, &page)
	get("cursor="+page.Cursor).Want(t, 200)
	get("user_id=1&cursor="+page.Cursor).WantFault(t, 400, "invalid_cursor", "cursor")
	south.Full.Get(t, "activity/daily/?cursor="+page.Cursor).WantFault(t, 400, "invalid_cursor", "cursor")
	e.Partner("").Get(t, "activity/daily/").WantFault(t, 401, "missing_api_key", "")
}

// A walk with one row a page gives what one page does, though rows are added to days that
// were read already and to days that were not.
func TestActivityIsWalked(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for i := range 5 {
		onboard(t, north, fmt.Sprintf(`{"email": "s%d@institute.org", "first_name": "S"}`, i))
		for d := range 3 {
			if (i+d)%4 != 0 {
				seen(t, e, "north", i+1, time.Date(2026, 11, 18+d, 8, 0, 0, 0, time.UTC))
			}
		}
	}
	compile(t, e, "2026-11-18", "2026-11-19", "2026-11-20")
	type answer struct {
		Days    []json.RawMessage `json:"days"`
		Count   int               `json:"count"`
		HasMore bool              `json:"has_more"`
		Cursor  string            `json:"next_cursor"`
	}
	get := func(query string) (a answer) {
		t.Helper()
		north.Full.Get(t, "activity/daily/?"+query).Want(t, 200).Into(t, &a)
		return a
	}
	whole := get("limit=1000")
	var walked []string
	page := get("limit=1")
	for i := 0; ; i++ {
		for _, d := range page.Days {
			walked = append(walked, string(d))
		}
		if !page.HasMore {
			break
		}
		if i == 3 {
			seen(t, e, "north", 1, time.Date(2026, 11, 18, 8, 0, 0, 0, time.UTC)) // before the cursor
			seen(t, e, "north", 3, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)) // after it
			compile(t, e, "2026-11-18", "2026-11-20")
		}
		page = get("limit=1&cursor=" + page.Cursor)
	}
	for _, d := range whole.Days {
		if n := len(slices.DeleteFunc(slices.Clone(walked), func(w string) bool { return w != string(d) })); n != 1 {
			t.Errorf("%s was seen %d times", d, n)
		}
	}
	if check.Equal(t, "number of days", len(whole.Days), 11, "%d rows, %d walked:\n%s", len(whole.Days), len(walked), strings.Join(walked, "\n")) &&
		check.Equal(t, "number of walked rows", len(walked), 12, "%d rows, %d walked:\n%s", len(whole.Days), len(walked), strings.Join(walked, "\n")) {
		check.Contains(t, "the tenth walked row", walked[9], `"user_id":3`, "%d rows, %d walked:\n%s", len(whole.Days), len(walked), strings.Join(walked, "\n"))
	}
	if end := get("cursor=" + page.Cursor); check.Equal(t, "end.Count", end.Count, 0, "after the end: %+v", end) &&
		check.False(t, "end.HasMore", end.HasMore, "after the end: %+v", end) {
		check.Equal(t, "end.Cursor", end.Cursor, page.Cursor, "after the end: %+v", end)
	}
}

// The last 30 days are others when a walk without from goes on after midnight in India, or
// from a stored cursor. None of its days is left out for that.
// Reference: activity#activity-days.
func TestActivityGoesOnOnAnotherDay(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	onboard(t, north, `{"email": "ana@institute.org", "first_name": "Ana"}`)
	onboard(t, north, `{"email": "ben@institute.org", "first_name": "Ben"}`)
	type answer struct {
		From string `json:"from"`
		Days []struct {
			Date    string `json:"date"`
			Student struct {
				ID int `json:"user_id"`
			} `json:"student"`
		} `json:"days"`
		Cursor string `json:"next_cursor"`
	}
	get := func(query, from string, want ...string) string {
		t.Helper()
		var a answer
		north.Full.Get(t, "activity/daily/?"+query).Want(t, 200).Into(t, &a)
		var got []string
		for _, d := range a.Days {
			got = append(got, fmt.Sprintf("%s %d", d.Date, d.Student.ID))
		}
		if check.Equal(t, "a.From", a.From, from, "%s: from %s %v, want %s %v", query, a.From, got, from, want) {
			check.Slices(t, "the rows", got, want, "%s: from %s %v, want %s %v", query, a.From, got, from, want)
		}
		return a.Cursor
	}
	empty := get("", "2026-10-22") // yesterday is the 20th of November
	first := time.Date(2026, 10, 22, 8, 0, 0, 0, time.UTC)
	seen(t, e, "north", 1, first)
	seen(t, e, "north", 2, first)
	compile(t, e, "2026-10-22")
	cursor := get("limit=1", "2026-10-22", "2026-10-22 1")
	e.Advance(9 * time.Hour) // it is the 22nd in India
	cursor = get("limit=1&cursor="+cursor, "2026-10-22", "2026-10-22 2")
	get("", "2026-10-23")
	get("cursor="+empty, "2026-10-22", "2026-10-22 1", "2026-10-22 2")
	seen(t, e, "north", 1, e.Now())
	e.Advance(60 * 24 * time.Hour)
	compile(t, e, "2026-11-22")
	get("", "2026-12-22")
	get("cursor="+cursor, "2026-10-22", "2026-11-22 1")
	e.Advance(400 * 24 * time.Hour)
	get("cursor="+cursor, "2027-02-24") // 366 days to yesterday
}

// Who is a student is judged when the register is read.
// Reference: students#scope-of-lists.
func TestActivityOfThoseWhoLeft(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	onboard(t, north, `{"email": "ana@institute.org", "first_name": "Ana"}`)
	seen(t, e, "north", 1, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC))
	compile(t, e, "2026-11-20")
	count := func() any {
		t.Helper()
		return north.Full.Get(t, "activity/daily/?user_id=1").Want(t, 200).Object(t)["count"]
	}
	set := func(role, status string) {
		t.Helper()
		if _, err := e.DB.Exec(t.Context(), `UPDATE members SET role = $1, status = $2`, role, status); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != 1.0 {
		t.Errorf("%v rows of a member", n)
	}
	set("member", "inactive")
	if n := count(); n != 0.0 {
		t.Errorf("%v rows of one who left", n)
	}
	set("member", "active")
	again := north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts"}`)
	again.Want(t, 200)
	set("member", "inactive")
	if n := count(); n != 1.0 {
		t.Errorf("%v rows of one who left and is enrolled", n)
	}
	set("teacher", "active")
	north.Full.Get(t, "activity/daily/?user_id=1").WantFault(t, 404, "student_not_found", "")
	if n := north.Full.Get(t, "activity/daily/").Want(t, 200).Object(t)["count"]; n != 0.0 {
		t.Errorf("%v rows of the staff", n)
	}
}
