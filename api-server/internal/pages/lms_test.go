package pages_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	advantage "github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// local lets LMSes be on this machine.
var local = egress.New(egress.Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})

// school is an LMS of LTI 1.3 that signs its messages, with a link to a quiz of an organization.
type school struct {
	*httptest.Server
	s            *site
	slug, link   string
	registration advantage.Registration
	organization id.Organization

	mu      sync.Mutex
	keys    []jose.JSONWebKey // published, of which the last one signs
	fetches atomic.Int32
}

const claim = "https://purl.imsglobal.org/spec/lti/claim/"

func (s *site) school(t *testing.T, slug string, o apitest.Organization) *school {
	t.Helper()
	l := &school{s: s, slug: slug, keys: []jose.JSONWebKey{signingKey(t, "k1")}}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		var set jose.JSONWebKeySet
		for _, k := range l.keys {
			set.Keys = append(set.Keys, k.Public())
		}
		l.fetches.Add(1)
		_ = json.NewEncoder(w).Encode(set)
	}))
	t.Cleanup(l.Close)
	l.link = s.lms(t, slug, o).link
	l.organization = o.ID
	l.register(t, advantage.Registration{Name: "Canvas of " + slug, Issuer: "https://lms." + slug + ".school", ClientID: "client-1", AuthorizeURL: l.URL + "/authorize?a=b",
		TokenURL: l.URL + "/token", KeysURL: l.URL + "/keys", Deployments: []string{"1:a", "2:b"}})
	return l
}

func (l *school) register(t *testing.T, r advantage.Registration) {
	t.Helper()
	made, err := advantage.Service{DB: l.s.DB, Policy: local}.Add(t.Context(), audit.Platform, l.organization, r, l.s.Now())
	check.NoError(check.Now(t), err, "registering")
	l.registration = made
}

func signingKey(t *testing.T, name string) jose.JSONWebKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	check.NoError(check.Now(t), err, "a key")
	return jose.JSONWebKey{Key: k, KeyID: name, Algorithm: string(jose.RS256), Use: "sig"}
}

// begin sends the browser to the site, which sends it back with a question.
func (l *school) begin(t *testing.T, b *browser, more ...string) url.Values {
	t.Helper()
	p := l.initiate(t, b, more...)
	check.Equal(check.Now(t), "status", p.status, 303, "%s", p.body)
	to, err := url.Parse(p.to)
	check.NoError(check.Now(t), err, "%s", p.to)
	return to.Query()
}

func (l *school) initiate(t *testing.T, b *browser, more ...string) page {
	t.Helper()
	form := url.Values{"iss": {l.registration.Issuer}, "client_id": {l.registration.ClientID}, "login_hint": {"hint"}, "lti_message_hint": {"message"},
		"target_link_uri": {l.s.url + l.link}, "lti_deployment_id": {"1:a"}}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return l.post(t, b, advantage.LoginPath+l.slug+"/", form, "document")
}

// post is what a page of the LMS posts.
func (l *school) post(t *testing.T, b *browser, path string, form url.Values, into string) page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.s.url+path, strings.NewReader(form.Encode()))
	check.NoError(check.Now(t), err, "%s", path)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", l.URL)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Sec-Fetch-Dest", into)
	return b.send(t, r)
}

// says are the claims of a good message.
func (l *school) says(question url.Values, email string) map[string]any {
	now := l.s.Now()
	name, _, _ := strings.Cut(email, "@")
	return map[string]any{"iss": l.registration.Issuer, "aud": l.registration.ClientID, "sub": "user-" + name, "nonce": question.Get("nonce"),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "email": email, "given_name": "Lena", "family_name": "O'Brien & Söhne",
		claim + "message_type": advantage.OpensLink, claim + "version": "1.3.0", claim + "deployment_id": "1:a", claim + "target_link_uri": l.s.url + l.link,
		claim + "resource_link": map[string]any{"id": "429785226"}, claim + "roles": []string{"http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"}}
}

