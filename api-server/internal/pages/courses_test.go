package pages_test

import (
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The page says when a plan's test is due in the plan's zone, as the API and the mail do.
func TestAPlansTestIsDueOnTheSameDayEverywhere(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	made := w.north.Full.Post(t, "provision/student/", `{"email": "dee@institute.org", "first_name": "Dee", "courses": "ielts",
		"password_mode": "set", "password": "`+password+`", "must_change_password": false,
		"target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "America/New_York"}}`).Want(t, 201).Object(t)
	next := made["target_score_plan"].(map[string]any)["test_plan"].(map[string]any)["next_test"].(map[string]any)
	due, err := time.Parse(time.DateOnly, next["due_on"].(string))
	if err != nil {
		t.Fatal(err)
	}
	dee := w.browser(t)
	dee.signIn(t, "dee@institute.org", password)
	p := dee.do(t, "/my-courses/", nil)
	want := "Due on " + due.Format("Monday, 2 January 2006") + ", 23:59 (America/New_York)"
	if check.Equal(t, "status", p.status, 200, "%s", p.body) {
		check.True(t, want, strings.Contains(p.body, want), "the page shows\n%s", p.body)
	}
}
