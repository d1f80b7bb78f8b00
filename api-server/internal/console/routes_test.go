package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// who says whom a route is for.
type who int

const (
	anybody  who = iota
	signedIn     // with whatever account
	staff        // of the organization
	managers     // owners and admins of it
	owners
)

// routes are all of the public port but the API's and the documentation's, which have tests of their
// own. A route that is not in this table fails TestEveryRouteIsForWhomItIs.
var routes = map[string]who{
	"GET /assets/{file}":           anybody,
	"GET /logos/{id}/{digest}":     anybody,
	"GET /unsubscribe/{token}":     anybody, // its token says whose mails it ends
	"POST /unsubscribe/{token}":    anybody,
	"GET /set-password/{token}":    anybody,
	"POST /set-password/{token}":   anybody,
	"GET /sign-in":                 anybody,
	"POST /sign-in":                anybody,
	"POST /sign-out":               anybody,
	"POST /language":               anybody,
	"GET /sign-in/second":          anybody,
	"POST /sign-in/second":         anybody,
	"GET /sign-in/institute":       anybody,
	"GET /sign-in/with/{slug}":     anybody, // says that there is nothing where an organization has no provider
	"GET /sign-in/answer/{slug}":   anybody,
	"POST /sign-in/passkey":        anybody,
	"POST /sign-in/passkey/answer": anybody,
	"GET /forgot-password":         anybody,
	"POST /forgot-password":        anybody,
	"POST /lti/launch/{kind}/{id}": anybody, // its own signature says whether it is good
	"GET /lti/launch/{kind}/{id}":  anybody, // says that the link opens from the LMS alone
	"GET /lti/v1p3/jwks":           anybody, // our public keys
	"GET /lti/v1p3/login/{slug}":   anybody, // only sends the browser to the LMS
	"POST /lti/v1p3/login/{slug}":  anybody,
	"GET /lti/v1p3/launch/{slug}":  anybody, // says that the link opens from the LMS alone
	"POST /lti/v1p3/launch/{slug}": anybody, // its own signature says whether it is good
	"POST /lti/v1p3/open/{slug}":   anybody, // its ticket says whose launch it opens

	"GET /lti/v1p3/deep-link/{slug}":  anybody, // says that it opens from the LMS alone
	"POST /lti/v1p3/deep-link/{slug}": anybody, // its secret says whose choice it is

	"GET /lti/v1p3/register/{slug}/{token}":  anybody, // the token is the secret
	"POST /lti/v1p3/register/{slug}/{token}": anybody,

	"GET /":                 signedIn,
	"GET /my-courses":       signedIn,
	"POST /send-link":       signedIn,
	"GET /time-zone":        signedIn,
	"POST /time-zone":       signedIn,
	"GET /change-password":  signedIn,
	"POST /change-password": signedIn,

	"GET /sign-in-methods":                 signedIn,
	"POST /sign-in-methods/app":            signedIn,
	"POST /sign-in-methods/app/add":        signedIn,
	"POST /sign-in-methods/passkey":        signedIn,
	"POST /sign-in-methods/passkey/add":    signedIn,
	"POST /sign-in-methods/remove":         signedIn,
	"POST /sign-in-methods/recovery-codes": signedIn,

	"GET /sessions":             signedIn,
	"POST /sessions/end":        signedIn,
	"POST /sessions/end-others": signedIn,

	"GET /results/{ref}": staff, // and the student whose result it is

	"GET /console":                      staff,
	"GET /console/{slug}":               staff,
	"GET /console/{slug}/students":      staff,
	"GET /console/{slug}/students/{id}": staff,
	"GET /console/{slug}/students.csv":  managers,

	"POST /console/{slug}/students/{id}/resend-welcome": managers,
	"POST /console/{slug}/students/{id}/extend":         managers,
	"POST /console/{slug}/students/{id}/suspend":        managers,
	"POST /console/{slug}/students/{id}/resume":         managers,
	"POST /console/{slug}/students/{id}/start-plan":     managers,
	"GET /console/{slug}/students/{id}/assign":          managers,
	"POST /console/{slug}/students/{id}/assign":         managers,
	"POST /console/{slug}/plans/{id}/pause":             managers,
	"POST /console/{slug}/plans/{id}/resume":            managers,
	"POST /console/{slug}/plans/{id}/skip-test":         managers,
	"POST /console/{slug}/plans/{id}/open-test":         managers,
	"POST /console/{slug}/plans/{id}/official-result":   managers,
	"POST /console/{slug}/plans/{id}/add-paper":         managers,

	"GET /console/{slug}/settings":              managers,
	"POST /console/{slug}/settings":             managers,
	"POST /console/{slug}/settings/defaults":    managers,
	"POST /console/{slug}/settings/language":    managers,
	"POST /console/{slug}/settings/logo":        managers,
	"POST /console/{slug}/settings/remove-logo": managers,

	"GET /console/{slug}/mails":  managers,
	"POST /console/{slug}/mails": managers,

	"GET /console/{slug}/sessions":             staff,
	"POST /console/{slug}/sessions/end":        staff,
	"POST /console/{slug}/sessions/end-others": staff,

	"GET /console/{slug}/api-keys":                                    managers,
	"POST /console/{slug}/api-keys":                                   managers,
	"POST /console/{slug}/api-keys/{id}/revoke":                       managers,
	"GET /console/{slug}/webhooks":                                    managers,
	"GET /console/{slug}/roster-runs/{id}/changes/{group}":            managers,
	"POST /console/{slug}/webhooks":                                   managers,
	"GET /console/{slug}/webhooks/{id}":                               managers,
	"POST /console/{slug}/webhooks/{id}":                              managers,
	"POST /console/{slug}/webhooks/{id}/rotate-secret":                managers,
	"POST /console/{slug}/webhooks/{id}/send-test":                    managers,
	"POST /console/{slug}/webhooks/{id}/turn-on":                      managers,
	"POST /console/{slug}/webhooks/{id}/delete":                       managers,
	"GET /console/{slug}/webhooks/{id}/deliveries":                    managers,
	"GET /console/{slug}/webhooks/{id}/deliveries/{delivery}":         managers,
	"POST /console/{slug}/webhooks/{id}/deliveries/{delivery}/resend": managers,
	"POST /console/{slug}/webhooks/{id}/recover":                      managers,
	"GET /console/{slug}/roster-runs":                                 managers,
	"POST /console/{slug}/roster-runs":                                managers,
	"GET /console/{slug}/roster-runs/{id}":                            managers,
	"GET /console/{slug}/roster-runs/{id}/issues.csv":                 managers,
	"POST /console/{slug}/roster-runs/{id}/approve":                   managers,
	"POST /console/{slug}/roster-runs/{id}/discard":                   managers,
	"POST /console/{slug}/roster-runs/{id}/undo":                      managers,
	"GET /console/{slug}/lms":                                         managers,
	"POST /console/{slug}/lms":                                        managers,
	"POST /console/{slug}/lms/link":                                   managers,
	"GET /console/{slug}/lms/{id}":                                    managers,
	"POST /console/{slug}/lms/{id}":                                   managers,
	"POST /console/{slug}/lms/{id}/courses/{course}":                  managers,
	"POST /console/{slug}/lms/{id}/forget":                            managers,
	"POST /console/{slug}/lms/{id}/remove":                            managers,
	"POST /console/{slug}/lms/{id}/send-again":                        managers,
	"GET /console/{slug}/plans":                                       managers,
	"GET /console/{slug}/plans/{id}":                                  managers,
	"GET /console/{slug}/sandbox":                                     managers,
	"POST /console/{slug}/sandbox":                                    managers,
	"POST /console/{slug}/sandbox/advance":                            managers,
	"POST /console/{slug}/sandbox/wipe":                               managers,
	"GET /console/{slug}/staff":                                       managers,
	"POST /console/{slug}/staff":                                      owners,
	"POST /console/{slug}/staff/{id}/role":                            owners,
	"POST /console/{slug}/staff/{id}/deactivate":                      owners,
	"POST /console/{slug}/staff/{id}/transfer":                        owners,
	"GET /console/{slug}/staff/provider":                              owners,
	"POST /console/{slug}/staff/provider":                             owners,
	"POST /console/{slug}/staff/provider/test":                        owners,
	"POST /console/{slug}/staff/provider/remove":                      owners,
	"POST /console/{slug}/staff/provider/domains":                     owners,
	"POST /console/{slug}/staff/provider/domains/prove":               owners,
	"POST /console/{slug}/staff/provider/domains/remove":              owners,
	"POST /console/{slug}/staff/provider/policy":                      owners,
	"POST /console/{slug}/staff/policy":                               owners,
	"POST /console/{slug}/staff/{id}/reset-factors":                   owners,
	"GET /console/{slug}/audit-log":                                   managers,
	"GET /console/{slug}/audit-log/entries.jsonl":                     managers,
}