// sign makes what the LMS has the browser post.
func (l *school) sign(t *testing.T, question url.Values, claims map[string]any) url.Values {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: l.keys[len(l.keys)-1]}, nil)
	check.NoError(check.Now(t), err, "a signer")
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	check.NoError(check.Now(t), err, "a token")
	return url.Values{"state": {question.Get("state")}, "id_token": {token}}
}

// launch opens the link in a window of its own, with changed claims.
func (l *school) launch(t *testing.T, b *browser, email string, change ...any) page {
	t.Helper()
	question := l.begin(t, b)
	claims := l.says(question, email)
	for i := 0; i < len(change); i += 2 {
		claims[change[i].(string)] = change[i+1]
	}
	return l.post(t, b, advantage.MessagePath+l.slug+"/", l.sign(t, question, claims), "document")
}

func TestALearnerOverLTI13(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	l, b := s.school(t, "north", s.north), s.browser(t)
	q := l.begin(t, b)
	for name, want := range map[string]string{"a": "b", "scope": "openid", "response_type": "id_token", "response_mode": "form_post", "prompt": "none", "client_id": "client-1",
		"redirect_uri": s.url + "/lti/v1p3/launch/north/", "login_hint": "hint", "lti_message_hint": "message"} {
		check.Equal(t, name, q.Get(name), want, "what the LMS is asked")
	}
	check.True(t, "state and nonce", len(q.Get("state")) == 43 && len(q.Get("nonce")) == 43 && q.Get("state") != q.Get("nonce"), "%v", q)
	form := l.sign(t, q, l.says(q, "Lena@school.example"))
	p := l.post(t, b, advantage.MessagePath+"north/", form, "document")
	check.Equal(check.Now(t), "status", p.status, 303, "%s", p.body)
	check.Equal(t, "it leads", p.to, "/my-courses/", "")
	p = b.do(t, "/my-courses/", nil)
	for _, want := range []string{"lena@school.example", "Institute north", "You have been given", "Next: Grammar &amp; more"} {
		check.Contains(t, "the page", p.body, want, "%d", p.status)
	}
	check.Equal(t, "rows", s.count(t, `SELECT count(*) FROM accounts a JOIN members m ON m.user_id = a.id JOIN assignments w ON w.user_id = a.id
		JOIN lms_people p ON p.user_id = a.id WHERE a.created_via = 'lti' AND m.created_via = 'lti' AND w.source = 'lti' AND m.role = 'member' AND p.subject = 'user-Lena'`), 1, "")
	// The same message again is a replay; the same link again changes nothing.
	p = l.post(t, b, advantage.MessagePath+"north/", form, "document")
	check.Equal(t, "a replay", p.status, 400, "%s", p.body)
	check.Contains(t, "a replay", p.body, "used already", "")
	check.Equal(t, "the second time", l.launch(t, b, "Lena@school.example").status, 303, "")
	check.Equal(t, "events", s.count(t, `SELECT count(*) FILTER (WHERE type = 'student.joined') * 10 + count(*) FILTER (WHERE type = 'assignment.created') FROM webhook_events WHERE user_id = (SELECT user_id FROM lms_people)`), 11, "one of each")
	check.Equal(t, "fetches of the keys", l.fetches.Load(), 1, "they are kept")
	check.Equal(t, "the last launch is noted", s.count(t, `SELECT count(*) FROM lms_registrations WHERE launched_at IS NOT NULL`), 1, "")
	s.Platform.Put(t, "quiz-submissions/1", `{"state": "submitted", "score": 80}`).Want(t, 201)
	p = l.launch(t, b, "Lena@school.example")
	check.Equal(t, "finished work leads", p.to, "/results/quiz:1", "%s", p.body)
}

// A message that many post at once opens one session.
func TestAMessageIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	l, b := s.school(t, "north", s.north), s.browser(t)
	q := l.begin(t, b)
	form := l.sign(t, q, l.says(q, "lena@school.example"))
	var wg sync.WaitGroup
	var taken atomic.Int32
	for range 8 {
		wg.Go(func() {
			switch p := l.post(t, b, advantage.MessagePath+"north/", form, "document"); p.status {
			case 303:
				taken.Add(1)
			case 400:
				check.Contains(t, "the page", p.body, "used already", "")
			default:
				t.Errorf("%d: %s", p.status, p.body)
			}
		})
	}
	wg.Wait()
	check.Equal(t, "taken", taken.Load(), 1, "of 8 at once")
}

