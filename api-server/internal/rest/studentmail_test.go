package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// mailsTo lists the mails to an address, oldest first: type and status.
func mailsTo(t *testing.T, e *apitest.Env, address string) (mails []string) {
	t.Helper()
	err := e.DB.QueryRow(t.Context(), `SELECT coalesce(array_agg(type || ' ' || status ORDER BY id), '{}') FROM emails WHERE recipient = $1`, address).Scan(&mails)
	if err != nil {
		t.Fatal(err)
	}
	return mails
}

// A test is mailed unless notify is false (reference: assignments#assign-work).
func TestATestThatIsAssignedIsMailedOnce(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, func(d *server.Deps) { d.SafeExamBrowser = true })
	north := e.Organization(t, "north")
	const address = "ana@institute.org"
	ana, demo := provision(t, north, address, `"courses": ["ielts"]`), provision(t, north, "demo@school.example", `"courses": ["ielts"]`)
	first, second := item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`), item(t, e, "catalog/tests/i2", `{"title": "IELTS 2", "type": "ielts"}`)
	third := item(t, e, "organizations/north/catalog/tests/c1", `{"title": "Our own", "type": "custom", "max_score": 40}`)
	quiz := item(t, e, "organizations/north/catalog/quizzes/q1", `{"title": "Grammar"}`)
	essay := item(t, e, "organizations/north/catalog/assessments/e1", `{"title": "Essay", "max_score": 20}`)
	post := func(status int, user int64, kind string, item int64, more string) {
		t.Helper()
		north.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": %q, "item_id": %d%s}`, user, kind, item, more)).Want(t, status)
	}
	post(201, ana, "test", first, `, "due_date": "2026-11-30", "notify": ""`)
	post(200, ana, "test", first, `, "notify": true`)
	post(201, ana, "test", second, `, "notify": "no"`)
	post(200, ana, "test", second, ``)
	post(201, ana, "quiz", quiz, `, "notify": true`)
	post(201, ana, "assessment", essay, `, "notify": true`)
	if got := mailsTo(t, e, address); !slices.Equal(got, []string{"test_assigned queued"}) {
		t.Errorf("mails %v", got)
	}
	north.Full.Post(t, provisionPath, `{"email": "`+address+`", "first_name": "Ana", "courses": "ielts", "send_welcome_email": false,
		"target_score_plan": {"safe_exam_browser": true}}`).Want(t, 200)
	post(201, ana, "test", third, `, "notify": "yes"`)
	post(201, demo, "test", first, ``)
	if got := mailsTo(t, e, "demo@school.example"); !slices.Equal(got, []string{"test_assigned suppressed"}) {
		t.Errorf("mails to a demo domain %v", got)
	}
	// It is none of the onboarding mails: a repeat does not report it.
	checkMail(t, north.Full.Post(t, provisionPath, `{"email": "`+address+`", "first_name": "Ana", "courses": "ielts"}`).Want(t, 200), "not_requested", "", nil)

	postman, server := newPostman(t, e)
	deliverDue(t.Context(), t, e, postman)
	mails := server.Messages()
	check.Equal(check.Now(t), "number of mails", len(mails), 2, "%d mails were sent: %q", len(mails), mails)
	check.Slices(check.Now(t), "the mails", mailsTo(t, e, address), []string{"test_assigned sent", "test_assigned sent"}, "%d mails were sent: %q", len(mails), mails)
	const browser = "secure exam browser"
	for _, m := range mails {
		says := []string{"Institute north", "Our own", "/sign-in/?at=", browser}
		if strings.Contains(m, "IELTS 1") {
			says = []string{"Institute north", "IELTS Academic", "Monday, 30 November 2026, 23:59 (UTC)", "/sign-in/?at="}
		}
		for _, text := range says {
			if !strings.Contains(m, text) {
				t.Errorf("the mail does not say %q:\n%s", text, m)
			}
		}
		if strings.Contains(m, browser) != strings.Contains(m, "Our own") {
			t.Errorf("the browser was asked for before the second test:\n%s", m)
		}
	}
}

// With send_welcome_email false the call sends no mail at all, nor does a test plan that the call
// begins, or changes so that a test opens (reference: provisioning#request). Staff get what concerns them.
func TestACallThatSendsNoMailSendsNoneOfAPlanEither(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	e.Platform.Put(t, "organizations/north/staff/olive@institute.org", `{"first_name": "Olive", "role": "owner", "password": "plum-orbit-lantern-42"}`)
	call := func(name, more, plan string) {
		t.Helper()
		north.Full.Post(t, provisionPath, fmt.Sprintf(`{"email": "%s@institute.org", "first_name": %[1]q, "courses": "ielts"%s, "target_score_plan": {%s}}`, name, more, plan))
	}
	opened := func(name string, want int) {
		t.Helper()
		if n := count(t, e, fmt.Sprintf(`SELECT count(*) FROM assignments s JOIN accounts a ON a.id = s.user_id WHERE a.email = '%s@institute.org' AND s.source = 'plan'`, name)); n != want {
			t.Errorf("%s has %d tests, want %d", name, n, want)
		}
	}
	const quiet, begin = `, "send_welcome_email": false`, `"test_plan": true, "timezone": "UTC", "target_score": 7`
	call("ana", quiet, begin) // there is no paper, of which staff are notified
	opened("ana", 0)
	if got := mailsTo(t, e, "olive@institute.org"); !slices.Equal(got, []string{"plan_alert queued"}) {
		t.Errorf("mails to staff %v", got)
	}
	for i := range 3 {
		item(t, e, fmt.Sprintf("catalog/tests/i%d", i), `{"title": "IELTS", "type": "ielts"}`)
	}
	call("ana", quiet, `"pace": "light"`)
	opened("ana", 1)
	call("bea", quiet, begin)
	opened("bea", 1)
	for _, name := range []string{"ana", "bea"} {
		if got := mailsTo(t, e, name+"@institute.org"); len(got) != 0 {
			t.Errorf("mails to %s: %v", name, got)
		}
	}
	call("cara", ``, begin)
	opened("cara", 1)
	if got := mailsTo(t, e, "cara@institute.org"); check.Equal(t, "number of mails", len(got), 3, "mails to cara: %v", got) {
		check.True(t, "there is a mail on the open test", slices.Contains(got, "plan_test_open queued"), "mails to cara: %v", got)
	}
}
