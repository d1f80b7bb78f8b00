package pages_test

import (
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/oauth1"
)

// lms is an organization's LMS with a link to a piece of work.
type lms struct {
	s                 *site
	key, secret, link string
	nonce             int
}

func (s *site) lms(t *testing.T, slug string, o apitest.Organization) *lms {
	t.Helper()
	var made struct {
		Key    string `json:"consumer_key"`
		Secret string `json:"shared_secret"`
	}
	s.Platform.Post(t, "organizations/"+slug+"/lti-consumer", nil).Want(t, 201).Into(t, &made)
	s.Platform.Put(t, "organizations/"+slug+"/catalog/quizzes/q1", `{"title": "Grammar & more"}`).Want(t, 201)
	var catalog struct {
		Items []struct {
			Link string `json:"lti_link"`
		} `json:"items"`
	}
	o.ReadOnly.Get(t, "catalog/?kind=quiz").Want(t, 200).Into(t, &catalog)
	link, ours := strings.CutPrefix(catalog.Items[0].Link, apitest.PublicURL)
	if !ours {
		t.Fatalf("link %q", catalog.Items[0].Link)
	}
	return &lms{s: s, key: made.Key, secret: made.Secret, link: link}
}

// form is what the LMS posts for a learner.
func (l *lms) form(email, roles string) url.Values {
	l.nonce++
	f := url.Values{
		"lti_message_type": {"basic-lti-launch-request"}, "lti_version": {"LTI-1p0"}, "resource_link_id": {"429785226"},
		"user_id": {"292832126"}, "roles": {roles}, "lis_person_contact_email_primary": {email},
		"lis_person_name_given": {"Lena"}, "lis_person_name_family": {"O'Brien & Söhne"}, "context_title": {"Englisch 2+"},
		"oauth_consumer_key": {l.key}, "oauth_nonce": {"nonce-" + strconv.Itoa(l.nonce)}, "oauth_callback": {"about:blank"},
		"oauth_timestamp": {strconv.FormatInt(l.s.Now().Unix(), 10)}, "oauth_signature_method": {"HMAC-SHA1"}, "oauth_version": {"1.0"},
	}
	f.Set("oauth_signature", oauth1.Sign("POST", l.s.url+l.link, f, l.secret, ""))
	return f
}

// launch opens the link in the learner's browser.
func (l *lms) launch(t *testing.T, b *browser, form url.Values) page {
	t.Helper()
	return l.launchFrom(t, b, form, "")
}

// launchFrom is a launch that a proxy of ours says comes from the address.
func (l *lms) launchFrom(t *testing.T, b *browser, form url.Values, address string) page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.s.url+l.link, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://lms.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("X-Forwarded-For", address)
	return b.send(t, r)
}

