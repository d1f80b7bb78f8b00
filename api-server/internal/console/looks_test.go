package console_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Times have one form in the viewer's zone, and the same with UTC behind it without scripts. Days have no zone.
func TestTimesHaveOneForm(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha", "courses": "ielts"}`).Want(t, http.StatusCreated)
	s.exec(t, `UPDATE members SET joined_at = '2026-09-05T20:07:00Z' WHERE role = 'member'`)
	s.exec(t, `UPDATE enrollments SET start_date = '2026-09-05', end_date = '2126-09-05', grace_period_end = '2126-09-12'`)
	b := browsertest.Open(t)
	b.Zone("Asia/Kolkata")
	s.enter(b, "olive")
	b.Press("Students")
	b.Press("Asha")
	b.AwaitHeading("Asha")
	for scripts, joined := range map[bool]string{true: "6 Sep 2026, 01:37", false: "5 Sep 2026, 20:07 UTC"} {
		b.Scripts(scripts)
		b.Visit(b.Location())
		check.Equal(t, "when the student joined", b.Value(`document.querySelector("time[datetime='2026-09-05T20:07:00Z']").textContent`), joined, "scripts: %v", scripts)
		check.Equal(t, "the first day", b.Value(`document.querySelector("time[datetime='2026-09-05']").textContent`), "5 Sep 2026", "scripts: %v", scripts)
	}
}

// "/" leads to the search from every page, and stays a letter in fields.
func TestTheSearchHasAKey(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := browsertest.Open(t)
	s.enter(b, "olive")
	for path, field := range map[string]string{"": "find", "api-keys/": "find", "students/": "q"} {
		b.Visit(s.URL() + "/console/north/" + path)
		b.Value(`String(document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true, cancelable: true})))`)
		check.Equal(t, "the field", b.Value(`document.activeElement.id`), field, "%q", path)
		b.Type("#"+field, "/")
		check.Equal(t, "its text", b.Value(`document.activeElement.value`), "/", "%q", path)
	}
}

// A secret can be copied with a button, where there are scripts.
func TestSecretsHaveACopyButton(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := browsertest.Open(t)
	s.enter(b, "olive")
	b.Press("API keys")
	b.AwaitText("Create a key")
	b.Type("#name", "Student system")
	b.Press("Create the key")
	b.AwaitText("Your new key")
	check.Equal(t, "buttons", b.Count(".secret button.copies"), 1, "")
	b.Accessible("a secret with its button")
	b.Press("Copy")
	check.True(t, "the key is copied or selected", regexp.MustCompile(`^(Copied|Selected|Copy)$`).MatchString(b.TextOf(".secret button.copies")), "")
}

// A list of students shows what is asked of them most, and a plan's page only to who may open it.
func TestAListOfStudentsSaysWhatIsAskedMost(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha", "courses": "ielts",
		"target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}}`).Want(t, http.StatusCreated)
	s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha", "courses": "toefl"}`).Want(t, http.StatusOK)
	s.north.Full.Post(t, "provision/student/", `{"email": "binod@north-institute.org", "first_name": "Binod"}`).Want(t, http.StatusCreated)
	s.exec(t, `UPDATE enrollments SET end_date = '2126-02-01', grace_period_end = '2126-02-08' WHERE course_id = (SELECT max(id) FROM courses)`)
	s.exec(t, `UPDATE accounts SET last_login = '2026-09-05T20:07:00Z' WHERE first_name = 'Asha'`)
	for who, opens := range map[string]bool{"olive": true, "tariq": false} {
		b := s.signedIn(t, who)
		_, page, _ := b.get(t, "/console/north/students/?q=asha")
		for _, text := range []string{"TOEFL", "and 1 more", "8 Feb 2126", "5 Sep 2026, 20:07 UTC"} {
			check.Contains(t, "the list", page, text, "%s", who)
		}
		check.Equal(t, "links to plans", len(regexp.MustCompile(`/plans/\d+/`).FindAllString(page, -1)) == 1, opens, "%s", who)
		_, page, _ = b.get(t, "/console/north/students/?q=binod")
		check.Contains(t, "the list", page, `<span class="soft">none</span>`, "%s: Binod has no course", who)
	}
	// What the person does elsewhere stays there.
	s.exec(t, `UPDATE accounts SET created_by_organization = NULL, proven_password = false WHERE first_name = 'Asha'`)
	s.Organization(t, "south")
	s.exec(t, `UPDATE accounts SET created_by_organization = (SELECT id FROM organizations WHERE slug = 'south') WHERE first_name = 'Asha'`)
	_, page, _ := s.signedIn(t, "olive").get(t, "/console/north/students/?q=asha")
	check.Contains(t, "the list", page, "asha@north-institute.org", "")
	check.Lacks(t, "the list", page, "5 Sep 2026", "")
}
