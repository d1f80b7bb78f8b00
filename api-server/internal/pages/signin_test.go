package pages_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const password = "Tr0ub4dor&3x"

// browser keeps cookies and does not follow redirects.
type browser struct {
	*http.Client
	site *site
}

func (s *site) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, s}
}

// page is an answer: its status, body and, for a redirect, where to.
type page struct {
	status   int
	body, to string
	header   http.Header
}

func (b *browser) do(t *testing.T, path string, form url.Values) page {
	t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(t.Context(), method, b.site.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return b.send(t, r)
}

func (b *browser) send(t *testing.T, r *http.Request) page {
	t.Helper()
	res, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{res.StatusCode, string(text), res.Header.Get("Location"), res.Header}
}

func (b *browser) signIn(t *testing.T, name, password string) page {
	t.Helper()
	return b.do(t, "/sign-in/", url.Values{"name": {name}, "password": {password}})
}

func (b *browser) cookie(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(b.site.url)
	if err != nil {
		t.Fatal(err)
	}
	return b.named(u, "registrar_session")
}

func (b *browser) named(u *url.URL, cookie string) string {
	for _, c := range b.Jar.Cookies(u) {
		if c.Name == cookie {
			return c.Value
		}
	}
	return ""
}

func (s *site) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.DB.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (s *site) setPassword(t *testing.T) {
	t.Helper()
	if status, body, _ := s.visit(t, s.link, twice(password)); status != 200 {
		t.Fatalf("%d\n%s", status, body)
	}
}

// Staff come for the console, students for their courses; what was asked for comes first.
func TestASignInLeadsWhereThePersonBelongs(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	s.Platform.Put(t, "organizations/north/staff/olive@institute.org", `{"first_name": "Olive", "role": "teacher", "password": "correct horse battery"}`).Want(t, 201)
	for name, c := range map[string]struct{ password, home string }{
		"ana@institute.org": {password, "/my-courses/"}, "olive@institute.org": {"correct horse battery", "/console/"},
	} {
		b := s.browser(t)
		if p := b.do(t, "/", nil); check.Equal(t, "p.status", p.status, 303, "nobody at the site's bare address: %d to %q", p.status, p.to) {
			check.Equal(t, "p.to", p.to, "/sign-in/?next=%2F", "nobody at the site's bare address: %d to %q", p.status, p.to)
		}
		if p := b.signIn(t, name, c.password); check.Equal(t, "p.status", p.status, 303, "%s: %d to %q", name, p.status, p.to) {
			check.Equal(t, "p.to", p.to, c.home, "%s: %d to %q", name, p.status, p.to)
		}
		for _, path := range []string{"/", "/sign-in/"} {
			if p := b.do(t, path, nil); check.Equal(t, "p.status", p.status, 303, "%s at %s: %d to %q", name, path, p.status, p.to) {
				check.Equal(t, "p.to", p.to, c.home, "%s at %s: %d to %q", name, path, p.status, p.to)
			}
		}
		asked := url.Values{"name": {name}, "password": {c.password}, "next": {"/change-password/"}}
		if p := s.browser(t).do(t, "/sign-in/", asked); p.to != "/change-password/" {
			t.Errorf("%s was asked for another page and is sent to %q", name, p.to)
		}
	}
}

func TestSignInShowsTheCourses(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts"}`).Want(t, 200)
	s.setPassword(t)
	b := s.browser(t)
	if p := b.do(t, "/my-courses/", nil); check.Equal(check.Now(t), "p.status", p.status, 303, "not signed in: %d to %q", p.status, p.to) {
		check.Equal(check.Now(t), "p.to", p.to, "/sign-in/?next=%2Fmy-courses%2F", "not signed in: %d to %q", p.status, p.to)
	}
	for _, name := range []string{"ana@institute.org", " Ana@Institute.ORG ", "ANA@institute.org"} {
		if p := s.browser(t).signIn(t, name, password); check.Equal(t, "p.status", p.status, 303, "%q: %d to %q", name, p.status, p.to) {
			check.Equal(t, "p.to", p.to, "/my-courses/", "%q: %d to %q", name, p.status, p.to)
		}
	}
	if p := b.signIn(t, "ana@institute.org", password); p.status != 303 {
		t.Fatalf("%d\n%s", p.status, p.body)
	}
	p := b.do(t, "/my-courses/", nil)
	for _, want := range []string{"ana@institute.org", "Institute north", "IELTS Academic", "Active", "Access until 21 February 2027"} {
		if !strings.Contains(p.body, want) {
			t.Errorf("the page lacks %q:\n%s", want, p.body)
		}
	}
	if p := b.do(t, "/sign-in/?next=/change-password/", nil); check.Equal(t, "p.status", p.status, 303, "signed in already: %d to %q", p.status, p.to) {
		check.Equal(t, "p.to", p.to, "/change-password/", "signed in already: %d to %q", p.status, p.to)
	}
	if a := s.provision(t); a["set_password_url"] != nil {
		t.Errorf("a link is handed out after the sign-in: %v", a)
	}
	var last time.Time
	if err := s.DB.QueryRow(t.Context(), `SELECT last_login FROM accounts`).Scan(&last); check.NoError(t, err, "last_login %v, %v", last, err) {
		check.True(t, "the last sign-in is now", last.Equal(apitest.Start), "last_login %v, %v", last, err)
	}
	old := b.cookie(t)
	if p := b.do(t, "/sign-out/", url.Values{}); check.Equal(t, "p.status", p.status, 303, "sign-out: %d, cookie %q", p.status, b.cookie(t)) {
		check.Equal(t, "the cookie", b.cookie(t), "", "sign-out: %d, cookie %q", p.status, b.cookie(t))
	}
	u, _ := url.Parse(s.url)
	b.Jar.SetCookies(u, []*http.Cookie{{Name: "registrar_session", Value: old}})
	if p := b.do(t, "/my-courses/", nil); p.status != 303 {
		t.Errorf("the cookie works after the sign-out: %d", p.status)
	}
}

func TestAWrongSignInTellsNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.north.Full.Post(t, "provision/student/", `{"email": "eve@institute.org", "first_name": "Eve"}`).Want(t, 201)
	s.setPassword(t)
	var first string
	for _, name := range []string{"ana@institute.org", "eve@institute.org", "nobody@institute.org", "no address", ""} {
		p := s.browser(t).signIn(t, name, "wrong"+password)
		body := strings.ReplaceAll(strings.ReplaceAll(p.body, ` value="`+name+`"`, ""), " autofocus", "")
		if first == "" {
			first = body
		}
		if name != "" {
			check.Equal(t, "status", p.status, 401, "%q\n%s", name, p.body)
			check.Equal(t, "the page", body, first, "%q", name)
		}
		check.Lacks(t, "the page", p.body, password, "%q", name)
		check.Equal(t, "the cookie of a session", p.header.Get("Set-Cookie"), "", "%q", name)
	}
	var last *time.Time
	if err := s.DB.QueryRow(t.Context(), `SELECT max(last_login) FROM accounts`).Scan(&last); check.NoError(t, err, "last_login %v, %v", last, err) {
		check.True(t, "there is no last sign-in", last == nil, "last_login %v, %v", last, err)
	}
	if strings.Contains(s.log.String(), password) {
		t.Error("the log shows a password")
	}
}

