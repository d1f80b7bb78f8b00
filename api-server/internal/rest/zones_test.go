package rest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
)

var timestamps = regexp.MustCompile(`"(\w+)":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([^"]*)"`)

// inZone are the timestamps of an answer, as their names, with the offset of those that are
// not in India's zone.
func inZone(a *apitest.Answer) string {
	var names []string
	for _, m := range timestamps.FindAllStringSubmatch(string(a.Body), -1) {
		names = append(names, m[1]+strings.TrimPrefix(m[2], "+05:30"))
	}
	return strings.Join(names, " ")
}

// Whatever an answer has of timestamps is written in tz (reference: conventions#dates-and-times).
func TestAnswersOutsideOfListsAreWrittenInTheZone(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	listen(t, e, "north")
	quiz := item(t, e, "organizations/north/catalog/quizzes/q1", `{"title": "Grammar"}`)
	const zone, plan = "?tz=Asia/Kolkata", `{"email": "ana@school.example", "first_name": "Ana", "courses": "ielts",
		"target_score_plan": {"test_plan": true, "timezone": "UTC", "target_score": 7}}`
	work := fmt.Sprintf(`{"email": "ana@school.example", "kind": "quiz", "item_id": %d, "due_date": "2026-12-01"}`, quiz)
	for _, c := range []struct {
		name, want string
		answer     *apitest.Answer
	}{
		{"organization", "created_at", north.Full.Get(t, "organization/"+zone)},
		{"provisioning", "set_password_expires_at started_at", north.Full.Post(t, provisionPath+zone, plan)},
		{"provisioning again", "set_password_expires_at started_at", north.Full.Post(t, provisionPath+zone, plan)},
		{"lookup", "started_at", north.Full.Get(t, "students/"+zone+"&email=ana@school.example")},
		{"assigning", "assigned_at due_date", north.Full.Post(t, "assignments/"+zone, work)},
		{"assigning again", "assigned_at due_date", north.Full.Post(t, "assignments/"+zone, work)},
	} {
		if got := inZone(c.answer); got != c.want {
			t.Errorf("%s: %s, want %s: %s", c.name, got, c.want, c.answer.Body)
		}
	}
	if got := events(t, e, "north", "assignment.created"); !strings.Contains(strings.Join(got, ""), `"due_date":"2026-12-01T23:59:59+00:00"`) {
		t.Errorf("a receiver is notified in another zone than its own: %v", got)
	}
	for _, bad := range []string{"Local", "Mars/Base"} {
		north.Full.Get(t, "organization/?tz="+bad).WantFault(t, 400, "unknown_time_zone", "tz")
		north.Full.Post(t, "assignments/?tz="+bad, work).WantFault(t, 400, "unknown_time_zone", "tz")
		north.Full.Post(t, provisionPath+"?tz="+bad, `{"email": "ben@school.example", "first_name": "Ben"}`).WantFault(t, 400, "unknown_time_zone", "tz")
	}
	both := north.Full.Post(t, provisionPath+"?tz=Local", `{"email": "ben@school.example", "courses": "latin"}`).Want(t, 400).Object(t)["errors"].([]any)
	var fields []string
	for _, f := range both {
		fields = append(fields, f.(map[string]any)["field"].(string))
	}
	if got := strings.Join(fields, " "); got != "tz first_name courses" {
		t.Errorf("the faults of body and query: %s", got)
	}
	north.Full.Get(t, "students/?email=ben@school.example").WantFault(t, 404, "student_not_found", "")
}
