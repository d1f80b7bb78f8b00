package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// prepare runs a student's plan through a month, and gives the path of its page.
func (s *site) prepare(t *testing.T) string {
	t.Helper()
	for i := range 8 {
		s.Platform.Put(t, fmt.Sprintf("organizations/north/catalog/tests/mock-%d", i), fmt.Sprintf(`{"title": "Mock %d", "type": "ielts"}`, i))
	}
	for _, section := range []string{"listening", "reading", "writing", "speaking"} {
		for i := range 4 {
			s.Platform.Put(t, fmt.Sprintf("organizations/north/catalog/tests/%s-%d", section, i),
				fmt.Sprintf(`{"title": "%s drill %d", "type": "ielts", "scope": %q}`, section, i, section))
		}
	}
	made := s.north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "last_name": "Rao", "courses": "ielts",
		"target_score_plan": {"target_score": 7, "exam_date": "2027-01-20", "test_plan": true, "timezone": "Asia/Kolkata", "section_minimums": {"writing": 6.5},
			"extra_recipients": ["parent@home.in"], "safe_exam_browser": true}}`).Want(t, 201).Object(t)
	for i, score := range []string{"5.5", "7", "7", "7.5"} {
		s.sit(t, made["user_id"], i, score)
	}
	which := s.Platform.Get(t, "plans?organization=north").Want(t, 200).Object(t)["plans"].([]any)[0].(map[string]any)["id"]
	s.Platform.Post(t, fmt.Sprintf("plans/%v/official-result", which), `{"score": 7.5, "date": "`+s.Now().Format(time.DateOnly)+`"}`).Want(t, 200)
	return fmt.Sprintf("/console/north/plans/%v/", which)
}

// sit lets the student finish the open test with the score, and days go by until the next
// one is open.
func (s *site) sit(t *testing.T, user any, nth int, score string) {
	t.Helper()
	type given struct {
		ID   string
		Item struct {
			ID    int64
			Title string
		}
	}
	var list struct{ Assignments []given }
	s.north.Full.Get(t, "assignments/?status=open").Want(t, 200).Into(t, &list)
	for i, a := range list.Assignments {
		s.Platform.Put(t, fmt.Sprintf("test-sessions/s%d-%d", nth, i), fmt.Sprintf(`{"organization": "north", "user_id": %v, "item_id": %v, "assignment_id": %q,
			"state": "finished", "completed_at": %q, "score": %[5]s, "sections": {"listening": %[5]s, "reading": %[5]s, "writing": %[5]s, "speaking": %[5]s}}`,
			user, a.Item.ID, a.ID, s.Now().Format(time.RFC3339), score))
	}
	s.DecidePlans(t)
	for range 10 {
		s.Advance(24 * time.Hour)
		s.DecidePlans(t)
		plans := s.Platform.Get(t, "plans?organization=north").Want(t, 200).Object(t)["plans"].([]any)
		tests := plans[0].(map[string]any)["tests"].([]any)
		if nth < 3 && tests[len(tests)-1].(map[string]any)["state"] == "opened" {
			return
		}
	}
}

func TestAPlansPageInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.prepare(t)
	b := browsertest.Open(t)
	b.Size(1200, 900)
	b.Visit(s.URL() + "/console/")
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.Await("nav[aria-label=Console]")
	b.Press("Test plans")
	b.AwaitText("ana@institute.org")
	if list := b.TextOf("table"); !strings.Contains(list, "IELTS Academic") {
		t.Errorf("the list does not name the exam:\n%s", list)
	}
	b.Screenshot("plans")
	b.Press("Paused")
	b.AwaitText("There is no such plan")
	b.Press("All")
	b.AwaitText("Ana Rao")
	b.Press("Ana Rao")
	b.AwaitText("Scores against the target")
	b.Await("svg.chart circle.met")
	for _, text := range []string{"IELTS", "Key full", "started the plan, with target score, exam date, test plan, timezone", "counted test 1 (baseline): 5.5",
		"the platform", "recorded the official result: 7.5", "writing 6.5", "parent@home.in", "required", "gave the drill", "moved the pace"} {
		if !strings.Contains(b.Text(), text) {
			t.Errorf("the page lacks %q:\n%s", text, b.Text())
		}
	}
	b.Screenshot("plan")
	b.Picture("../../../docs/pictures/console-plan.webp")
	b.Dark(true)
	b.Screenshot("plan-dark")
	b.Size(800, 900)
	b.Screenshot("plan-tablet")
	b.Size(390, 800)
	b.Visit(s.URL() + path)
	b.Screenshot("plan-telephone")
}

func TestPlansAreForOwnersAndAdminsOfTheirOrganization(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.prepare(t)
	for _, name := range []string{"elena", "tariq"} {
		b := s.signedIn(t, name)
		for _, page := range []string{"/console/north/plans/", path} {
			status, _, _ := b.get(t, page)
			check.OneOf(t, "status", status, []int{http.StatusForbidden, http.StatusNotFound}, "%s opens %s", name, page)
		}
	}
	adam := s.signedIn(t, "adam")
	status, page, header := adam.get(t, path)
	want(t, "the page", status, page, http.StatusOK, "Ana Rao", `<line class="way"`)
	check.Lacks(t, "the policy", header.Get("Content-Security-Policy"), "unsafe", "%s", path)
	check.Lacks(t, "the page", page, " style=", "%s", path)
	s.Organization(t, "south")
	s.Platform.Put(t, "organizations/south/staff/sam@south-institute.org",
		map[string]any{"first_name": "Sam", "last_name": "South", "role": "owner", "password": password})
	sam := s.browser(t)
	sam.post(t, "/sign-in/", map[string][]string{"name": {"sam@south-institute.org"}, "password": {password}})
	for _, other := range []string{path, strings.Replace(path, "north", "south", 1)} {
		status, page, _ := sam.get(t, other)
		check.OneOf(t, "status", status, []int{http.StatusForbidden, http.StatusNotFound}, "another organization's owner opens %s: %s", other, page)
	}
	status, page, _ = adam.get(t, "/console/north/plans/?user_id=99999")
	want(t, "the plans of nobody", status, page, http.StatusOK, "There is no such plan")
}

// The history says what a setting was and is, and which test was skipped.
func TestAPlansHistoryIsInWords(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Put(t, "organizations/north/catalog/tests/mock", `{"title": "Mock", "type": "ielts"}`)
	call := `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts", "target_score_plan": %s}`
	s.north.Full.Post(t, "provision/student/", fmt.Sprintf(call, `{"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}`)).Want(t, 201)
	s.north.Full.Post(t, "provision/student/", fmt.Sprintf(call, `{"pace": "light", "practice_drills": false, "section_minimums": {"writing": 6.5, "reading": 6}}`)).Want(t, 200)
	which := fmt.Sprintf("plans/%v/", s.Platform.Get(t, "plans?organization=north").Want(t, 200).Object(t)["plans"].([]any)[0].(map[string]any)["id"])
	s.Platform.Post(t, which+"skip-test", ``).Want(t, 200)
	_, page, _ := s.signedIn(t, "adam").get(t, "/console/north/"+which)
	for _, text := range []string{"changed pace from auto to light; section minimums from none to reading 6, writing 6.5; practice drills from on to off",
		"skipped test 1 (baseline)"} {
		check.True(t, text, strings.Contains(page, text), "the page lacks it:\n%s", page)
	}
}