// walk lists the routes that there are.
func walk(t *testing.T, s *site) (all []string) {
	t.Helper()
	err := chi.Walk(s.Routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !strings.HasPrefix(route, "/api/v1/") && !strings.HasPrefix(route, "/docs") {
			all = append(all, method+" "+route)
		}
		return nil
	})
	check.NoError(check.Now(t), err, "%v %v", all, err)
	check.True(check.Now(t), "there are routes", len(all) != 0, "%v %v", all, err)
	slices.Sort(all)
	return all
}

func TestEveryRouteIsForWhomItIs(t *testing.T) {
	t.Parallel()
	s := open(t)
	all := walk(t, s)
	for route := range routes {
		if !slices.Contains(all, route) {
			t.Errorf("%s is in the table, and there is no such route", route)
		}
	}
	target := s.furnish(t)
	browsers := map[visitor]*browser{}
	for _, route := range all {
		whom, known := routes[route]
		if !known {
			t.Errorf("%s is in no table: say in routes whom it is for", route)
			continue
		}
		method, pattern, _ := strings.Cut(route, " ")
		for _, p := range visitors {
			if browsers[p] == nil {
				browsers[p] = s.visitor(t, p)
			}
			status, page, header := browsers[p].send(t, method, target(pattern), nil, "same-origin")
			checkVisit(t, p, whom, route, status, page, header)
			if method != http.MethodGet && status < 400 {
				delete(browsers, p) // what was done may have ended the session
			}
		}
	}
}

