package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// shared has one person in two organizations, which call the person by different names: south, which
// came first, Zanzibar, and north Ana Lopez.
type shared struct {
	*apitest.Env
	south, north apitest.Organization
	user         int64
}

func newShared(t *testing.T) *shared {
	t.Helper()
	s := &shared{Env: apitest.New(t)}
	s.ImportRosters(t)
	s.south, s.north = s.Organization(t, "south"), s.Organization(t, "north")
	for _, slug := range []string{"south", "north"} {
		s.Platform.Post(t, "organizations/"+slug+"/webhook-endpoints", `{"url": "https://hooks.institute.org/`+slug+`"}`).Want(t, 201)
	}
	s.south.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Zanzibar", "last_name": "Zanzibari", "courses": "ielts"}`).
		Want(t, 201)
	var made struct {
		UserID   int64    `json:"user_id"`
		Warnings []string `json:"warnings"`
	}
	s.north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "last_name": "Lopez", "courses": "ielts"}`).
		Want(t, 200).Into(t, &made)
	check.Equal(t, "warnings of the first call", fmt.Sprint(made.Warnings), "[]", "of the first call")
	s.user = made.UserID
	return s
}

// work gives the person work, a result and a day of activity in north.
func (s *shared) work(t *testing.T) {
	t.Helper()
	at := "organizations/north"
	item := s.Platform.Put(t, at+"/catalog/tests/mock", `{"title": "Mock", "type": "ielts"}`).Want(t, 201).Object(t)["item_id"]
	assigned := s.north.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %v}`, s.user, item)).Want(t, 201).Object(t)
	given := assigned["assignment"].(map[string]any)["id"]
	s.Platform.Put(t, "test-sessions/mock", fmt.Sprintf(`{"organization": "north", "user_id": %d, "item_id": %v, "assignment_id": %q,
		"state": "finished", "score": 6}`, s.user, item, given)).Want(t, 201)
	s.Platform.Post(t, "activity", fmt.Sprintf(`{"events": [{"organization": "north", "user_id": %d, "at": "2026-11-21T09:58:00+00:00", "kind": "visit"}]}`,
		s.user)).Want(t, 200)
	s.Platform.Post(t, "activity/compile", `{"date": "2026-11-21"}`).Want(t, 200)
	s.Platform.Patch(t, fmt.Sprintf(at+"/members/%d", s.user), `{"status": "inactive"}`).Want(t, 200)
	s.Platform.Patch(t, fmt.Sprintf(at+"/members/%d", s.user), `{"status": "active"}`).Want(t, 200)
}