// What a hostile LMS, or somebody between it and a browser, may send.
func TestMessagesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	south := s.Organization(t, "south")
	l, other := s.school(t, "north", s.north), s.school(t, "south", south)
	s.Platform.Put(t, "organizations/north/staff/owner@institute.org", `{"first_name": "Olive", "role": "owner"}`).Want(t, 201)
	s.exec(t, `UPDATE members SET status = 'inactive' FROM accounts a WHERE a.id = user_id AND a.email = 'ana@institute.org'`)
	for name, c := range map[string]struct {
		claim  string
		value  any
		status int
		text   string
	}{
		"another issuer":             {"iss", "https://evil.example", 400, "iss: it is not the issuer"},
		"another client":             {"aud", "client-2", 400, "aud: it is not for the client id"},
		"another deployment":         {claim + "deployment_id", "3:c", 400, "deployment_id"},
		"another nonce":              {"nonce", "x", 400, "nonce"},
		"no longer fresh":            {"exp", s.Now().Add(-time.Hour).Unix(), 400, "id_token"},
		"no address":                 {"email", "", 400, "email"},
		"no address in earnest":      {"email", "lena", 400, "email"},
		"another site as the target": {claim + "target_link_uri", "https://evil.example" + l.link, 400, "target_link_uri"},
		"a site that begins so":      {claim + "target_link_uri", s.url + ".evil.example" + l.link, 400, "target_link_uri"},
		"no work as the target":      {claim + "target_link_uri", s.url + "/lti/launch/quiz/../../my-courses", 400, "target_link_uri"},
		"work of nobody":             {claim + "target_link_uri", s.url + "/lti/launch/quiz/999", 404, "does not offer"},
		"another organization's":     {claim + "target_link_uri", s.url + other.link, 404, "does not offer"},
		"a teacher of the LMS":       {claim + "roles", []string{"http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"}, 403, "did not send you as a learner"},
		"an administrator of it":     {claim + "roles", []string{"http://purl.imsglobal.org/vocab/lis/v2/institution/person#Administrator"}, 403, "did not send you as a learner"},
		"staff":                      {"email", "owner@institute.org", 403, "on the organization"},
		"one who was made to go":     {"email", "ana@institute.org", 409, "no access"},
	} {
		p := l.launch(t, s.browser(t), "lena@school.example", c.claim, c.value)
		check.Equal(t, "status", p.status, c.status, "%s: %s", name, p.body)
		check.Contains(t, "the page", html.UnescapeString(p.body), c.text, "%s", name)
		check.Equal(t, "it leads", p.to, "", "%s", name)
	}
	send := func(name string, b *browser, path string, form url.Values, status int, text string) {
		t.Helper()
		p := l.post(t, b, path, form, "document")
		check.Equal(t, "status", p.status, status, "%s: %s", name, p.body)
		check.Contains(t, "the page", html.UnescapeString(p.body), text, "%s", name)
	}
	b, path := s.browser(t), advantage.MessagePath+"north/"
	q := l.begin(t, b)
	good := l.sign(t, q, l.says(q, "lena@school.example"))
	send("in another browser", s.browser(t), path, good, 400, "not begun in this browser")
	send("at another organization's address", b, advantage.MessagePath+"south/", good, 400, "not begun here")
	send("signed by another LMS", b, path, other.sign(t, q, l.says(q, "lena@school.example")), 400, "no key")
	send("without a token", b, path, url.Values{"state": good["state"]}, 400, "no key")
	send("without a state", b, path, url.Values{"id_token": good["id_token"]}, 400, "not begun here")
	send("refused by the LMS", b, path, url.Values{"state": good["state"], "error": {"login_required<script>"}}, 400, "login_required")
	again := l.begin(t, b)
	send("the answer to another launch", b, path, url.Values{"state": {again.Get("state")}, "id_token": good["id_token"]}, 400, "another launch")
	s.Advance(11 * time.Minute)
	send("too late", b, path, good, 400, "took too long")
	check.Equal(t, "rows of refused launches", s.count(t, `SELECT count(*) FROM accounts WHERE created_via = 'lti'`)+s.count(t, `SELECT count(*) FROM assignments`)+s.count(t, `SELECT count(*) FROM lms_people`), 0, "")
	for name, more := range map[string][]string{"another LMS": {"iss", "https://evil.example"}, "another client": {"client_id", "client-2"}, "a NUL": {"iss", "a\x00b"}, "nobody": {"login_hint", ""}} {
		p := l.initiate(t, b, more...)
		check.Equal(t, "status", p.status, 400, "%s", name)
		check.Equal(t, "it leads", p.to, "", "%s", name)
	}
	l.slug = "nowhere"
	check.Equal(t, "at nobody's address", l.initiate(t, b).status, 404, "")
}

