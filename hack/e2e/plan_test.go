package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// A plan's first steps, through the programs as they run: the baseline is assigned in the
// call that starts the plan, and the worker takes in the result by itself.
func TestAPlanAssignsItsBaselineAndReactsToTheResult(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i := range 3 {
		h.platform(http.MethodPut, fmt.Sprintf("catalog/tests/mock-%d", i), `{"title": "IELTS mock", "type": "ielts"}`, nil)
		h.platform(http.MethodPut, fmt.Sprintf("catalog/tests/writing-%d", i), `{"title": "IELTS writing", "type": "ielts", "scope": "writing"}`, nil)
	}
	h.platform(http.MethodPut, "organizations/demo/staff/olive@north-institute.org",
		`{"first_name": "Olive", "role": "owner", "password": "plum-orbit-lantern-42"}`, nil)
	h.secrets = append(h.secrets, "plum-orbit-lantern-42")

	const asha, parent, olive = "asha@north-institute.org", "parent@home-of-asha.org", "olive@north-institute.org"
	h.startPlan(asha, parent)
	given := h.assignments(asha)
	check.Equal(check.Now(t), "number of assignments", len(given), 1, "after the call: %+v", given)
	check.Equal(check.Now(t), "the baseline's status", given[0].Status, "pending", "after the call: %+v", given)
	h.awaitMailAbout(asha, "Your test plan for IELTS Academic")
	h.awaitMailAbout(asha, "a test is open for you")

	session := fmt.Sprintf(`{"organization": "demo", "user_id": %d, "item_id": %d, "attempt": "assigned", "assignment_id": %q, "state": "finished",
		"started_at": %q, "completed_at": %[4]q, "score": 5.5, "sections": {"listening": 6, "reading": 6, "writing": 4.5, "speaking": 5.5}}`,
		given[0].Student.UserID, given[0].Item.ID, given[0].ID, time.Now().UTC().Format(time.RFC3339))
	h.platform(http.MethodPut, "test-sessions/s1", session, nil)
	staff, others := h.awaitMailAbout(olive, "Band 5.5"), h.awaitMailAbout(parent, "Band 5.5")
	if link := "/results/test:s1"; check.Contains(t, "the mail to staff", staff, link, "staff get the result with its link, others without:\n%s\n%s", staff, others) {
		check.Lacks(t, "the mail to others", others, link, "staff get the result with its link, others without:\n%s\n%s", staff, others)
	}
	// What the mails tell was committed together with what follows from the result.
	next := h.plan(asha)
	if check.Equal(t, "next.NextTest.Kind", next.NextTest.Kind, "skills_check", "after the result: %+v", next) &&
		check.Equal(t, "next.NextTest.Section", next.NextTest.Section, "writing", "after the result: %+v", next) &&
		check.Equal(t, "next.NextTest.State", next.NextTest.State, "waiting", "after the result: %+v", next) {
		check.Equal(t, "next.Pace", next.Pace, "intensive", "after the result: %+v", next)
	}
	if given = h.assignments(asha); len(given) != 2 {
		t.Errorf("no drill was given: %+v", given)
	}
}

// startPlan onboards a student with a plan to which a result of 5.5 matters.
func (h *house) startPlan(email, extra string) {
	h.t.Helper()
	body := fmt.Sprintf(`{"email": %q, "first_name": "Asha", "courses": "ielts", "tenure_months": 6, "target_score_plan":
		{"target_score": 7.5, "test_plan": true, "timezone": "Asia/Kolkata", "extra_recipients": [%q]}}`, email, extra)
	status, text := h.call(http.MethodPost, h.settings.PublicURL()+"/api/v1/provision/student/", "X-API-Key", h.key, body)
	check.Equal(check.Now(h.t), "status", status, http.StatusCreated, "starting the plan: %s", text)
	check.Contains(check.Now(h.t), "the answer", string(text), `"kind":"baseline"`, "starting the plan")
}

// partnerGet reads from the partner API.
func (h *house) partnerGet(path string, into any) {
	h.t.Helper()
	status, text := h.call(http.MethodGet, h.settings.PublicURL()+"/api/v1/"+path, "X-API-Key", h.key, "")
	if status != http.StatusOK {
		h.t.Fatalf("GET %s: %d %s", path, status, text)
	}
	must(h.t, json.Unmarshal(text, into))
}

// work is an assignment as the partner sees it.
type work struct {
	ID, Status string
	Student    struct {
		UserID int `json:"user_id"`
	}
	Item struct{ ID int }
}

func (h *house) assignments(email string) []work {
	h.t.Helper()
	var got struct{ Assignments []work }
	h.partnerGet("assignments/?email="+email, &got)
	return got.Assignments
}

// running is the part of a plan that a result moves.
type running struct {
	Pace     string                                `json:"current_pace"`
	NextTest struct{ Kind, Section, State string } `json:"next_test"`
}

func (h *house) plan(email string) running {
	h.t.Helper()
	var got struct {
		Enrollments []struct {
			Plan struct {
				Test running `json:"test_plan"`
			} `json:"target_score_plan"`
		}
	}
	h.partnerGet("students/?email="+email, &got)
	return got.Enrollments[0].Plan.Test
}

// awaitMailAbout waits for the mail to the address whose subject says so.
func (h *house) awaitMailAbout(address, subject string) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	got, err := h.mail.Await(ctx, 1, func(m stack.Mail) bool {
		return len(m.To) == 1 && m.To[0] == address && strings.Contains(unfolded(m), subject)
	})
	if err != nil {
		h.t.Fatalf("no mail to %s about %q: %v", address, subject, err)
	}
	return unfolded(got[0])
}

// unfolded is the mail's text with long lines whole again.
func unfolded(m stack.Mail) string {
	return strings.NewReplacer("=\r\n", "", "\r\n ", " ").Replace(string(m.Data))
}
