package rest_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// item puts a catalog item and returns its id.
func item(t *testing.T, e *apitest.Env, path, body string) (item int64) {
	t.Helper()
	var answer struct {
		ItemID int64 `json:"item_id"`
	}
	a := e.Platform.Put(t, path, body)
	if a.Status >= 300 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a.Into(t, &answer)
	return answer.ItemID
}

// listen adds a receiver URL for everything, so that events are kept.
func listen(t *testing.T, e *apitest.Env, slug string) {
	t.Helper()
	e.Platform.Post(t, "organizations/"+slug+"/webhook-endpoints", `{"url": "https://receiver.example/hooks"}`).Want(t, 201)
}

// events lists the data of the organization's events of a type, oldest first.
func events(t *testing.T, e *apitest.Env, slug, kind string) (data []string) {
	t.Helper()
	rows, err := e.DB.Query(t.Context(), `
		SELECT e.data::text FROM webhook_events e JOIN organizations o ON o.id = e.organization_id
		WHERE o.slug = $1 AND e.type = $2 ORDER BY e.id`, slug, kind)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var d string
		if err := rows.Scan(&d); err != nil {
			t.Fatal(err)
		}
		data = append(data, d)
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return data
}

type listPage struct {
	Count       int                   `json:"count"`
	HasMore     bool                  `json:"has_more"`
	NextCursor  string                `json:"next_cursor"`
	Assignments []struct{ ID string } `json:"assignments"`
	Results     []struct {
		ID    string  `json:"id"`
		Score float64 `json:"score"`
	} `json:"results"`
}

func (p listPage) ids() (ids []string) {
	for _, a := range p.Assignments {
		ids = append(ids, a.ID)
	}
	for _, r := range p.Results {
		ids = append(ids, r.ID)
	}
	return ids
}

// walk reads a list with limit=1 and with the maximum, wants the same and returns it.
func walk(t *testing.T, c *apitest.Client, path string) []string {
	t.Helper()
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	var all listPage
	c.Get(t, path+join+"limit=500").Want(t, 200).Into(t, &all)
	var walked []string
	cursor := ""
	for more := true; more; {
		var p listPage
		c.Get(t, path+join+"limit=1&cursor="+url.QueryEscape(cursor)).Want(t, 200).Into(t, &p)
		check.Equal(check.Now(t), "p.Count", p.Count, len(p.ids()), "%s: %+v", path, p)
		check.True(check.Now(t), "there is a next cursor", p.NextCursor != "", "%s: %+v", path, p)
		walked, cursor, more = append(walked, p.ids()...), p.NextCursor, p.HasMore
	}
	if check.Slices(t, "the ids one by one", walked, all.ids(), "%s: one by one %v, at once %v", path, walked, all.ids()) {
		check.Equal(t, "cursor", cursor, all.NextCursor, "%s: one by one %v, at once %v", path, walked, all.ids())
	}
	return walked
}