func TestASessionIsTheSignedInBrowsersAlone(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	b := s.browser(t)
	u, _ := url.Parse(s.url)
	b.Jar.SetCookies(u, []*http.Cookie{{Name: "registrar_session", Value: "planted"}})
	p := b.signIn(t, "ana@institute.org", password)
	if c := p.header.Get("Set-Cookie"); check.Contains(t, "the cookie", c, "HttpOnly", "cookie %q", c) &&
		check.Contains(t, "the cookie", c, "SameSite=Lax", "cookie %q", c) {
		check.Lacks(t, "the cookie", c, "planted", "cookie %q", c)
	}
	var tokens int
	if err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM sessions WHERE hash = $1 OR data::text LIKE '%' || $1 || '%'`, b.cookie(t)).Scan(&tokens); check.NoError(t, err, "%d sessions are stored with their token (%v)", tokens, err) {
		check.Equal(t, "tokens", tokens, 0, "%d sessions are stored with their token (%v)", tokens, err)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/sign-out/", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	res, err := b.Do(r)
	check.NoError(check.Now(t), err, "another site signs out: %v %v", res, err)
	check.Equal(check.Now(t), "res.StatusCode", res.StatusCode, 403, "another site signs out: %v %v", res, err)
	res.Body.Close()
	s.exec(t, `UPDATE sessions SET expires_at = now()`)
	if p := b.do(t, "/my-courses/", nil); p.status != 303 {
		t.Errorf("an expired session works: %d", p.status)
	}
	ana, err := student.Find(t.Context(), s.DB, 1)
	if err != nil {
		t.Fatal(err)
	}
	secure := signin.New(s.DB, s.Now, "https://registrar.test", nil, pages.Fail)
	routes := chi.NewRouter()
	routes.Use(secure.Middleware)
	routes.Post("/", func(_ http.ResponseWriter, r *http.Request) { _ = secure.Begin(r.Context(), ana, false) })
	if c := record(t, routes, http.MethodPost, "/").Get("Set-Cookie"); check.True(t, "the cookie is bound to its host", strings.HasPrefix(c, "__Host-"), "cookie %q", c) &&
		check.Contains(t, "the cookie", c, "Secure", "cookie %q", c) {
		check.Contains(t, "the cookie", c, "Path=/;", "cookie %q", c)
	}
}

func TestANewPasswordEndsTheOtherSessions(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	here, there := s.browser(t), s.browser(t)
	here.signIn(t, "ana@institute.org", password)
	there.signIn(t, "ana@institute.org", password)
	form := func(current, next string) url.Values {
		return url.Values{"current": {current}, "password": {next}, "again": {next}}
	}
	for text, f := range map[string]url.Values{
		"current password is not right": form("wrong", "N3w-passphrase!"),
		"same as the current":           form(password, password),
		"most common":                   form(password, "password1"),
	} {
		if p := here.do(t, "/change-password/", f); check.Equal(t, "p.status", p.status, 400, "%s: %d\n%s", text, p.status, p.body) {
			check.Contains(t, "the page", p.body, text, "%s: %d\n%s", text, p.status, p.body)
		}
	}
	if p := here.do(t, "/change-password/", form(password, "N3w-passphrase!")); p.status != 303 {
		t.Fatalf("%d\n%s", p.status, p.body)
	}
	if p := here.do(t, "/my-courses/", nil); check.Equal(t, "p.status", p.status, 200, "here: %d\n%s", p.status, p.body) {
		check.Contains(t, "the page", p.body, "Your new password is set", "here: %d\n%s", p.status, p.body)
	}
	if p := there.do(t, "/my-courses/", nil); p.status != 303 {
		t.Errorf("there: %d", p.status)
	}
	if p := there.signIn(t, "ana@institute.org", password); p.status != 401 {
		t.Errorf("the old password: %d", p.status)
	}
}

func TestAGivenPasswordMustBeChanged(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	s.exec(t, `UPDATE accounts SET must_change_password = true`)
	b := s.browser(t)
	if p := b.signIn(t, "ana@institute.org", password); p.to != "/change-password/" {
		t.Fatalf("to %q", p.to)
	}
	if p := b.do(t, "/my-courses/", nil); p.to != "/change-password/" {
		t.Errorf("to %q", p.to)
	}
	b.do(t, "/change-password/", url.Values{"current": {password}, "password": {"N3w-passphrase!"}, "again": {"N3w-passphrase!"}})
	if p := b.do(t, "/my-courses/", nil); p.status != 200 {
		t.Errorf("after the change: %d", p.status)
	}
}

func TestSignInLeadsOnlyToThisSite(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/console/north?x=1": "/console/north?x=1", "": "/home", "https://evil.test/": "/home", "//evil.test": "/home", `/\evil.test`: "/home",
		"console": "/home", "/a\nb": "/home", "javascript:alert(1)": "/home", "/%2f/evil.test": "/%2f/evil.test",
	} {
		if got := signin.Next(next, "/home"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
}

func TestStaffPagesAreForStaff(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.visit(t, s.url+s.mailed(t), twice(password))
	staff := func(slug, email, role string) {
		s.Platform.Put(t, "organizations/"+slug+"/staff/"+email, map[string]any{"first_name": "Tom", "role": role, "password": password}).Want(t, 201)
	}
	staff("north", "owner@institute.org", "owner")
	staff("north", "teacher@institute.org", "teacher")
	for _, c := range []struct {
		name   string
		status int
	}{{"owner@institute.org", 200}, {"teacher@institute.org", 404}, {"ana@institute.org", 404}} {
		b := s.browser(t)
		if p := b.do(t, "/guarded/north", nil); check.Equal(t, "p.status", p.status, 303, "nobody: %d to %q", p.status, p.to) {
			check.Equal(t, "p.to", p.to, "/sign-in/?next=%2Fguarded%2Fnorth", "nobody: %d to %q", p.status, p.to)
		}
		b.signIn(t, c.name, password)
		if p := b.do(t, "/guarded/north", nil); p.status != c.status {
			t.Errorf("%s: %d, want %d", c.name, p.status, c.status)
		}
		if p := b.do(t, "/guarded/south", nil); p.status != 404 {
			t.Errorf("%s at another organization: %d", c.name, p.status)
		}
		if c.status == 200 {
			s.exec(t, `UPDATE members SET role = 'teacher'`)
			if p := b.do(t, "/guarded/north", nil); p.status != 404 {
				t.Errorf("who has lost the role: %d", p.status)
			}
		}
	}
}

// guarded is a page as the console's are.
func guarded(sessions *signin.Sessions) func(chi.Router) {
	return func(r chi.Router) {
		r.Use(sessions.Middleware, sessions.Staff(org.RoleOwner, org.RoleAdmin))
		r.Get("/console", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `<!doctype html><html lang="en"><title>Console</title><h1>Console</h1></html>`)
		})
		r.Get("/guarded/{slug}", func(w http.ResponseWriter, r *http.Request) {
			if _, err := signin.SignedIn(r.Context()).Of(chi.URLParam(r, "slug"), org.RoleOwner, org.RoleAdmin); err != nil {
				pages.Fail(w, r, err)
			}
		})
	}
}

// What no browser would send in a form is refused or means nothing.
func TestHostileFormsBreakNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "f%d=x&", i)
	}
	for _, path := range []string{"/sign-in/", "/forgot-password/", s.link, "/lti/launch/test/1", "/sign-out/", "/change-password/"} {
		path = strings.TrimPrefix(path, "https://registrar.test")
		for name, body := range map[string]string{
			"nothing": "", "no form": "\x00\xff{", "a broken escape": "name=%zz&email=%zz&password=%", "NUL": "name=a%00b&email=a%00b@c.d&password=a%00b&again=a%00b",
			"no UTF-8": "name=%ff%fe&email=%ff@c.d&password=%ff%fe&next=%ff", "semicolons": "name=a;password=b;email=c@d.e", "twice": "name=a&name=b&password=c&password=d&email=a@b.c&email=e@f.g",
			"very long": "name=" + strings.Repeat("n", 60_000), "more than is read": "name=" + strings.Repeat("n", 70_000), "many fields": many.String(),
			"markup": "name=<script>alert(1)</script>&email=<script>alert(1)</script>&next=<script>alert(1)</script>", "other alphabets": "name=%D9%A1&email=%EF%BD%81@%EF%BD%82.org",
			"a half of a pair": "name=%ED%A0%80&email=%ED%A0%80@c.d", "line breaks": "name=a%0d%0ab&email=a%0d%0aBcc:x@c.d&next=/a%0d%0ab",
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
			check.NoError(check.Now(t), err, "%s", path)
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			got := s.browser(t).send(t, r)
			check.True(t, "the status is the client's", got.status >= 300 && got.status < 500 || got.status == 200, "%s of %s: %d %.200s", name, path, got.status, got.body)
			check.Lacks(t, "the page", got.body, "<script>alert", "%s of %s", name, path)
			check.Lacks(t, "the address", got.to, "\n", "%s of %s", name, path)
		}
	}
}