// visitors come in this order, those who may do the most at the end: what they do is done.
var visitors = []visitor{
	{"", "nobody"}, {"sunita", "student"}, {"sam", "another's owner"}, {"tariq", "teacher"}, {"elena", "examiner"}, {"adam", "admin"}, {"olive", "owner"},
}

type visitor struct{ name, is string }

func (s *site) visitor(t *testing.T, p visitor) *browser {
	t.Helper()
	if p.name == "" {
		return s.browser(t)
	}
	return s.signedIn(t, p.name)
}

func checkVisit(t *testing.T, p visitor, whom who, route string, status int, page string, header http.Header) {
	t.Helper()
	manages := p.is == "owner" || p.is == "admin"
	ofStaff := manages || p.is == "examiner" || p.is == "teacher"
	toSignIn := status == http.StatusSeeOther && strings.HasPrefix(header.Get("Location"), "/sign-in/") && !strings.HasSuffix(route, "/sign-out")
	fail := func(want string) {
		t.Helper()
		t.Errorf("%s for the %s: status %d to %q, want %s", route, p.is, status, header.Get("Location"), want)
	}
	switch {
	case whom == anybody:
		// The launch and the token of a link, which are wrong here, are refused for what they are.
		if toSignIn || status == http.StatusForbidden || status >= 500 {
			fail("that it is open")
		}
	case p.is == "nobody":
		if !toSignIn {
			fail("the sign-in page")
		}
	case whom == signedIn || ofStaff && whom == staff || manages && whom != owners || p.is == "owner",
		route == "GET /console" && p.is == "another's owner": // who has a console, too
		if toSignIn || status == http.StatusForbidden || status == http.StatusNotFound || status >= 500 {
			fail("that it is open")
		}
	case ofStaff:
		may := map[who]string{managers: "is for owners and admins", owners: "is for owners;"}[whom]
		if status != http.StatusForbidden || !strings.Contains(page, may) || !strings.Contains(page, "At Institute north you are a") {
			fail("403 and why")
		}
	case status != http.StatusNotFound:
		fail("404")
	}
	for _, c := range header.Values("Set-Cookie") {
		if check.Contains(t, "the cookie", c, "; HttpOnly", "%s for the %s sets the cookie %q", route, p.is, c) &&
			check.Contains(t, "the cookie", c, "; SameSite=Lax", "%s for the %s sets the cookie %q", route, p.is, c) &&
			check.Contains(t, "the cookie", c, "; Path=/;", "%s for the %s sets the cookie %q", route, p.is, c) {
			check.Lacks(t, "the cookie", c, "Domain=", "%s for the %s sets the cookie %q", route, p.is, c)
		}
	}
	if strings.HasPrefix(header.Get("Content-Type"), "text/html") {
		if strings.HasPrefix(route, "POST /lti/v1p3/launch/") || strings.HasPrefix(route, "POST /lti/v1p3/deep-link/") || strings.Contains(route, "/lti/v1p3/register/") || strings.Contains(route, "/lti/v1p3/login/") { // pages that stand in an LMS's
			csp := header.Get("Content-Security-Policy")
			check.Contains(t, "the policy", csp, "frame-ancestors *", "%s", route)
			header.Set("Content-Security-Policy", strings.Replace(csp, "frame-ancestors *", "frame-ancestors 'none'", 1))
		}
		checkHeaders(t, route, header)
	}
}