// Reference: assignments#assign-work.
func TestAssignWork(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	listen(t, e, "north")
	ana := provision(t, north, "ana@school.example", `"courses": ["ielts"]`)
	idle := provision(t, north, "idle@school.example")
	waits := provision(t, north, "waits@school.example", `"courses": ["ielts"]`)
	sql(t, e, `UPDATE enrollments SET start_date = '2026-11-22' WHERE user_id = $1`, waits)
	provision(t, south, "elsewhere@school.example", `"courses": ["ielts"]`)
	test := item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`)
	quiz := item(t, e, "organizations/north/catalog/quizzes/q1", `{"title": "Grammar"}`)
	theirs := item(t, e, "organizations/south/catalog/tests/s1", `{"title": "Private", "type": "sat"}`)
	other := item(t, e, "catalog/tests/i2", `{"title": "IELTS 2", "type": "ielts"}`)
	off := item(t, e, "catalog/tests/off", `{"title": "Off", "type": "sat", "active": false}`)
	post := func(format string, args ...any) *apitest.Answer {
		t.Helper()
		return north.Full.Post(t, "assignments/", fmt.Sprintf(format, args...))
	}
	post(`{"email": " ANA@school.example", "kind": "test", "item_id": %d, "due_date": "2026-11-30"}`, test).Want(t, 201).Golden(t, "assigned")
	post(`{"user_id": "%d", "kind": "test", "item_id": "%d", "due_date": "2026-12-30"}`, ana, test).Want(t, 200).Golden(t, "assigned-before")
	post(`{"email": "ana@school.example", "user_id": %d, "kind": "quiz", "item_id": %d, "due_date": "2026-11-21T16:00:00+05:30", "notify": "no"}`, ana, quiz).
		Want(t, 201).Golden(t, "assigned-quiz")

	north.ReadOnly.Post(t, "assignments/", `{}`).WantFault(t, 403, "read_only_key", "")
	post(`{}`).WantFault(t, 400, "missing", "email")
	post(`{"email": "ana", "kind": "test", "item_id": %d}`, test).WantFault(t, 400, "invalid_email", "email")
	post(`{"user_id": %d, "kind": "essay", "item_id": %d}`, ana, test).WantFault(t, 400, "not_a_choice", "kind")
	post(`{"user_id": %d, "kind": "test", "item_id": 0}`, ana).WantFault(t, 400, "not_a_whole_number", "item_id")
	for _, bad := range []string{"2026-11-20", "2026-11-21T09:59:59+00:00", "2026-11-31", "2026-12-01T10:00:00", "soon"} {
		if f := post(`{"user_id": %d, "kind": "test", "item_id": %d, "due_date": %q}`, ana, other, bad).Want(t, 400).Object(t); f["field"] != "due_date" {
			t.Errorf("%s: %v", bad, f)
		}
	}
	post(`{"email": "idle@school.example", "user_id": %d, "kind": "test", "item_id": %d}`, ana, test).WantFault(t, 400, "who_differs", "user_id")
	for _, who := range []string{`"email": "elsewhere@school.example"`, `"email": "nobody@school.example"`, `"user_id": 999999`,
		fmt.Sprintf(`"email": "elsewhere@school.example", "user_id": %d`, ana)} {
		post(`{%s, "kind": "test", "item_id": %d}`, who, test).WantFault(t, 404, "student_not_found", "")
	}
	for _, which := range []string{fmt.Sprintf(`"kind": "test", "item_id": %d`, theirs), fmt.Sprintf(`"kind": "quiz", "item_id": %d`, test),
		fmt.Sprintf(`"kind": "test", "item_id": %d`, off), `"kind": "assessment", "item_id": 999999`} {
		post(`{"user_id": %d, %s}`, ana, which).WantFault(t, 404, "item_not_found", "item_id")
	}
	for _, who := range []int64{idle, waits} {
		post(`{"user_id": %d, "kind": "test", "item_id": %d}`, who, test).WantFault(t, 409, "no_access", "")
	}
	post(`{"user_id": %d, "kind": "test", "item_id": %d}`, idle, theirs).WantFault(t, 404, "item_not_found", "item_id") // before 409
	if got := events(t, e, "north", "assignment.created"); check.Equal(t, "number of events", len(got), 2, "%v", got) &&
		check.Contains(t, "the first event", got[0], `"id":"test-assignment:1"`, "%v", got) {
		check.Contains(t, "the first event", got[0], `"due_date":"2026-11-30T23:59:59+00:00"`, "%v", got)
	}
}

// A call that is repeated later than its due date, or than the student's access, finds the work open.
// Reference: assignments#assign-work.
func TestARepeatAfterTheDueDateFindsTheWork(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	call := fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %d, "due_date": "2026-11-22"}`, s.ana, s.ielts)
	s.Full.Post(t, "assignments/", call).Want(t, 201)
	s.Advance(48 * time.Hour)
	if a := s.Full.Post(t, "assignments/", call).Want(t, 200).Object(t); a["created"] != false {
		t.Errorf("a repeat after the due date: %v", a)
	}
	if f := s.Full.Post(t, "assignments/", strings.Replace(call, "2026-11-22", "soon", 1)).WantFault(t, 400, "not_a_date", "due_date"); f.Field != "due_date" {
		t.Errorf("%v", f)
	}
	s.enrollment(t, `{"state": "dropped"}`)
	s.Full.Post(t, "assignments/", call).Want(t, 200)
	// Whatever is not open has to be assigned, and cannot be.
	for _, what := range []string{fmt.Sprintf(`"user_id": %d, "kind": "test", "item_id": %d`, s.ana, s.sat), fmt.Sprintf(`"user_id": 99999, "kind": "test", "item_id": %d`, s.sat)} {
		s.Full.Post(t, "assignments/", fmt.Sprintf(`{%s, "due_date": "2026-11-22"}`, what)).WantFault(t, 400, "in_the_past", "due_date")
	}
}