// Two organizations with the same LMS, client and keys: neither can use what was begun, or said, for the other.
func TestTwoOrganizationsOfOneLMS(t *testing.T) {
	t.Parallel()
	s := open(t)
	south := s.Organization(t, "south")
	l := s.school(t, "north", s.north)
	twin := &school{Server: l.Server, s: s, slug: "south", keys: l.keys, organization: south.ID}
	twin.link = s.lms(t, "south", south).link
	twin.register(t, l.registration)
	b := s.browser(t)
	of, to := l.begin(t, b), twin.begin(t, b)
	said := l.sign(t, of, l.says(of, "ana@institute.org"))
	said.Set("state", to.Get("state"))
	p := l.post(t, b, advantage.MessagePath+"south/", said, "document")
	check.Equal(t, "north's message for south's launch", p.status, 400, "%s", p.body)
	check.Contains(t, "the page", p.body, "another launch", "")
	// An LMS signs its own organization's students in, and shows nothing of others.
	b = s.browser(t)
	p = twin.launch(t, b, "ana@institute.org")
	check.Equal(check.Now(t), "status", p.status, 303, "%s", p.body)
	p = b.do(t, "/my-courses/", nil)
	check.Contains(t, "the page", p.body, "Institute south", "")
	check.Lacks(t, "the page", p.body, "Institute north", "what is another organization's")
	check.Contains(t, "the page", p.body, "Another institute has courses for you", "")
}

// A student comes as one user of the LMS, whatever the addresses become.
func TestAnLMSsUserIsOneStudent(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.school(t, "north", s.north)
	b := s.browser(t)
	check.Equal(t, "the first time", l.launch(t, b, "lena@school.example", "sub", "1").status, 303, "")
	p := l.launch(t, s.browser(t), "lena@school.example", "sub", "2")
	check.Equal(t, "another user with the address", p.status, 409, "%s", p.body)
	check.Contains(t, "the page", p.body, "another user of the LMS", "")
	check.Equal(t, "with another address", l.launch(t, b, "max@school.example", "sub", "1").status, 303, "")
	check.Contains(t, "the page", b.do(t, "/my-courses/", nil).body, "lena@school.example", "it is the same student")
	check.Equal(t, "without an address", l.launch(t, b, "", "sub", "1").status, 303, "who is known needs none")
	check.Equal(t, "accounts", s.count(t, `SELECT count(*) FROM accounts WHERE created_via = 'lti'`), 1, "")
	lena := id.User(s.count(t, `SELECT user_id FROM lms_people`))
	check.NoError(check.Now(t), advantage.Service{DB: s.DB}.Forget(t.Context(), audit.Platform, l.organization, l.registration.ID, lena, s.Now()), "forgetting")
	check.Equal(t, "another user, when the first is forgotten", l.launch(t, s.browser(t), "lena@school.example", "sub", "2").status, 303, "")
	changed := l.registration
	changed.Issuer = "https://other.school"
	_, err := advantage.Service{DB: s.DB, Policy: local}.Change(t.Context(), audit.Platform, l.organization, changed, s.Now())
	check.NoError(check.Now(t), err, "another issuer")
	check.Equal(t, "people of another LMS", s.count(t, `SELECT count(*) FROM lms_people`), 0, "are not those of the one before")
}

