package platform_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestAdministratorsChangeWhatStudentsHave(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, _ := e.Organization(t, "north"), e.Organization(t, "south")
	var made struct {
		UserID      int `json:"user_id"`
		Enrollments []struct {
			ID int `json:"enrollment_id"`
		}
	}
	north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts"}`).Want(t, 201).Into(t, &made)
	enrollment := fmt.Sprintf("enrollments/%d", made.Enrollments[0].ID)
	e.Platform.Patch(t, "organizations/north/"+enrollment, `{"state": "suspended", "end_date": "2027-03-31"}`).Want(t, 200).Golden(t, "enrollment-changed")
	e.Platform.Patch(t, "organizations/north/"+enrollment, `{"end_date": "2020-03-31"}`).WantFault(t, 400, "invalid", "end_date")
	e.Platform.Patch(t, "organizations/north/"+enrollment, `{"state": "paused"}`).WantFault(t, 400, "not_a_choice", "state")
	e.Platform.Patch(t, "organizations/south/"+enrollment, `{"state": "running"}`).WantFault(t, 404, "not_found", "")
	again := north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts"}`).Want(t, 200).Object(t)
	if entry := again["enrollments"].([]any)[0].(map[string]any); check.Equal(t, "action", entry["action"], "skipped", "entry = %v", entry) {
		check.Equal(t, "skipped_reason", entry["skipped_reason"], "suspended", "entry = %v", entry)
	}
	member := fmt.Sprintf("members/%d", made.UserID)
	e.Platform.Patch(t, "organizations/north/"+member, `{"status": "inactive"}`).Want(t, 200).Golden(t, "member-changed")
	e.Platform.Patch(t, "organizations/north/"+member, `{}`).WantFault(t, 400, "missing", "status")
	e.Platform.Patch(t, "organizations/south/"+member, `{"status": "active"}`).WantFault(t, 404, "not_found", "")
	e.Platform.Delete(t, "organizations/south/"+member).WantFault(t, 404, "not_found", "")
	e.Platform.Delete(t, "organizations/north/"+member).Want(t, 200)
	e.Platform.Delete(t, "organizations/north/"+member).WantFault(t, 404, "not_found", "")
}

func TestSignInsElsewhereCount(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	var made struct {
		UserID int     `json:"user_id"`
		Link   *string `json:"set_password_url"`
	}
	body := `{"email": "ana@institute.org", "first_name": "Ana"}`
	north.Full.Post(t, "provision/student/", body).Want(t, 201).Into(t, &made)
	for _, c := range []struct{ more, last string }{
		{`, "at": "2026-11-20T10:00:00+05:30"`, "2026-11-20T04:30:00+00:00"},
		{`, "at": "2026-11-19T10:00:00+00:00"`, "2026-11-20T04:30:00+00:00"}, // arrives late
		{``, "2026-11-21T10:00:00+00:00"},
	} {
		got := e.Platform.Post(t, "sign-ins", fmt.Sprintf(`{"user_id": %d%s}`, made.UserID, c.more)).Want(t, 200).Object(t)
		if got["last_login"] != c.last {
			t.Errorf("%s: %v", c.more, got)
		}
	}
	north.Full.Post(t, "provision/student/", body).Want(t, 200).Into(t, &made)
	if made.Link != nil {
		t.Error("a link is handed out after a sign-in")
	}
	future := e.Now().Add(time.Hour).Format(time.RFC3339)
	e.Platform.Post(t, "sign-ins", fmt.Sprintf(`{"user_id": %d, "at": %q}`, made.UserID, future)).WantFault(t, 400, "in_the_future", "at")
	e.Platform.Post(t, "sign-ins", `{"user_id": 987654}`).WantFault(t, 404, "not_found", "")
	e.Platform.Post(t, "sign-ins", `{}`).WantFault(t, 400, "missing", "user_id")
}
