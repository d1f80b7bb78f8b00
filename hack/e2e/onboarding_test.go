package e2e

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// types counts the events of requests.
func types(got []stack.Received) map[string]int {
	n := map[string]int{}
	for _, r := range got {
		n[r.Headers["X-Service-Event"]]++
	}
	return n
}

// wantJoined checks that the requests tell of one student who joined with one enrollment.
func wantJoined(t *testing.T, got []stack.Received) {
	t.Helper()
	events := types(got)
	check.Equal(check.Now(t), "number of student.joined", events["student.joined"], 1, "events: %v", events)
	check.Equal(check.Now(t), "number of enrollment.created", events["enrollment.created"], 1, "events: %v", events)
}

func TestAStudentIsOnboardedOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first := h.provision("asha@north-institute.org", http.StatusCreated)
	check.Equal(check.Now(t), "status", first.Status, "success", "first answer: %+v", first)
	check.True(check.Now(t), "the account is new", first.CreatedUser, "first answer: %+v", first)
	check.Equal(check.Now(t), "action", first.Enrollments[0].Action, "created", "first answer: %+v", first)
	check.True(check.Now(t), "the answer has a link for the password", first.SetPasswordURL != nil, "first answer: %+v", first)
	wantJoined(t, h.awaitEvents("asha@north-institute.org", 2))
	mail := string(h.awaitMail("asha@north-institute.org", 1)[0].Data)
	if !strings.Contains(mail, "set-password") {
		t.Fatalf("the mail has no link:\n%s", mail)
	}
	again := h.provision("asha@north-institute.org", http.StatusOK)
	check.Equal(check.Now(t), "status", again.Status, "already_provisioned", "second answer: %+v", again)
	check.Equal(check.Now(t), "user_id", again.UserID, first.UserID, "second answer: %+v", again)
	check.Equal(check.Now(t), "action", again.Enrollments[0].Action, "unchanged", "second answer: %+v", again)
	// Whatever the second call caused would arrive before what a third one, made after
	// it, causes.
	h.provision("binod@north-institute.org", http.StatusCreated)
	h.awaitEvents("binod@north-institute.org", 2)
	h.awaitMail("binod@north-institute.org", 1)
	if n := len(h.receiver.All()); n != 4 {
		t.Errorf("%d webhook requests, want 4", n)
	}
	if n := len(h.mail.All()); n != 2 {
		t.Errorf("%d mails, want 2", n)
	}
}

var link = regexp.MustCompile(`https?://\S+/set-password/[A-Za-z0-9_-]+/?`)

func TestTheLinkInTheMailSetsAPassword(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.provision("asha@north-institute.org", http.StatusCreated)
	// Quoted-printable breaks long lines with "=".
	mail := strings.ReplaceAll(string(h.awaitMail("asha@north-institute.org", 1)[0].Data), "=\r\n", "")
	address := link.FindString(mail)
	if address == "" {
		t.Fatalf("no link in:\n%s", mail)
	}
	for range 2 { // a mail scanner opens it before the student does
		status, page := h.call(http.MethodGet, address, "Accept", "text/html", "")
		check.Equal(check.Now(t), "status", status, http.StatusOK, "%s", page)
		check.Contains(check.Now(t), "the page", string(page), "<form", "%s", address)
	}
	h.secrets = append(h.secrets, "plum-orbit-lantern-42")
	form := map[string][]string{"password": {"plum-orbit-lantern-42"}, "again": {"plum-orbit-lantern-42"}}
	if status, page := h.post(address, form); status >= 400 {
		t.Fatalf("setting the password: %d %s", status, page)
	}
	if status, _ := h.post(address, form); status < 400 {
		t.Fatalf("the link works twice: %d", status)
	}
	if again := h.provision("asha@north-institute.org", http.StatusOK); again.Status != "already_provisioned" {
		t.Fatalf("afterwards: %+v", again)
	}
}