func (s *site) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := s.DB.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestALearnerFromAnLMS(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	l, b := s.lms(t, "north", s.north), s.browser(t)
	form := l.form("Lena@school.example", "urn:lti:role:ims/lis/Learner")
	if p := l.launch(t, b, form); check.Equal(check.Now(t), "p.status", p.status, 303, "%d to %q\n%s", p.status, p.to, p.body) {
		check.Equal(check.Now(t), "p.to", p.to, "/my-courses/", "%d to %q\n%s", p.status, p.to, p.body)
	}
	p := b.do(t, "/my-courses/", nil)
	for _, want := range []string{"lena@school.example", "Institute north", "You have been given", "Next: Grammar &amp; more"} {
		if check.Equal(t, "p.status", p.status, 200, "%d, the page lacks %q:\n%s", p.status, want, p.body) {
			check.Contains(t, "the page", p.body, want, "%d, the page lacks %q:\n%s", p.status, want, p.body)
		}
	}
	var who struct {
		Student struct {
			UserID    int64  `json:"user_id"`
			FirstName string `json:"first_name"`
			LastName  string `json:"last_name"`
		} `json:"student"`
		Membership struct{ Role, Status string } `json:"membership"`
	}
	s.north.ReadOnly.Get(t, "students/?email=lena@school.example").Want(t, 200).Into(t, &who)
	if check.Equal(t, "who.Student.LastName", who.Student.LastName, "O'Brien & Söhne", "%+v", who) &&
		check.Equal(t, "who.Membership.Role", who.Membership.Role, "member", "%+v", who) {
		check.Equal(t, "who.Membership.Status", who.Membership.Status, "active", "%+v", who)
	}
	var work struct {
		Assignments []struct{ Kind, Status string } `json:"assignments"`
	}
	s.north.ReadOnly.Get(t, fmt.Sprintf("assignments/?user_id=%d", who.Student.UserID)).Want(t, 200).Into(t, &work)
	if check.Equal(t, "number of assignments", len(work.Assignments), 1, "%+v", work) &&
		check.Equal(t, "the first assignment's kind", work.Assignments[0].Kind, "quiz", "%+v", work) {
		check.Equal(t, "the first assignment's status", work.Assignments[0].Status, "pending", "%+v", work)
	}
	if n := s.count(t, `SELECT count(*) FROM accounts a JOIN members m ON m.user_id = a.id JOIN assignments w ON w.user_id = a.id
		WHERE a.created_via = 'lti' AND m.created_via = 'lti' AND w.source = 'lti'`); n != 1 {
		t.Errorf("%d from an LMS", n)
	}
	// The same launch again is a replay; the same link again changes nothing.
	if p := l.launch(t, s.browser(t), form); check.Equal(t, "p.status", p.status, 400, "a replay: %d\n%s", p.status, p.body) {
		check.Contains(t, "the page", p.body, "used already", "a replay: %d\n%s", p.status, p.body)
	}
	if p := l.launch(t, s.browser(t), l.form("lena@school.example", "Learner")); p.status != 303 {
		t.Errorf("the second time: %d\n%s", p.status, p.body)
	}
	if n := s.count(t, `SELECT count(*) FILTER (WHERE type = 'student.joined') * 10 + count(*) FILTER (WHERE type = 'assignment.created')
		FROM webhook_events WHERE user_id = $1`, who.Student.UserID); n != 11 {
		t.Errorf("events: %d, want one of each", n)
	}
}

// A link to finished work opens its result. Only an item that may be taken again is assigned again.
// Reference: catalog#catalog-items.
func TestALinkToFinishedWorkOpensItsResult(t *testing.T) {
	t.Parallel()
	s := open(t)
	l, b := s.lms(t, "north", s.north), s.browser(t)
	work := func() int { return s.count(t, `SELECT count(*) FROM assignments`) }
	finish := func(n int) {
		t.Helper()
		s.Platform.Put(t, fmt.Sprintf("quiz-submissions/%d", n), `{"state": "submitted", "score": 80}`).Want(t, 201)
	}
	for range 2 { // open work is opened
		p := l.launch(t, b, l.form("lena@school.example", "Learner"))
		check.Equal(t, "to", p.to, "/my-courses/", "%d to %q\n%s", p.status, p.to, p.body)
	}
	finish(1)
	for range 2 {
		p := l.launch(t, b, l.form("lena@school.example", "Learner"))
		check.Equal(t, "to", p.to, "/results/quiz:1", "%d to %q\n%s", p.status, p.to, p.body)
	}
	check.Equal(t, "assignments", work(), 1, "a finished item was assigned again")
	p := b.do(t, "/results/quiz:1", nil)
	check.Equal(t, "status", p.status, 200, "the result is not shown:\n%s", p.body)
	s.Platform.Put(t, "organizations/north/catalog/quizzes/q1", `{"retake": true}`).Want(t, 200)
	for range 2 {
		p := l.launch(t, b, l.form("lena@school.example", "Learner"))
		check.Equal(t, "to", p.to, "/my-courses/", "%d to %q\n%s", p.status, p.to, p.body)
	}
	check.Equal(t, "assignments", work(), 2, "an item that may be taken again")
	s.Platform.Put(t, "organizations/north/catalog/quizzes/q1", `{"retake": false}`).Want(t, 200)
	p = l.launch(t, b, l.form("lena@school.example", "Learner"))
	check.Equal(t, "to", p.to, "/my-courses/", "the retake is open: %d to %q\n%s", p.status, p.to, p.body)
	finish(2)
	p = l.launch(t, b, l.form("lena@school.example", "Learner"))
	check.Equal(t, "to", p.to, "/results/quiz:2", "%d to %q\n%s", p.status, p.to, p.body)
}

