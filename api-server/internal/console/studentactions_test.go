package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// did are the actions of the audit log that one of the staff did, the latest first.
func (s *site) did(t *testing.T, name string) []string {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), `SELECT action || ' ' || target FROM audit_log WHERE actor_kind = 'staff' AND actor_name = $1 || '@north-institute.org'
		AND action NOT LIKE 'signed%' ORDER BY id DESC`, name)
	check.NoError(check.Now(t), err, "the audit log")
	var all []string
	for rows.Next() {
		var one string
		check.NoError(t, rows.Scan(&one), "an entry")
		all = append(all, one)
	}
	return all
}

// Whatever staff do for a student is done by the commands that the APIs have, is in the audit log under the person's
// name, and is refused in words of the page.
func TestStaffDoThingsForAStudent(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "adam")
	item := s.Platform.Put(t, "organizations/north/catalog/tests/mock-1", `{"title": "Mock 1", "type": "ielts"}`).Want(t, 201).Object(t)["item_id"]
	made := s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha", "courses": "ielts"}`).Want(t, 201).Object(t)
	path := fmt.Sprintf("/console/north/students/%v/", made["user_id"])
	_, page, _ := b.get(t, path)
	enrollment := regexp.MustCompile(`name="enrollment" value="(\d+)"`).FindStringSubmatch(page)[1]
	day := func(days int) string { return s.Now().AddDate(0, 0, days).Format(time.DateOnly) }
	for _, c := range []struct {
		action string
		form   url.Values
		status int
		says   string
		audit  string // "": nothing
	}{
		{"extend", url.Values{"until": {day(400)}}, 303, "now ends on", "changed enrollment asha@north-institute.org in IELTS Academic"},
		{"extend", url.Values{"until": {day(300)}}, 400, "Choose a last day after", ""},
		{"extend", url.Values{"until": {"soon"}}, 400, "Choose a last day after", ""},
		{"extend", url.Values{"until": {day(500)}, "enrollment": {"99"}}, 400, "Choose one of the student’s courses", ""},
		{"suspend", nil, 303, "is suspended", "suspended enrollment asha@north-institute.org in IELTS Academic"},
		{"start-plan", url.Values{"target": {"7"}, "zone": {"UTC"}}, 400, "A plan needs access", ""},
		{"assign", url.Values{"item": {fmt.Sprintf("test-%v", item)}}, 400, "access", ""},
		{"resume", nil, 303, "no longer suspended", "resumed enrollment asha@north-institute.org in IELTS Academic"},
		{"resend-welcome", nil, 303, "The welcome mail is on its way", "asked for another welcome mail for asha@north-institute.org"},
		{"assign", url.Values{"item": {"test-99999"}}, 400, "Choose what to assign", ""},
		{"assign", url.Values{"item": {fmt.Sprintf("test-%v", item)}, "due_on": {day(-1)}}, 400, "is over", ""},
		{"assign", url.Values{"item": {fmt.Sprintf("test-%v", item)}, "due_on": {day(3)}}, 303, "Mock 1 is assigned", "assigned work Mock 1 to asha@north-institute.org"},
		{"assign", url.Values{"item": {fmt.Sprintf("test-%v", item)}}, 303, "was assigned already", ""},
		{"start-plan", url.Values{"target": {"much"}, "zone": {"UTC"}}, 400, "Write the target score as a number", ""},
		{"start-plan", url.Values{"target": {"7"}, "zone": {"Mars"}}, 400, "timezone", ""},
		{"start-plan", url.Values{"target": {"7"}, "zone": {"Asia/Kolkata"}, "exam_date": {day(60)}}, 303, "The test plan for IELTS Academic has begun", "asked for a test plan for asha@north-institute.org"},
		{"start-plan", url.Values{"target": {"7"}, "zone": {"Asia/Kolkata"}}, 400, "has a plan for this exam already", ""},
	} {
		before := len(s.did(t, "adam"))
		form := url.Values{"enrollment": {enrollment}}
		for name, values := range c.form {
			form[name] = values
		}
		s.Advance(2 * time.Minute) // mails are not sent twice within one
		status, page, header := b.post(t, path+c.action, form)
		if status == http.StatusSeeOther {
			at, _, _ := strings.Cut(header.Get("Location"), "#")
			_, page, _ = b.get(t, at)
		}
		want(t, c.action, status, page, c.status, c.says)
		done := s.did(t, "adam")
		if c.audit == "" {
			check.Equal(t, "what was done", len(done), before, "%s %v: %v", c.action, c.form, done)
		} else if check.Equal(t, "what was done", len(done), before+1, "%s %v: %v", c.action, c.form, done) {
			check.Contains(t, "the entry", done[0], c.audit, "%s", c.action)
		}
	}
	_, page, _ = b.get(t, path)
	check.Contains(t, "the timeline", page, "adam@north-institute.org", "who did it")
	check.Lacks(t, "the timeline", page, "API key staff", "")

	// Nobody who has left becomes a member again by it, and nobody needs a name for it.
	s.exec(t, `UPDATE members SET status = 'inactive' WHERE user_id = (SELECT id FROM accounts WHERE email = 'asha@north-institute.org')`)
	for _, action := range []string{"resend-welcome", "start-plan"} {
		status, page, _ := b.post(t, path+action, url.Values{"enrollment": {enrollment}, "target": {"7"}, "zone": {"UTC"}})
		want(t, action, status, page, http.StatusBadRequest, "no active member")
	}
	_, page, _ = b.get(t, path)
	want(t, "the page", http.StatusOK, page, http.StatusOK, ">inactive<")
	check.Lacks(t, "the page", page, "Send the welcome mail again", "")
	s.ImportRosters(t)
	s.north.Full.With("Content-Type", "text/csv").Post(t, "roster/import/", "person_external_id,email\nn1,noname@north-institute.org\n").Want(t, 200)
	var noname int64
	check.NoError(check.Now(t), s.DB.QueryRow(t.Context(), `SELECT id FROM accounts WHERE email = 'noname@north-institute.org'`).Scan(&noname), "the student")
	status, page, header := b.post(t, fmt.Sprintf("/console/north/students/%d/resend-welcome", noname), nil)
	want(t, "without a name", status, page, http.StatusSeeOther)
	_, page, _ = b.get(t, header.Get("Location"))
	check.Contains(t, "without a name", page, "The welcome mail is on its way", "")
}