// Reference: assignments#assign-work, conventions#dates-and-times.
func TestADueDateIsReadInTheZoneThatIsSent(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	due := func(tz, text string, item int64) string {
		t.Helper()
		var a struct {
			Assignment struct {
				Due string `json:"due_date"`
			}
		}
		s.Full.Post(t, "assignments/"+tz, fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %d, "due_date": %q}`, s.ana, item, text)).Want(t, 201).Into(t, &a)
		return a.Assignment.Due
	}
	check.Equal(t, "without an offset", due("?tz=Asia/Kolkata", "2026-12-01T10:00", s.ielts), "2026-12-01T10:00:00+05:30", "tz is Asia/Kolkata")
	check.Equal(t, "with an offset", due("?tz=Asia/Kolkata", "2026-12-01T10:00+0000", s.sat), "2026-12-01T15:30:00+05:30", "tz is Asia/Kolkata")
	s.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "quiz", "item_id": %d, "due_date": "2026-12-01T10:00"}`, s.ana, s.quiz)).
		WantFault(t, 400, "not_a_date", "due_date")
}

// since chooses by when work was made, also that of students who came back, whose positions are new.
// Reference: assignments#assignment-list.
func TestSinceChoosesByWhenWorkWasMade(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.give(t, s.ana, s.ielts)
	s.Advance(24 * time.Hour)
	second := s.give(t, s.ana, s.sat)
	s.Advance(time.Hour)
	third := s.give(t, s.bo, s.sat)
	for range 2 {
		s.leave(t)
		s.member(t, "active")
		got := walk(t, s.Full, "assignments/?since=2026-11-22")
		check.True(t, "since the second day", slices.Equal(got, []string{third, second}), "%v, want %v", got, []string{third, second})
	}
}

// Of many equal calls at the same time one creates.
func TestAssignWorkAtTheSameTime(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	listen(t, e, "north")
	ana := provision(t, north, "ana@school.example", `"courses": ["ielts"]`)
	test := item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`)
	var wg sync.WaitGroup
	statuses := make([]int, 12)
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = north.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %d}`, ana, test)).Status
		})
	}
	wg.Wait()
	slices.Sort(statuses)
	if check.Equal(t, "the first status", statuses[0], 200, "%v", statuses) &&
		check.Equal(t, "the eleventh status", statuses[10], 200, "%v", statuses) &&
		check.Equal(t, "the twelfth status", statuses[11], 201, "%v", statuses) {
		check.Equal(t, "number of events", len(events(t, e, "north", "assignment.created")), 1, "%v", statuses)
	}
}