// A message's course is remembered, also that of a teacher's, where the LMS lists its people in the version that we speak; nothing that
// it says of it refuses a launch.
func TestAMessagesCourseIsRemembered(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.school(t, "north", s.north)
	const service = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"
	names := map[string]any{"context_memberships_url": l.URL + "/names", "service_versions": []string{"1.0", "2.0"}}
	for _, course := range []any{nil, 7, map[string]any{"id": 7}, map[string]any{"title": "Biology"}} {
		check.Equal(t, "status", l.launch(t, s.browser(t), "lena@school.example", claim+"context", course, service, names).status, 303, "%v", course)
	}
	course := map[string]any{"id": "c-101", "label": "BIO", "title": "Biology\n 101"}
	for _, service2 := range []any{nil, "x", map[string]any{"context_memberships_url": "http://10.0.0.1/"}, map[string]any{"context_memberships_url": l.URL, "service_versions": []string{"3.0"}}} {
		check.Equal(t, "status", l.launch(t, s.browser(t), "lena@school.example", claim+"context", course, service, service2).status, 303, "%v", service2)
	}
	check.Equal(t, "courses", s.count(t, `SELECT count(*) FROM lms_contexts`), 0, "of such launches")
	teacher := []string{"http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"}
	check.Equal(t, "status", l.launch(t, s.browser(t), "tara@school.example", claim+"context", course, service, names, claim+"roles", teacher).status, 403, "a teacher")
	check.Equal(t, "status", l.launch(t, s.browser(t), "lena@school.example", claim+"context", course, service, names).status, 303, "")
	check.Equal(t, "courses", s.count(t, `SELECT count(*) FROM lms_contexts WHERE context = 'c-101' AND title = 'Biology 101' AND deployment = '1:a' AND NOT pulled`), 1, "")
}

// Who is in a roster that was pulled from the LMS is found by the LMS's id of the person at the first launch.
func TestALearnerOfARoster(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.school(t, "north", s.north)
	s.exec(t, `INSERT INTO lms_contexts (organization_id, registration_id, deployment, context, title, memberships_url, seen_at, pulled_at)
		VALUES ($1, $2, '1:a', 'c', 'C', '', now(), now())`, l.organization, l.registration.ID)
	s.exec(t, `INSERT INTO roster_sources (organization_id, name, created_at, updated_at) SELECT $1, 'lms-' || id, now(), now() FROM lms_contexts`, l.organization)
	s.exec(t, `UPDATE members SET status = 'active' WHERE organization_id = $1`, l.organization)
	s.exec(t, `INSERT INTO roster_identities (source_id, organization_id, external_id, user_id, present)
		SELECT s.id, $1, 'user-77', a.id, true FROM roster_sources s, accounts a WHERE a.email = 'ana@institute.org'`, l.organization)
	p := l.launch(t, s.browser(t), "", "sub", "user-77")
	check.Equal(t, "status", p.status, 303, "%s", p.body)
	check.Equal(t, "who it is", s.count(t, `SELECT count(*) FROM lms_people p JOIN accounts a ON a.id = p.user_id WHERE p.subject = 'user-77' AND a.email = 'ana@institute.org'`), 1, "")
	p = l.launch(t, s.browser(t), "ana@institute.org", "sub", "user-78")
	check.Equal(t, "another user with the address", p.status, 409, "%s", p.body)
}