func checkHeaders(t *testing.T, route string, header http.Header) {
	t.Helper()
	csp := header.Get("Content-Security-Policy")
	if check.Contains(t, "the policy", csp, "default-src 'none'", "%s: policy %q", route, csp) &&
		check.Contains(t, "the policy", csp, "frame-ancestors 'none'", "%s: policy %q", route, csp) {
		check.Lacks(t, "the policy", csp, "unsafe", "%s: policy %q", route, csp)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %s is %q", route, name, got)
		}
	}
}

// A form on another site's page changes nothing, whoever is signed in.
func TestNoOtherSitePosts(t *testing.T) {
	t.Parallel()
	s := open(t)
	target := s.furnish(t)
	b := s.signedIn(t, "olive")
	for _, route := range walk(t, s) {
		method, pattern, _ := strings.Cut(route, " ")
		if method == http.MethodGet || strings.HasPrefix(pattern, "/lti/") && !strings.HasPrefix(pattern, "/lti/v1p3/open/") && !strings.HasPrefix(pattern, "/lti/v1p3/deep-link/") && !strings.HasPrefix(pattern, "/lti/v1p3/register/") { // which other sites post, signed
			continue
		}
		for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null"} {
			r, err := http.NewRequestWithContext(t.Context(), method, b.base+target(pattern), nil)
			if err != nil {
				t.Fatal(err)
			}
			name, value, _ := strings.Cut(header, ": ")
			r.Header.Set(name, value)
			res, err := b.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %s: %d", route, header, res.StatusCode)
			}
		}
	}
	if status, _, _ := b.get(t, "/console/north/"); status != http.StatusOK {
		t.Errorf("afterwards the owner is signed out: %d", status)
	}
}

// What is of one organization is not found under another one's name, also for an owner of both.
func TestNothingIsFoundUnderAnotherOrganization(t *testing.T) {
	t.Parallel()
	s := open(t)
	target := s.furnish(t)
	s.Platform.Put(t, "organizations/south/staff/olive@north-institute.org", `{"first_name": "olive", "role": "owner"}`)
	b := s.signedIn(t, "olive")
	for _, route := range walk(t, s) {
		method, pattern, _ := strings.Cut(route, " ")
		if !strings.Contains(pattern, "{slug}") || !strings.Contains(pattern, "{id}") {
			continue
		}
		path := strings.Replace(target(pattern), "/north", "/south", 1)
		if status, _, _ := b.send(t, method, path, nil, "same-origin"); status != http.StatusNotFound {
			t.Errorf("%s %s: %d", method, path, status)
		}
	}
}