// The word of an organization's LMS opens what is that organization's, whoever made the account and
// whatever its password is, and nothing else.
func TestAnLMSOpensWhatIsItsOrganizationsAlone(t *testing.T) {
	t.Parallel()
	s := open(t)
	south := s.Organization(t, "south")
	l := s.lms(t, "north", s.north)
	s.setPassword(t) // ana, whom north made
	given := south.Full.Post(t, "provision/student/", `{"email": "ben@institute.org", "first_name": "Ben", "password_mode": "generate", "courses": "ielts"}`).Want(t, 201).Object(t)
	l.launch(t, s.browser(t), l.form("cleo@institute.org", "Learner"))
	south.Full.Post(t, "provision/student/", `{"email": "cleo@institute.org", "first_name": "Cleo", "courses": "ielts"}`).Want(t, 200)
	for _, name := range []string{"ana", "ben", "cleo"} {
		b := s.browser(t)
		p := l.launch(t, b, l.form(name+"@institute.org", "Learner"))
		check.Equal(t, "status", p.status, 303, "%s is sent to %q", name, p.to)
		p = b.do(t, "/my-courses/", nil)
		check.Equal(t, "status", p.status, 200, "%s: %s", name, p.body)
		check.True(t, "shows the work", strings.Contains(p.body, "Grammar &amp; more"), "%s: %s", name, p.body)
		for _, others := range []string{"Institute south", "IELTS"} {
			check.False(t, "shows "+others, strings.Contains(p.body, others), "%s: %s", name, p.body)
		}
		check.Equal(t, "says that there is more", strings.Contains(p.body, "Another institute has courses for you"), name != "ana", "%s: %s", name, p.body)
	}
	if status, _, _ := s.visit(t, given["set_password_url"].(string), nil); status != 200 {
		t.Errorf("the link that the other organization was given: %d", status)
	}
	var lookup struct {
		Student struct {
			LastLogin *string `json:"last_login"`
		} `json:"student"`
	}
	south.ReadOnly.Get(t, "students/?email=ben@institute.org").Want(t, 200).Into(t, &lookup)
	check.True(t, "last_login is null", lookup.Student.LastLogin == nil, "the launch shows where the person is not the LMS's: %v", lookup)
}

// Who is signed in already and comes from an LMS stays signed in, with all that opens.
func TestALaunchNarrowsNoSession(t *testing.T) {
	t.Parallel()
	s := open(t)
	south := s.Organization(t, "south")
	south.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana"}`).Want(t, 200)
	l, b := s.lms(t, "north", s.north), s.browser(t)
	b.do(t, s.mailed(t), twice(password))
	l.launch(t, b, l.form("ana@institute.org", "Learner"))
	for _, want := range []string{"Institute north", "Institute south", "Grammar"} {
		p := b.do(t, "/my-courses/", nil)
		check.True(t, "shows "+want, strings.Contains(p.body, want), "%s", p.body)
	}
	l.launch(t, b, l.form("ben@institute.org", "Learner"))
	p := b.do(t, "/my-courses/", nil)
	check.False(t, "shows what is Ana's", strings.Contains(p.body, "Institute south"), "another person's launch in the same browser: %s", p.body)
}

// An LMS gives its organization's names, learns no others, and turns nobody away for a name.
// Reference: students#names.
func TestALaunchBringsItsOwnNames(t *testing.T) {
	t.Parallel()
	s := open(t)
	south := s.Organization(t, "south")
	south.Full.Post(t, "provision/student/", `{"email": "zoe@institute.org", "first_name": "Zanzibar", "last_name": "Zanzibari"}`).Want(t, 201)
	l, b := s.lms(t, "north", s.north), s.browser(t)
	l.launch(t, b, l.form("zoe@institute.org", "Learner"))
	body := string(s.north.Full.Get(t, "students/?email=zoe@institute.org").Want(t, 200).Body)
	check.True(t, "the names of the launch", strings.Contains(body, `"first_name":"Lena"`), "%s", body)
	body = string(south.Full.Get(t, "students/?email=zoe@institute.org").Want(t, 200).Body)
	check.True(t, "the names of the other organization", strings.Contains(body, `"first_name":"Zanzibar","last_name":"Zanzibari"`), "%s", body)
	form := l.form("max@institute.org", "Learner")
	form.Del("oauth_signature")
	form.Set("lis_person_name_given", "See www.evil.example")
	form.Set("lis_person_name_family", "http://evil.example")
	form.Set("oauth_signature", oauth1.Sign("POST", s.url+l.link, form, l.secret, ""))
	if p := l.launch(t, b, form); p.status != 303 {
		t.Errorf("a launch with a link in a name: %d\n%s", p.status, p.body)
	}
	body = string(s.north.Full.Get(t, "students/?email=max@institute.org").Want(t, 200).Body)
	check.True(t, "no link", strings.Contains(body, `"first_name":"max","last_name":""`), "%s", body)
}