// An LMS may sign with a new key as soon as it publishes it; asking for its keys again and again is not possible.
func TestAnLMSChangesItsKeys(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.school(t, "north", s.north)
	check.Equal(t, "with the first key", l.launch(t, s.browser(t), "lena@school.example").status, 303, "")
	s.Advance(time.Minute)
	l.mu.Lock()
	l.keys = append(l.keys, signingKey(t, "k2"))
	l.mu.Unlock()
	check.Equal(t, "with a new key", l.launch(t, s.browser(t), "lena@school.example").status, 303, "")
	check.Equal(t, "fetches", l.fetches.Load(), 2, "")
	l.mu.Lock()
	l.keys = append(l.keys[:1], signingKey(t, "k3"))
	l.mu.Unlock()
	for range 3 {
		check.Equal(t, "with another key within seconds", l.launch(t, s.browser(t), "lena@school.example").status, 400, "")
	}
	check.Equal(t, "fetches", l.fetches.Load(), 2, "not more often than every 10 seconds")
	s.Advance(time.Minute)
	check.Equal(t, "a moment later", l.launch(t, s.browser(t), "lena@school.example").status, 303, "")
	l.Close()
	s.Advance(2 * time.Hour)
	check.Equal(t, "while the LMS shows no keys", l.launch(t, s.browser(t), "lena@school.example").status, 303, "those at hand serve for a day")
	s.Advance(24 * time.Hour)
	p := l.launch(t, s.browser(t), "lena@school.example")
	check.Equal(t, "a day later", p.status, 409, "%s", p.body)
	check.Contains(t, "the page", p.body, "cannot be read", "")
}

var ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)

// Within the LMS's page there is no session: a window of its own opens the work, once.
func TestALaunchWithinThePageOfAnLMS(t *testing.T) {
	t.Parallel()
	s := open(t)
	l, b := s.school(t, "north", s.north), s.browser(t)
	q := l.begin(t, b)
	p := l.post(t, b, advantage.MessagePath+"north/", l.sign(t, q, l.says(q, "lena@school.example")), "iframe")
	check.Equal(check.Now(t), "status", p.status, 200, "%s", p.body)
	check.Contains(t, "the policy", p.header.Get("Content-Security-Policy"), "frame-ancestors *", "it may stand in the LMS's page")
	check.Equal(t, "signed in within the page", b.cookie(t), "", "")
	found := ticketField.FindStringSubmatch(p.body)
	check.True(check.Now(t), "there is a ticket", found != nil, "%s", p.body)
	form := url.Values{"ticket": {found[1]}}
	victim := s.browser(t)
	p = l.post(t, victim, "/lti/v1p3/open/north/", form, "document")
	check.Equal(t, "posted by another site", p.status, 403, "nobody is signed in as somebody else: %s", p.body)
	p = b.do(t, "/lti/v1p3/open/north/", form)
	check.Equal(check.Now(t), "status", p.status, 303, "%s", p.body)
	check.Lacks(t, "the policy", p.header.Get("Content-Security-Policy"), "frame-ancestors *", "what it leads to stands in nobody's page")
	check.Contains(t, "the page", b.do(t, p.to, nil).body, "Grammar &amp; more", "")
	p = s.browser(t).do(t, "/lti/v1p3/open/north/", form)
	check.Equal(t, "the second time", p.status, 400, "%s", p.body)
	check.Equal(t, "a ticket of nobody", s.browser(t).do(t, "/lti/v1p3/open/north/", url.Values{"ticket": {"x"}}).status, 400, "")
}

var browserValue = regexp.MustCompile(`data-value="([^"]+)"`)