// furnish makes one of everything, and gives the function that puts its ids into a route's
// path; what can be deleted only once is made again.
func (s *site) furnish(t *testing.T) func(pattern string) string {
	t.Helper()
	runs := s.hold(t)
	plans := s.prepare(t)
	s.Organization(t, "south")
	s.Platform.Put(t, "organizations/south/staff/sam@north-institute.org", map[string]any{"first_name": "Sam", "role": "owner", "password": password}).Want(t, 201)
	s.Platform.Put(t, "organizations/north/staff/terry@north-institute.org", `{"first_name": "Terry", "role": "teacher"}`).Want(t, 201)
	made := s.north.Full.Post(t, "provision/student/", `{"email": "sunita@north-institute.org", "first_name": "Sunita", "password_mode": "set",
		"password": "`+password+`", "must_change_password": false, "courses": "toefl"}`).Want(t, 201).Object(t)
	// Her password proves the mailbox: for others, see TestTheConsoleNeedsProofOfTheMailbox.
	if _, err := s.DB.Exec(t.Context(), `UPDATE accounts SET proven_password = true WHERE email = 'sunita@north-institute.org'`); err != nil {
		t.Fatal(err)
	}
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	for i, courses := range []string{`["ielts"]`, `["toefl"]`, `["ielts", "toefl"]`, `["ielts"]`, `["sat"]`} {
		s.north.Full.Post(t, "provision/student/", fmt.Sprintf(`{"email": "s%d@north-institute.org", "first_name": "New", "courses": %s, "tenure_months": %d}`, i, courses, 2+3*i)).Want(t, 200)
	}
	s.north.Full.Post(t, "provision/student/", `{"email": "told@north-institute.org", "first_name": "Tomás", "last_name": "Silva"}`).Want(t, 201)
	s.fail(t)
	_, page, _ := s.signedIn(t, "olive").get(t, "/console/north/webhooks/1/deliveries/")
	delivery := regexp.MustCompile(`dlv_[0-9a-f]+`).FindString(page)
	_, page, _ = s.signedIn(t, "olive").get(t, "/console/north/api-keys/")
	key := regexp.MustCompile(`api-keys/(\d+)/revoke`).FindStringSubmatch(page)[1]
	ids := []struct{ in, id string }{
		{"/roster-runs/", regexp.MustCompile(`\d+`).FindString(runs)}, {"/plans/", regexp.MustCompile(`\d+`).FindString(plans)},
		{"/students/", fmt.Sprint(made["user_id"])}, {"/staff/", fmt.Sprint(s.userID(t, "terry"))}, {"/api-keys/", key}, {"/webhooks/", "1"}, {"/lti/", "1"}, {"/logos/", "1"}, {"/lms/", "1"},
	}
	s.registerLMS(t, "10000000000042")
	s.noteLMSCourse(t)
	s.noteLMSMarks(t)
	return func(pattern string) string {
		path := strings.NewReplacer("{slug}", "north", "{delivery}", delivery, "{token}", "abc", "{kind}", "quiz", "{ref}", "test:s0-0", "{file}", "registrar.css", "{group}", "deactivated", "{digest}", "00", "{course}", "1").Replace(pattern)
		for _, of := range ids {
			if strings.Contains(path, of.in) {
				path = strings.Replace(path, "{id}", of.id, 1)
			}
		}
		if strings.HasSuffix(pattern, "/webhooks/{id}/delete") {
			made := s.Platform.Post(t, "organizations/north/webhook-endpoints",
				fmt.Sprintf(`{"url": "https://hooks.north-institute.org/%d"}`, s.next())).Want(t, 201).Object(t)
			path = fmt.Sprintf("/console/north/webhooks/%v/delete", made["id"])
		}
		if strings.HasSuffix(pattern, "/lms/{id}/remove") {
			path = fmt.Sprintf("/console/north/lms/%v/remove", s.registerLMS(t, fmt.Sprint(s.next())))
		}
		if strings.Contains(path, "{") {
			t.Fatalf("nothing is known of %s", path)
		}
		return path
	}
}

// registerLMS registers one whose name for us is client.
func (s *site) registerLMS(t *testing.T, client string) any {
	t.Helper()
	return s.Platform.Post(t, "organizations/north/lti-registrations", map[string]any{"name": "Our Canvas", "issuer": "https://canvas.instructure.com", "client_id": client,
		"deployments": []string{"1:8865aa05b4b79b64a91a86042e43af5ea8ae79eb"}, "authorize_url": "https://sso.canvaslms.com/api/lti/authorize_redirect",
		"token_url": "https://sso.canvaslms.com/login/oauth2/token", "keys_url": "https://sso.canvaslms.com/api/lti/security/jwks"}).Want(t, 201).Object(t)["id"]
}

// noteLMSCourse has a link opened in a course of the first LMS.
func (s *site) noteLMSCourse(t *testing.T) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), `
		INSERT INTO lms_contexts (organization_id, registration_id, deployment, context, title, memberships_url, seen_at)
		VALUES (1, 1, '1:a', 'c-101', 'Biology 101', 'https://canvas.instructure.com/names', now())`)
	check.NoError(check.Now(t), err, "a course")
}