func TestLaunchesThatDoNotWork(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.lms(t, "north", s.north)
	s.Organization(t, "south")
	s.Platform.Put(t, "organizations/north/staff/owner@institute.org", `{"first_name": "Olive", "role": "owner"}`).Want(t, 201)
	s.exec(t, `UPDATE members SET status = 'inactive' FROM accounts a WHERE a.id = user_id AND a.email = 'ana@institute.org'`)
	forged := l.form("lena@school.example", "Learner")
	forged.Set("lis_person_contact_email_primary", "owner@institute.org")
	elsewhere := *l
	elsewhere.link, elsewhere.nonce = "/lti/launch/quiz/999", 1000
	cases := map[string]struct {
		l      *lms
		form   url.Values
		status int
		text   string
	}{
		"a forged one":            {l, forged, 401, "not signed"},
		"no form at all":          {l, url.Values{}, 400, "no LTI 1.1 launch"},
		"a teacher of the LMS":    {l, l.form("tom@school.example", "Instructor"), 403, "did not send you as a learner"},
		"staff":                   {l, l.form("owner@institute.org", "Learner"), 403, "on the organization"},
		"one who was made to go":  {l, l.form("ana@institute.org", "Learner"), 409, "no access"},
		"no address":              {l, l.form("", "Learner"), 400, "email address"},
		"no address in earnest":   {l, l.form("lena", "Learner"), 400, "email"},
		"work that there is not":  {&elsewhere, elsewhere.form("lena@school.example", "Learner"), 404, "does not offer"},
		"a link without a number": {&lms{s: s, key: l.key, secret: l.secret, link: "/lti/launch/quiz/x"}, url.Values{}, 404, ""},
	}
	for name, c := range cases {
		if p := c.l.launch(t, s.browser(t), c.form); check.Equal(t, "p.status", p.status, c.status, "%s: %d\n%s", name, p.status, p.body) &&
			check.Contains(t, "the page", p.body, c.text, "%s: %d\n%s", name, p.status, p.body) {
			check.Contains(t, "the page", p.body, "<h1", "%s: %d\n%s", name, p.status, p.body)
		}
	}
	if n := s.count(t, `SELECT count(*) FROM accounts WHERE created_via = 'lti'`) + s.count(t, `SELECT count(*) FROM assignments`); n != 0 {
		t.Errorf("refused launches left %d rows", n)
	}
}

func TestALinksAddressIsForAnLMS(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.lms(t, "north", s.north)
	if p := s.browser(t).do(t, l.link, nil); check.Equal(t, "p.status", p.status, 405, "%d\n%s", p.status, p.body) {
		check.Contains(t, "the page", p.body, "Open this in your LMS", "%d\n%s", p.status, p.body)
	}
}

// A real browser goes from the LMS's page, which is another site, to the student's.
func TestALaunchInABrowser(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t)
	l := s.lms(t, "north", s.north)
	page := template.Must(template.New("").Parse(`<!doctype html><title>LMS</title><link rel="icon" href="data:,"><form id="f" method="post" action="{{.Action}}">
		{{range $name, $values := .Form}}<input type="hidden" name="{{$name}}" value="{{index $values 0}}">{{end}}</form>
		<script>document.getElementById("f").submit()</script>`))
	school := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = page.Execute(w, map[string]any{"Action": s.url + l.link, "Form": l.form("lena@school.example", "Learner")})
	}))
	t.Cleanup(school.Close)
	b.Trust(s.url)
	b.Visit(strings.Replace(school.URL, "127.0.0.1", "localhost", 1))
	b.AwaitHeading("My courses")
	b.Screenshot("my-courses-after-launch")
	for _, want := range []string{"lena@school.example", "Grammar & more"} {
		if text := b.Text(); !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}