// A browser that keeps no cookies within the LMS's page shows by what the LMS has stored that it began the launch.
func TestALaunchWithoutCookies(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.school(t, "north", s.north)
	begin := func() (question url.Values, value string) {
		t.Helper()
		p := l.initiate(t, s.browser(t), "lti_storage_target", `post_message_forwarding"><script>`)
		check.Equal(check.Now(t), "status", p.status, 200, "%s", p.body)
		check.Lacks(t, "the page", p.body, `"><script>`, "a frame's name")
		found := browserValue.FindStringSubmatch(p.body)
		check.True(check.Now(t), "there is a value to store", found != nil, "%s", p.body)
		to, err := url.Parse(html.UnescapeString(regexp.MustCompile(`data-to="([^"]+)"`).FindStringSubmatch(p.body)[1]))
		check.NoError(check.Now(t), err, "%s", p.body)
		check.Lacks(t, "what the LMS is sent", to.RawQuery, found[1], "the value is the browser's alone")
		return to.Query(), found[1]
	}
	q, value := begin()
	form := l.sign(t, q, l.says(q, "lena@school.example"))
	p := l.post(t, s.browser(t), advantage.MessagePath+"north/", form, "iframe")
	check.Equal(check.Now(t), "status", p.status, 200, "%s", p.body)
	check.Contains(t, "the page", p.body, `data-frame="post_message_forwarding`, "it asks the LMS")
	check.Equal(t, "accounts", s.count(t, `SELECT count(*) FROM accounts WHERE created_via = 'lti'`), 0, "nothing is taken before the browser is known")
	for name, wrong := range map[string]string{"nothing": "", "the state": q.Get("state"), "of another launch": func() string { _, other := begin(); return other }()} {
		form.Set("registrar_browser", wrong)
		p = l.post(t, s.browser(t), advantage.MessagePath+"north/", form, "iframe")
		check.Equal(t, "status", p.status, 400, "%s: %s", name, p.body)
		check.Contains(t, "the page", p.body, "not begun in this browser", "%s", name)
	}
	form.Set("registrar_browser", value)
	p = l.post(t, s.browser(t), advantage.MessagePath+"north/", form, "iframe")
	check.Equal(t, "status", p.status, 200, "%s", p.body)
	check.Contains(t, "the page", p.body, `name="ticket"`, "")
}

// Our own keys are public, and are those that are published.
func TestTheSetOfOurKeys(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.browser(t).do(t, advantage.KeysPath, nil)
	var set jose.JSONWebKeySet
	check.NoError(check.Now(t), json.Unmarshal([]byte(p.body), &set), "%s", p.body)
	check.Equal(check.Now(t), "keys", len(set.Keys), 1, "%s", p.body)
	check.True(t, "it is public, to check signatures of RS256", set.Keys[0].IsPublic() && set.Keys[0].Use == "sig" && set.Keys[0].Algorithm == "RS256" && set.Keys[0].KeyID != "", "%s", p.body)
	check.Contains(t, "the header", p.header.Get("Cache-Control"), "max-age=3600", "")
	check.Equal(t, "by whoever opens the redirect URL", s.browser(t).do(t, advantage.MessagePath+"north/", nil).status, 405, "")
}

// A real browser, in which the LMS's page has ours within it and keeps a value for us, as it keeps no cookies there.
func TestALaunchWithinAPageInABrowser(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t)
	l := s.school(t, "north", s.north)
	outer := template.Must(template.New("").Parse(`<!doctype html><html lang="en"><title>LMS</title><link rel="icon" href="data:,"><h1>Course</h1>
		<iframe name="tool" title="Tool" width="600" height="500" onload="document.body.dataset.loads = Number(document.body.dataset.loads || 0) + 1"></iframe>
		<form id="f" method="post" target="tool" action="{{.Action}}">{{range $name, $value := .Form}}<input type="hidden" name="{{$name}}" value="{{$value}}">{{end}}</form>
		<script>
		const kept = {};
		addEventListener("message", (e) => {
			if (e.origin !== {{.Site}}) return;
			const m = e.data;
			if (m.subject === "lti.put_data") kept[m.key] = m.value;
			document.title = Object.keys(kept).length + " kept";
			e.source.postMessage({subject: m.subject + ".response", message_id: m.message_id, key: m.key, value: kept[m.key]}, e.origin);
		});
		document.getElementById("f").submit()</script></html>`))
	inner := template.Must(template.New("").Parse(`<!doctype html><title>LMS</title><form id="f" method="post" action="{{.Action}}">
		{{range $name, $values := .Form}}<input type="hidden" name="{{$name}}" value="{{index $values 0}}">{{end}}</form><script>document.getElementById("f").submit()</script>`))
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/authorize") {
			q := r.URL.Query()
			_ = inner.Execute(w, map[string]any{"Action": q.Get("redirect_uri"), "Form": l.sign(t, q, l.says(q, "lena@school.example"))})
			return
		}
		_ = outer.Execute(w, map[string]any{"Action": s.url + advantage.LoginPath + "north/", "Site": s.url, "Form": map[string]string{"iss": l.registration.Issuer,
			"client_id": l.registration.ClientID, "login_hint": "hint", "target_link_uri": s.url + l.link, "lti_storage_target": "_parent"}})
	}))
	t.Cleanup(pages.Close)
	address := strings.Replace(pages.URL, "127.0.0.1", "localhost", 1) // another site than ours
	changed := l.registration
	changed.AuthorizeURL = address + "/authorize"
	_, err := advantage.Service{DB: s.DB, Policy: local}.Change(t.Context(), audit.Platform, l.organization, changed, s.Now())
	check.NoError(check.Now(t), err, "the addresses of this LMS")
	b.Trust(s.url)
	b.Visit(address)
	for deadline := time.Now().Add(time.Minute); s.count(t, `SELECT count(*) FROM lms_tickets`) == 0 || b.Value(`document.body.dataset.loads`) != "4"; time.Sleep(50 * time.Millisecond) {
		check.True(check.Now(t), "the launch was taken, and its page shown, within a minute", time.Now().Before(deadline), "%s", fmt.Sprint(b.Value(`document.title`)))
	}
	check.Equal(t, "what the LMS has kept", b.Value(`document.title`), "1 kept", "")
	b.Screenshot("launch-within-an-lms")
	b.Picture("../../../docs/pictures/lti-launch.webp")
}

