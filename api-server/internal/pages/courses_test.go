package pages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
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

// With scripts, times are in the zone of the student's browser, wherever the institute and the plan are.
func TestWorkIsDueInTheStudentsZone(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	made := w.north.Full.Post(t, "provision/student/", `{"email": "dee@institute.org", "first_name": "Dee", "courses": "ielts",
		"password_mode": "set", "password": "`+password+`", "must_change_password": false}`).Want(t, 201).Object(t)
	w.north.Full.Post(t, "assignments/", map[string]any{"user_id": made["user_id"], "kind": "test", "item_id": w.item, "due_date": "2031-01-01T02:30:00Z"}).Want(t, 201)
	b := browsertest.Open(t)
	for _, zone := range []struct{ name, due string }{{"America/New_York", "Due on Tuesday, 31 December 2030, 21:30 (America/New_York)"},
		{"Asia/Kolkata", "Due on Wednesday, 1 January 2031, 08:00 (Asia/Kolkata)"}} {
		b.Zone(zone.name)
		b.Visit(w.url + "/my-courses/")
		if b.Count("#name") == 1 {
			b.Type("#name", "dee@institute.org")
			b.Type("#password", password)
			b.Press("Sign in")
		}
		b.AwaitText(zone.due)
		b.AwaitText("Times are in " + zone.name)
		b.Accessible("my courses in " + zone.name)
	}
	// The zone of the browser is offered, and another one may be chosen.
	b.Press("Change the time zone")
	b.AwaitHeading("Time zone")
	check.Equal(t, "the zone that is offered", b.Value(`document.querySelector("#zone").value`), "Asia/Kolkata", "")
	b.Screenshot("time-zone")
	b.Fill("#zone", "Europe/Nowhere")
	b.Press("Use this zone")
	b.AwaitText("There is no such time zone")
	b.Accessible("a wrong zone")
	b.Fill("#zone", "Europe/London")
	b.Press("Use this zone")
	b.AwaitText("Times are shown in the zone that you have chosen.")
	for _, scripts := range []bool{true, false} {
		b.Scripts(scripts)
		b.Visit(w.url + "/my-courses/")
		b.AwaitText("Due on Wednesday, 1 January 2031, 02:30 (Europe/London)")
		b.AwaitText("Times are in Europe/London, as you chose.")
	}
	b.Size(390, 844)
	b.Screenshot("my-courses-zone")
	b.Press("Change the time zone")
	b.AwaitHeading("Time zone")
	b.Press("Use the zone of this browser")
	b.AwaitText("Times are shown in the zone of this browser.")
	b.Scripts(true)
	b.Visit(w.url + "/my-courses/")
	b.AwaitText("Due on Wednesday, 1 January 2031, 08:00 (Asia/Kolkata)")
}