// Reference: assignments#assignment-list.
func TestAssignmentList(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	listen(t, e, "north")
	ana := provision(t, north, "ana@school.example", `"courses": ["ielts"]`)
	bo := provision(t, north, "bo@school.example", `"courses": ["toefl"]`)
	left := provision(t, north, "left@school.example", `"courses": ["ielts"]`)
	staff := provision(t, north, "staff@school.example", `"courses": ["ielts"]`)
	test := item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`)
	quiz := item(t, e, "organizations/north/catalog/quizzes/q1", `{"title": "Grammar"}`)
	essay := item(t, e, "organizations/north/catalog/assessments/e1", `{"title": "Essay", "max_score": 20}`)
	assign := func(user int64, kind string, item int64, due string) {
		t.Helper()
		north.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": %q, "item_id": %d, "due_date": %q}`, user, kind, item, due)).Want(t, 201)
		e.Advance(time.Hour)
	}
	assign(ana, "test", test, "2026-11-21")   // 1 at 10:00
	assign(ana, "quiz", quiz, "")             // 2 at 11:00
	assign(bo, "test", test, "2026-12-31")    // 3 at 12:00
	assign(bo, "assessment", essay, "")       // 4 at 13:00
	assign(left, "test", test, "2026-11-21")  // 5
	assign(staff, "test", test, "2026-11-21") // 6
	e.Platform.Put(t, "organizations/north/staff/staff@school.example", `{"role": "teacher"}`).Want(t, 200)
	sql(t, e, `UPDATE enrollments SET state = 'dropped' WHERE user_id = $1`, left)
	sql(t, e, `UPDATE members SET status = 'inactive' WHERE user_id = $1`, left)
	sql(t, e, `UPDATE assignments SET status = 'completed', completed_at = '2026-11-21T12:30:00Z', result_ref = 'quiz:2' WHERE id = 2`)
	sql(t, e, `UPDATE assignments SET status = 'submitted', due_at = '2026-11-21T15:00:00Z' WHERE id = 4`)
	e.Advance(24 * time.Hour)

	north.ReadOnly.Get(t, "assignments/?tz=Asia/Kolkata").Want(t, 200).Golden(t, "assignments")
	one, two, three, four := "test-assignment:1", "quiz-assignment:2", "test-assignment:3", "assessment-assignment:4"
	for filter, want := range map[string][]string{
		"":                                        {one, two, three, four},
		"?status=open":                            {one, three, four},
		"?status=completed":                       {two},
		"?status=overdue":                         {one},
		"?kind=test":                              {one, three},
		"?kind=quiz,assessment":                   {two, four},
		"?kind=test&status=overdue":               {one},
		"?email=Bo@school.example":                {three, four},
		fmt.Sprintf("?user_id=%d", ana):           {one, two},
		"?course_id=" + courseOf(t, e, bo):        {three, four},
		"?since=2026-11-21":                       {one, two, three, four},
		"?since=2026-11-22":                       nil,
		"?since=2026-11-21T12:00:00Z":             {three, four},
		"?since=2026-11-21T17:31:00 05:30":        {four},
		"?since=2026-11-21T12:00Z":                {three, four},
		"?since=2026-11-21T12:00:00+0000":         {three, four},
		"?since=2026-11-21T12:00:00+00":           {three, four},
		"?since=2026-11-21T17:30&tz=Asia/Kolkata": {three, four},
		"?since=2026-11-21&tz=Pacific/Kiritimati": {one, two, three, four},
		"?since=2026-11-22&tz=Pacific/Kiritimati": {one, two, three, four},
		fmt.Sprintf("?user_id=%d", left):          nil,
	} {
		filter = strings.ReplaceAll(filter, " ", "+")
		if got := walk(t, north.Full, "assignments/"+filter); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
	for filter, field := range map[string]string{"status=done": "status", "kind=x": "kind", "email=": "email", "user_id=0": "user_id", "since=yesterday": "since",
		"limit=0": "limit", "cursor=AQ": "cursor", "course_id=-1": "course_id", "since=2026-11-21T12:00:00": "since", "tz=localtime": "tz", "tz=right/UTC": "tz"} {
		if f := north.Full.Get(t, "assignments/?"+filter).Want(t, 400).Object(t); f["field"] != field {
			t.Errorf("%s: %v", filter, f)
		}
	}
	for _, filter := range []string{"email=staff@school.example", "email=nobody@school.example", fmt.Sprintf("email=bo@school.example&user_id=%d", staff)} {
		north.Full.Get(t, "assignments/?"+filter).WantFault(t, 404, "student_not_found", "")
	}
	north.Full.Get(t, fmt.Sprintf("assignments/?email=bo@school.example&user_id=%d", ana)).WantFault(t, 400, "who_differs", "user_id")
	if got := walk(t, south.Full, "assignments/"); got != nil {
		t.Errorf("another organization sees %v", got)
	}

	// What is overdue is notified once, and of students alone.
	sweep := func() []string {
		t.Helper()
		if err := fixture(e).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		return events(t, e, "north", "assignment.overdue")
	}
	for range 2 {
		if got := sweep(); check.Equal(t, "number of events", len(got), 1, "%v", got) &&
			check.Contains(t, "the first event", got[0], `"id":"test-assignment:1"`, "%v", got) {
			check.Contains(t, "the first event", got[0], `"overdue":true`, "%v", got)
		}
	}
	e.Advance(28 * 24 * time.Hour)
	sweep()
	if got := walk(t, north.Full, "assignments/?status=open"); !slices.Equal(got, []string{one, three, four}) {
		t.Errorf("%v", got)
	}
	e.Advance(48 * time.Hour)
	sweep()
	if got := walk(t, north.Full, "assignments/?status=open"); !slices.Equal(got, []string{three, four}) {
		t.Errorf("30 days after its due date work has not expired: %v", got)
	}
	north.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %d}`, ana, test)).Want(t, 201) // again
}

func fixture(e *apitest.Env) *assign.Service {
	return &assign.Service{DB: e.DB, Clock: clock.Clock(e.Now), Zone: time.UTC}
}