// What a link's column of marks is, is known by its launches; a final result, and one that is marked again, is due there with the
// transaction of the result.
func TestMarksAreDueWithTheirResults(t *testing.T) {
	t.Parallel()
	s := open(t)
	l := s.school(t, "north", s.north)
	grades := func(line string, scopes ...string) []any {
		return []any{"https://purl.imsglobal.org/spec/lti-ags/claim/endpoint", map[string]any{"lineitem": line, "lineitems": l.URL + "/lines", "scope": scopes}}
	}
	const scope = advantage.ScoreScope
	check.Equal(t, "a link without the right", l.launch(t, s.browser(t), "lena@school.example", grades(l.URL+"/lines/1", "https://purl.imsglobal.org/spec/lti-ags/scope/lineitem")...).status, 303, "")
	check.Equal(t, "marks", s.count(t, `SELECT count(*) FROM lms_marks`), 0, "")
	for range 2 {
		check.Equal(t, "a link with it", l.launch(t, s.browser(t), "lena@school.example", grades(l.URL+"/lines/1", scope)...).status, 303, "")
	}
	check.Equal(t, "columns", s.count(t, `SELECT count(*) FROM lms_marks WHERE version = 0 AND due_at IS NULL`), 1, "without a mark yet")
	due := func(line string, version, score int) {
		t.Helper()
		check.Equal(t, "due", s.count(t, `SELECT count(*) FROM lms_marks WHERE line_item = $1 AND version = $2 AND score_e4 = $3 AND max_score_e4 = 1000000 AND due_at IS NOT NULL`,
			l.URL+line, version, score*10_000), 1, "%s, %d of version %d", line, score, version)
	}
	s.Platform.Put(t, "quiz-submissions/1", `{"state": "submitted", "score": 80}`).Want(t, 201)
	due("/lines/1", 1, 80)
	s.Platform.Put(t, "quiz-submissions/1", `{"state": "submitted", "score": 90}`).Want(t, 200)
	due("/lines/1", 2, 90)
	s.Platform.Put(t, "quiz-submissions/1", `{"state": "submitted", "score": 90}`).Want(t, 200)
	due("/lines/1", 2, 90)
	check.Equal(t, "another link of the same work", l.launch(t, s.browser(t), "lena@school.example", grades(l.URL+"/lines/2", scope)...).status, 303, "")
	due("/lines/2", 1, 90)
	check.Equal(t, "somebody else's", l.launch(t, s.browser(t), "max@school.example", grades(l.URL+"/lines/1", scope)...).status, 303, "")
	s.Platform.Put(t, "quiz-submissions/2", `{"state": "submitted", "score": 10}`).Want(t, 201)
	due("/lines/1", 2, 90)
	due("/lines/1", 1, 10)
}