// The page begins with what to do next and where, and shows results beside the target and the highest score.
func TestStudentsSeeWhatToDoNext(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	for path, body := range map[string]string{"quizzes/words": `{"title": "Words"}`, "quizzes/later": `{"title": "Later", "launch_url": "https://learn.institute.org/later?a=1&b=2"}`,
		"tests/mock": `{"title": "Mock", "type": "toefl", "launch_url": "https://learn.institute.org/mock"}`} {
		w.Platform.Put(t, "organizations/north/catalog/"+path, body).Want(t, 201)
	}
	items := map[string]any{}
	for _, i := range w.north.Full.Get(t, "catalog/").Want(t, 200).Object(t)["items"].([]any) {
		items[i.(map[string]any)["title"].(string)] = i.(map[string]any)["item_id"]
	}
	made := w.north.Full.Post(t, "provision/student/", `{"email": "dee@institute.org", "first_name": "Dee", "courses": "ielts",
		"password_mode": "set", "password": "`+password+`", "must_change_password": false,
		"target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}}`).Want(t, 201).Object(t)
	dee := w.browser(t)
	dee.signIn(t, "dee@institute.org", password)
	see := func(what string, texts ...string) string {
		t.Helper()
		p := dee.do(t, "/my-courses/", nil)
		check.Equal(t, "status", p.status, 200, "%s", what)
		for _, text := range texts {
			check.Contains(t, what, p.body, text, "")
		}
		return p.body
	}
	see("at first", "Next: Mock &lt;1&gt;", "You begin it where your institute", "the way to 7", "Your scores appear here")
	give := func(item, due string) string {
		t.Helper()
		given := w.north.Full.Post(t, "assignments/", map[string]any{"user_id": made["user_id"], "kind": "quiz", "item_id": items[item], "due_date": due}).Want(t, 201).Object(t)
		return given["assignment"].(map[string]any)["id"].(string)
	}
	give("Words", "")
	later := give("Later", "2030-01-01")
	page := see("with more work", "Next: Mock", `<a href="https://learn.institute.org/later?a=1&amp;b=2"`, ">Then<")
	check.True(t, "what is due at any time comes last", strings.Index(page, "Words</strong>") > strings.Index(page, "Later</strong>"), "%s", page)
	_, number, _ := strings.Cut(later, ":")
	w.Platform.Put(t, "quiz-submissions/"+number, `{"state": "started"}`).Want(t, 201)
	see("with begun work", "Go on with: Later", ">Go on</a>")

	given := w.north.Full.Get(t, "assignments/?email=dee@institute.org").Want(t, 200).Object(t)["assignments"].([]any)
	for i, score := range []string{"5.5", "6.5"} {
		body := `"state": "finished", "score": ` + score + `, "sections": {"listening": ` + score + `, "reading": ` + score + `, "writing": ` + score + `, "speaking": ` + score + `}`
		if i == 0 {
			body += `, "assignment_id": "` + given[0].(map[string]any)["id"].(string) + `"`
		}
		w.report(t, "north", "dee-"+score, int64(made["user_id"].(float64)), body)
		w.Advance(10 * time.Minute)
	}
	w.DecidePlans(t)
	page = see("with results", "Your latest results", "Band 6.5", "Band 5.5", "<meter", `class="chart scores"`, "Target 7")
	for _, shown := range []string{"/results/test:dee-6.5", "/results/test:dee-5.5"} {
		check.Contains(t, "the way to the result", page, shown, "")
	}
	p := dee.do(t, "/results/test:dee-6.5", nil)
	for _, text := range []string{"0.5 to go to the target of 7.", "Earlier tests", "Band 5.5", `aria-label="reading: 6.5 of 9"`} {
		check.Contains(t, "the result", p.body, text, "")
	}
	p = dee.do(t, "/results/test:dee-5.5", nil)
	check.Lacks(t, "the first result", p.body, "Earlier tests", "")

	b := browsertest.Open(t)
	b.Visit(w.url + "/my-courses/")
	b.Type("#name", "dee@institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitHeading("My courses")
	for _, width := range []int64{1280, 390} {
		b.Size(width, 900)
		for name, shown := range map[string]string{"my-courses": "/my-courses/", "results": "/results/test:dee-6.5"} {
			b.Visit(w.url + shown)
			b.Accessible(name)
			b.Screenshot(fmt.Sprintf("%s-%d", name, width))
			if name == "my-courses" {
				b.Pictures("../../../docs/console/my-courses" + map[int64]string{390: "-telephone"}[width])
			}
			check.False(t, "the page scrolls sideways", b.WiderThanWindow(), "%s at %d", name, width)
		}
	}
}

// An address that browsers must not be led to is refused, and none takes it away.
func TestLaunchURLsAreWebAddresses(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	const good = "https://learn.institute.org/1"
	for _, c := range []struct {
		address string
		status  int
	}{{good, 200}, {"http://learn.institute.org/1", 400}, {"javascript:alert(1)", 400}, {"https://", 400}, {"//learn.institute.org", 400},
		{"https://a:b@learn.institute.org/", 400}, {"https://learn.institute.org/" + strings.Repeat("x", 2000), 400}, {"", 200}} {
		answer := w.Platform.Put(t, "catalog/tests/m1", map[string]any{"launch_url": c.address})
		check.Equal(t, "status", answer.Status, c.status, "%.60s: %s", c.address, answer.Body)
		if c.status == 200 {
			check.Equal(t, "the address", answer.Object(t)["launch_url"], any(c.address), "")
		}
	}
}