// noteLMSMarks has marks of three students sent to the first LMS, one of them in vain so far.
func (s *site) noteLMSMarks(t *testing.T) {
	t.Helper()
	_, err := s.DB.Exec(t.Context(), `
		INSERT INTO lms_marks (organization_id, registration_id, line, user_id, line_item, item_id, score_e4, max_score_e4, scored_at, version, sent_version, sent_at, tries, due_at, attempts, updated_at)
		SELECT 1, 1, 'line', user_id, 'https://canvas.instructure.com/lines/1', (SELECT min(id) FROM catalog_items), 650000 + n * 70000, 1000000, now(), 1, least(n - 1, 1), now(),
			CASE n WHEN 1 THEN 1 ELSE 0 END, CASE n WHEN 1 THEN now() + interval '1 hour' END,
			jsonb_build_array(jsonb_build_object('at', now(), 'status', CASE n WHEN 1 THEN 503 ELSE 204 END, 'cause', CASE n WHEN 1 THEN 'The LMS answered 503.' ELSE '' END)), now()
		FROM (SELECT user_id, row_number() OVER (ORDER BY user_id) AS n FROM members WHERE organization_id = 1 AND role = 'member' LIMIT 3) AS m`)
	check.NoError(check.Now(t), err, "marks")
}

func (s *site) userID(t *testing.T, name string) (user int64) {
	t.Helper()
	err := s.DB.QueryRow(t.Context(), `SELECT id FROM accounts WHERE email = $1`, name+"@north-institute.org").Scan(&user)
	check.NoError(check.Now(t), err, "%s", name)
	return user
}

func (s *site) next() int { s.counter++; return s.counter }

func TestNavigationShowsWhatTheRoleOpens(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, opens := range map[string]bool{"olive": true, "adam": true, "elena": false, "tariq": false} {
		b := s.signedIn(t, name)
		status, page, _ := b.get(t, "/console/north/")
		want(t, name, status, page, http.StatusOK, `href="/console/north/students/"`)
		for _, section := range []string{"api-keys", "webhooks", "roster-runs", "lms", "plans", "staff", "sandbox", "audit-log", "settings", "mails"} {
			if strings.Contains(page, "/console/north/"+section+"/") != opens {
				t.Errorf("%s and the link to %s", name, section)
			}
		}
	}
	_, page, _ := s.signedIn(t, "tariq").get(t, "/my-courses/")
	if !strings.Contains(page, `href="/console/"`) {
		t.Errorf("after signing in, staff finds no way to the console:\n%s", page)
	}
}

// A session's id is good from its sign-in to the next one, or to signing out; afterwards it
// opens nothing, whoever kept it.
func TestASessionsIDDies(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "olive")
	first := b.session(t)
	opens := func(id string) bool {
		thief := s.browser(t)
		thief.Jar.SetCookies(thief.at(t), []*http.Cookie{{Name: "registrar_session", Value: id}})
		status, _, _ := thief.get(t, "/console/north/")
		return status == http.StatusOK
	}
	if !opens(first) {
		t.Fatal("a session's id does not open the console")
	}
	b.post(t, "/sign-in/", url.Values{"name": {"olive@north-institute.org"}, "password": {password}})
	second := b.session(t)
	if check.True(t, "the second is another", second != first, "signing in again: the id changed %t, the old one opens %t, the new one %t", second != first, opens(first), opens(second)) &&
		check.False(t, "the old session opens the page", opens(first), "signing in again: the id changed %t, the old one opens %t, the new one %t", second != first, opens(first), opens(second)) {
		check.True(t, "the new session opens the page", opens(second), "signing in again: the id changed %t, the old one opens %t, the new one %t", second != first, opens(first), opens(second))
	}
	b.post(t, "/sign-out/", nil)
	if opens(second) {
		t.Error("after signing out, the id still opens the console")
	}
}

func (b *browser) at(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(b.base)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// session is the id in the browser's cookie.
func (b *browser) session(t *testing.T) string {
	t.Helper()
	for _, c := range b.Jar.Cookies(b.at(t)) {
		if c.Name == "registrar_session" {
			return c.Value
		}
	}
	t.Fatal("the browser has no session")
	return ""
}