// texts are what the rows of a query hold, as JSON.
func (s *shared) texts(t *testing.T, query string) (text string) {
	t.Helper()
	if err := s.DB.QueryRow(t.Context(), `SELECT coalesce(json_agg(x)::text, '') FROM (`+query+`) AS x`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// Whatever shows an organization a person shows the names that the organization sent.
// Reference: students#names.
func TestNobodySeesTheNamesThatAnotherOrganizationSent(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	s.work(t)
	for _, path := range []string{"students/?email=ana@institute.org", "students/", "students/?status=active", "assignments/", "results/",
		"results/?email=ana@institute.org", "progress/daily/?from=2026-11-21&to=2026-11-21", "activity/daily/?from=2026-11-21&to=2026-11-21"} {
		body := string(s.north.Full.Get(t, path).Want(t, 200).Body)
		check.True(t, "north's names", strings.Contains(body, `"first_name":"Ana","last_name":"Lopez"`), "%s: %s", path, body)
		check.False(t, "south's names", leak.MatchString(body), "%s: %s", path, body)
	}
	shown := map[string]string{
		"events":    s.texts(t, `SELECT type, data FROM webhook_events WHERE organization_id = (SELECT id FROM organizations WHERE slug = 'north')`),
		"mails":     s.texts(t, `SELECT type, params FROM emails WHERE organization_id = (SELECT id FROM organizations WHERE slug = 'north')`),
		"directory": s.texts(t, `SELECT name, surname, first_name FROM directory WHERE organization_id = (SELECT id FROM organizations WHERE slug = 'north')`),
	}
	for what, text := range shown {
		check.True(t, "north's names", strings.Contains(strings.ToLower(text), "ana"), "%s: %s", what, text)
		check.False(t, "south's names", leak.MatchString(text), "%s: %s", what, text)
	}
	for _, event := range []string{"student.joined", "enrollment.created", "assignment.created", "result.final", "student.left"} {
		if event == "student.left" { // the enrollment keeps the person a student
			continue
		}
		check.True(t, "the event", strings.Contains(shown["events"], event), "%s is not in %s", event, shown["events"])
	}
	theirs := string(s.south.Full.Get(t, "students/").Want(t, 200).Body)
	check.True(t, "south keeps its names", leak.MatchString(theirs), "%s", theirs)
}

// The first call of an organization fixes its names; later differences are warnings.
// Reference: students#names.
func TestNamesStayAsTheOrganizationSentThemFirst(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	for _, c := range []struct {
		of          apitest.Organization
		first, last string
		warnings    int
		keeps       string
	}{
		{s.north, "Ana", "Lopez", 0, ""},
		{s.south, "Zanzibar", "Zanzibari", 0, ""},
		{s.north, "Zanzibar", "Lopez", 1, `keeps the name "Ana"`},
		{s.south, "Ana", "Lopez", 2, `keeps the name "Zanzibar"`},
	} {
		body := s.callOf(t, c.of, c.first, c.last)
		check.Equal(t, "warnings", len(body), c.warnings, "%s %s: %v", c.first, c.last, body)
		check.True(t, "what stays", strings.Contains(fmt.Sprint(body), c.keeps), "%s %s: %v", c.first, c.last, body)
	}
}

func (s *shared) callOf(t *testing.T, o apitest.Organization, first, last string) []string {
	t.Helper()
	var answer struct {
		Warnings []string `json:"warnings"`
	}
	o.Full.Post(t, "provision/student/", map[string]any{"email": "ana@institute.org", "first_name": first, "last_name": last}).
		Want(t, 200).Into(t, &answer)
	return answer.Warnings
}

// A file that names people by their addresses alone learns nobody's name, and one with names gives
// its own.
func TestARosterLearnsNoNames(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	for _, c := range []struct{ slug, row string }{
		{"west", "s1,ana@institute.org,Ana,Lopez"}, // first, so that there are names to learn
		{"east", "s1,ana@institute.org,,"},
	} {
		slug, row := c.slug, c.row
		o := s.Organization(t, slug)
		csv := o.Full.With("Content-Type", "text/csv")
		run := csv.Post(t, "roster/import/?dry_run=true", "person_external_id,email,first_name,last_name\n"+row+"\n").Want(t, 200)
		seen := string(run.Body) + string(s.Platform.Get(t, fmt.Sprintf("organizations/%s/roster-runs/%v", slug, run.Object(t)["run_id"])).Want(t, 200).Body)
		run = csv.Post(t, "roster/import/", "person_external_id,email,first_name,last_name\n"+row+"\n").Want(t, 200)
		seen += string(run.Body) + string(s.Platform.Get(t, fmt.Sprintf("organizations/%s/roster-runs/%v", slug, run.Object(t)["run_id"])).Want(t, 200).Body)
		seen += string(o.Full.Get(t, "students/").Want(t, 200).Body) +
			s.texts(t, `SELECT c.* FROM roster_changes c JOIN roster_runs r ON r.id = c.run_id
				JOIN organizations o ON o.id = r.organization_id WHERE o.slug = '`+slug+`'`)
		check.False(t, "another's names", leak.MatchString(seen), "%s: %s", slug, seen)
		check.Equal(t, "its own names", strings.Contains(seen, `"first_name":"Ana","last_name":"Lopez"`), slug == "west", "%s: %s", slug, seen)
		check.Equal(t, "issues", fmt.Sprint(run.Object(t)["issues"]), "[]", "%s", slug)
	}
	// Names come with the first call that sends some.
	east := s.Partner(s.Key(t, "east", org.Full))
	east.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Anita"}`).Want(t, 200)
	body := string(east.Get(t, "students/").Want(t, 200).Body)
	check.True(t, "the names that came later", strings.Contains(body, `"first_name":"Anita","last_name":""`), "%s", body)
}

// Organizations that take a person in at the same time each get their own names.
func TestOrganizationsThatCallAtOnceKeepTheirNames(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	const people = 12
	slugs := []string{"alpha", "beta", "gamma", "delta"}
	clients := map[string]*apitest.Client{}
	for _, slug := range slugs {
		clients[slug] = s.Organization(t, slug).Full
	}
	var wg sync.WaitGroup
	for n := range people {
		for _, slug := range slugs {
			wg.Go(func() {
				body := fmt.Sprintf(`{"email": "p%d@institute.org", "first_name": "%s-%d", "send_welcome_email": false}`, n, slug, n)
				if a := clients[slug].Post(t, "provision/student/", body); a.Status > 201 {
					t.Errorf("%s: %d %s", body, a.Status, a.Body)
				}
			})
		}
	}
	wg.Wait()
	for _, slug := range slugs {
		body := string(clients[slug].Get(t, "students/").Want(t, 200).Body)
		check.Equal(t, "own names", strings.Count(body, `"first_name":"`+slug+`-`), people, "%s: %s", slug, body)
	}
}

// Staff who look for somebody find the person by their own organization's names.
func TestThePlatformAndStaffShowTheOrganizationsNames(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	answer := string(s.Platform.Put(t, "organizations/north/staff/ana@institute.org", `{"role": "teacher"}`).Want(t, 200).Body)
	check.False(t, "south's names", leak.MatchString(answer), "%s", answer)
	s.Organization(t, "west")
	answer = string(s.Platform.Put(t, "organizations/west/staff/ana@institute.org", `{"role": "teacher"}`).Want(t, 201).Body)
	check.False(t, "south's names", leak.MatchString(answer), "%s", answer)
}

// A username in the form of an address is the student's own, in every way in, so that no answer
// tells whether somebody else's address has an account.
// Reference: provisioning#request.
func TestAUsernameTellsNothingAboutAnAddress(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	s.south.Full.Post(t, "provision/student/", `{"email": "o'neil@institute.org", "first_name": "O"}`).Want(t, 201)
	for _, c := range []struct{ email, username, code string }{
		{"new@institute.org", "ana@institute.org", "not_own_address"},    // has an account
		{"new@institute.org", "nobody@institute.org", "not_own_address"}, // has none
		{"new@institute.org", "ANA@Institute.ORG", "not_own_address"},
		{"new@institute.org", "ａｎａ@institute.org", "not_own_address"},
		{"new@institute.org", "o_neil@institute.org", "not_own_address"},
		{"nobody", "ana@institute.org", ""}, // nothing is known of whose it should be
	} {
		// The call fails on purpose, so that nothing is left of it.
		a := s.north.Full.Post(t, "provision/student/", map[string]any{"email": c.email, "first_name": "N", "username": c.username, "courses": "none"}).Want(t, 400)
		check.False(t, "username_taken", strings.Contains(string(a.Body), "username_taken"), "%+v: %s", c, a.Body)
		check.True(t, "the fault", strings.Contains(string(a.Body), c.code), "%+v: %s", c, a.Body)
	}
	// Nor does one's own, to which the address of another may have led.
	for email, username := range map[string]string{"o_neil@institute.org": "o_neil@institute.org", "o/neil@institute.org": "O_Neil@institute.org"} {
		body := map[string]any{"email": email, "first_name": "N", "username": username, "courses": "none"}
		a := s.north.Full.Post(t, "provision/student/", body).Want(t, 400)
		check.False(t, "username_taken", strings.Contains(string(a.Body), "username_taken"), "%s: %s", email, a.Body)
		delete(body, "courses")
		s.north.Full.Post(t, "provision/student/", body).Want(t, 201)
		s.north.Full.Post(t, "provision/student/", body).Want(t, 200)
	}
	a := s.north.Full.Post(t, "provision/student/", `{"email": "ben@institute.org", "first_name": "B", "username": "Ben@Institute.org"}`).Want(t, 201)
	check.True(t, "one's own address", strings.Contains(strings.ToLower(string(a.Body)), `"username":"ben@institute.org"`), "%s", a.Body)
}

// A name that is a link would be one in mails that others trust.
// Reference: students#names.
func TestANameThatCarriesALinkIsRefused(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	for _, name := range []string{"Confirm at https://evil.example", "HTTP evil", "see www.evil.example", "//evil.example/x", "ｈｔｔｐ evil"} {
		for _, field := range []string{"first_name", "last_name"} {
			body := map[string]any{"email": "new@institute.org", "first_name": "N", field: name}
			s.north.Full.Post(t, "provision/student/", body).WantFault(t, 400, "link_in_name", field)
			body["role"] = "teacher"
			delete(body, "email")
			s.Platform.Put(t, "organizations/north/staff/new@institute.org", body).WantFault(t, 400, "link_in_name", field)
		}
		a := s.north.Full.With("Content-Type", "text/csv").Post(t, "roster/import/", "person_external_id,email,first_name\ns1,new@institute.org,"+name+"\n")
		check.Equal(t, "the status of the roster", a.Status, 400, "%s: %s", name, a.Body)
		check.True(t, "the row's fault", strings.Contains(string(a.Body), "contains a link"), "%s: %s", name, a.Body)
	}
	check.Equal(t, "accounts", s.texts(t, `SELECT email FROM accounts WHERE email LIKE 'new@%'`), "", "of refused calls")
}

// A name with a line break is stored on one line, and its person imported.
// Reference: roster#issues.
func TestARosterOfOnePersonWithALineBreakInTheName(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	a := s.north.Full.With("Content-Type", "text/csv").Post(t, "roster/import/",
		"person_external_id,email,first_name,last_name\ns1,lina@institute.org,\"Lina\r\nMaria\",\"de la\nCruz\"\n").Want(t, 200)
	check.Equal(t, "warnings", strings.Count(string(a.Body), `"suspicious_value"`), 2, "%s", a.Body)
	body := string(s.north.Full.Get(t, "students/?email=lina@institute.org").Want(t, 200).Body)
	check.True(t, "the name", strings.Contains(body, `"first_name":"Lina Maria","last_name":"de la Cruz"`), "%s", body)
}

// Reference: conventions#unknown-fields.
func TestAMisspeltFieldIsAWarning(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	want := "`course` is not a field; did you mean `courses`?"
	var answer struct{ Warnings []string }
	s.north.Full.Freely().Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "course": "ielts"}`).Want(t, 200).Into(t, &answer)
	check.Equal(t, "warnings", fmt.Sprint(answer.Warnings), "["+want+"]", "of provisioning")
	item := s.Platform.Put(t, "organizations/north/catalog/tests/mock", `{"title": "Mock", "type": "ielts"}`).Want(t, 201).Object(t)["item_id"]
	given := s.north.Full.Freely().Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %v, "due": "2026-12-24"}`, s.user, item))
	given.Want(t, 201).Into(t, &answer)
	check.Equal(t, "warnings", fmt.Sprint(answer.Warnings), "[`due` is not a field; did you mean `due_date`?]", "of an assignment")
	given = s.north.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %v}`, s.user, item)).Want(t, 200)
	check.False(t, "warnings without a reason", strings.Contains(string(given.Body), "warnings"), "%s", given.Body)
}

// A username is shown in the mails of the organization that may have chosen it, and in no other's.
func TestAnotherOrganizationsUsernameIsInNoMail(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	s.south.Full.Post(t, "provision/student/", `{"email": "ben@institute.org", "first_name": "Ben", "username": "zanzibar.example"}`).Want(t, 201)
	s.north.Full.Post(t, "provision/student/", `{"email": "ben@institute.org", "first_name": "Ben"}`).Want(t, 200)
	for slug, want := range map[string]bool{"south": true, "north": false} {
		text := s.texts(t, `SELECT params FROM emails WHERE organization_id = (SELECT id FROM organizations WHERE slug = '`+slug+`')
			AND user_id = (SELECT id FROM accounts WHERE email = 'ben@institute.org')`)
		check.Equal(t, "the username is in the mail", strings.Contains(text, "zanzibar.example"), want, "%s: %s", slug, text)
	}
}
