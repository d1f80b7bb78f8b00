package pages_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
)

func record(t *testing.T, h http.Handler, method, path string) http.Header {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w.Header()
}

func TestGuessingIsStopped(t *testing.T) {
	t.Parallel()
	s := openWith(t, queuetest.New(t))
	s.setPassword(t)
	for i := range 12 {
		p := s.browser(t).signIn(t, "Ana@institute.org", "wrong"+strconv.Itoa(i))
		want := 401
		if i >= 10 {
			want = 429
		}
		check.Equal(check.Now(t), "status", p.status, want, "try %d", i)
		check.Equal(check.Now(t), "there is a Retry-After", p.header.Get("Retry-After") != "", want == 429, "try %d: %q", i, p.header.Get("Retry-After"))
	}
	if p := s.browser(t).signIn(t, "ana@institute.org", password); check.Equal(t, "p.status", p.status, 429, "the right password after too many wrong ones: %d", p.status) {
		check.Contains(t, "the page", p.body, "Too many tries", "the right password after too many wrong ones: %d", p.status)
	}
	if p := s.browser(t).signIn(t, "nobody@institute.org", password); p.status != 401 {
		t.Errorf("another name: %d", p.status)
	}
}

// However a name is typed it is one, and an address and its account's username are one too. Names that
// lead nowhere are limited in the same way.
func TestAllSpellingsOfANameAreLimitedAsOne(t *testing.T) {
	t.Parallel()
	s := openWith(t, queuetest.New(t))
	s.setPassword(t)
	s.exec(t, `UPDATE accounts SET username = 'Ana.Lopez'`)
	for name, c := range map[string]struct {
		spellings []string
		again     string
	}{
		"of an account": {[]string{"ana@institute.org", "ANA@Institute.ORG", " ana@institute.org\t", "ａｎａ@institute.org", "ana＠institute．org",
			"Ana.Lopez", "ana.lopez", "ＡＮＡ．ＬＯＰＥＺ", "ana@ⓘnstitute.org", "ⓐna@institute.org"}, "ana@institute.org"},
		"of nobody": {[]string{"ben@institute.org", "BEN@Institute.ORG", " ben@institute.org\t", "ｂｅｎ@institute.org", "ben＠institute．org",
			"ⓑen@institute.org", "Ben@institute.org", "beN@ⓘnstitute.org", "ben@INSTITUTE.org", "ben@institute.org "}, "ben@institute.org"},
	} {
		for i, spelling := range c.spellings {
			p := s.browser(t).signIn(t, spelling, "wrong")
			check.Equal(t, "the status", p.status, 401, "a name %s, try %d as %q", name, i, spelling)
		}
		for _, spelling := range append(c.spellings, c.again) {
			p := s.browser(t).signIn(t, spelling, password)
			check.Equal(t, "the status", p.status, 429, "a name %s, an eleventh try as %q", name, spelling)
			check.True(t, "it says to wait", strings.Contains(p.body, "Too many tries"), "as %q", spelling)
		}
	}
}

// What is asked of Redis does not show whether there is an account, nor does its time.
func TestTriesAtANameAreCountedAlike(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	s := openWith(t, rdb)
	s.setPassword(t)
	counted := func(name string) string {
		t.Helper()
		var keys []string
		first := time.Now()
		for took := time.Hour; took >= time.Second; { // some are forgotten after a second
			check.True(check.Now(t), "a sign-in within a second comes within a minute", time.Since(first) < time.Minute, "")
			check.NoError(check.Now(t), rdb.FlushDB(t.Context()).Err(), "emptying Redis")
			began := time.Now()
			s.browser(t).signIn(t, name, "wrong")
			var err error
			keys, err = rdb.Keys(t.Context(), "*").Result()
			check.NoError(check.Now(t), err, "reading what is counted")
			took = time.Since(began)
		}
		for i, key := range keys {
			keys[i] = key[:strings.LastIndexByte(key, ':')]
		}
		slices.Sort(keys)
		return strings.Join(keys, " ")
	}
	check.Equal(t, "what is counted", counted("ana@institute.org"), counted("ben@institute.org"), "of an account, and of nobody")
}

// Wrong passwords that strangers try stop strangers alone: the person goes on signing in where the
// person has signed in before, and can get a link anywhere.
func TestStrangersLockNobodyOut(t *testing.T) {
	t.Parallel()
	s := openWith(t, queuetest.New(t))
	s.setPassword(t)
	mine := s.browser(t)
	check.Equal(check.Now(t), "the sign-in", mine.signIn(t, "ana@institute.org", password).status, 303, "before strangers try")
	strangersTry := func() {
		t.Helper()
		for range 12 {
			s.browser(t).signIn(t, "ana@institute.org", "wrong")
		}
		check.Equal(check.Now(t), "a stranger", s.browser(t).signIn(t, "ana@institute.org", password).status, 429, "with the right password")
	}
	strangersTry()
	before := mine.device(t)
	mine.do(t, "/sign-out/", url.Values{})
	check.Equal(t, "the sign-in", mine.signIn(t, "ana@institute.org", password).status, 303, "where the person signed in before")
	check.True(t, "the cookie is new", mine.device(t) != before, "it was %q", before)
	check.Equal(t, "changing the password", mine.do(t, "/change-password/", change(password, another)).status,
		303, "in a browser that is signed in")
	for i := range 11 {
		want := 401
		if i == 10 {
			want = 429
		}
		check.Equal(t, "the status", mine.signIn(t, "ana@institute.org", "wrong").status, want, "wrong try %d of a browser that is known", i)
	}
	fresh := s.browser(t)
	link := s.mailed(t)
	check.Equal(t, "setting a password", fresh.do(t, link, twice("Yet-an0ther!")).status, 200, "over a link, in a new browser")
	strangersTry()
	check.Equal(t, "the sign-in", fresh.signIn(t, "ana@institute.org", "Yet-an0ther!").status, 303, "where the link was opened")
	check.Equal(t, "the sign-in", mine.signIn(t, "ana@institute.org", "Yet-an0ther!").status, 429, "where another password was known")
}

func (b *browser) device(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(b.site.url)
	check.NoError(check.Now(t), err, "%s", b.site.url)
	return b.named(u, "registrar_device")
}

// The cookie of a browser is no key to anything, works for its accounts alone, and cannot be made up.
func TestADevicesCookie(t *testing.T) {
	t.Parallel()
	s := openWith(t, queuetest.New(t))
	s.setPassword(t)
	s.Platform.Put(t, "organizations/north/staff/olive@institute.org", `{"first_name": "Olive", "role": "teacher", "password": "correct horse battery"}`).Want(t, 201)
	b := s.browser(t)
	p := b.signIn(t, "ana@institute.org", password)
	var cookie *http.Cookie
	for _, c := range (&http.Response{Header: p.header}).Cookies() {
		if c.Name == "registrar_device" {
			cookie = c
		}
	}
	check.True(check.Now(t), "there is a cookie", cookie != nil, "%v", p.header)
	check.True(t, "HttpOnly", cookie.HttpOnly, "%v", cookie)
	check.Equal(t, "SameSite", cookie.SameSite, http.SameSiteLaxMode, "%v", cookie)
	check.Equal(t, "Path", cookie.Path, "/", "%v", cookie)
	another := s.browser(t) // one alone may have any letters
	another.signIn(t, "ana@institute.org", password)
	check.False(t, "it can be read", strings.Contains(cookie.Value, "ana") && strings.Contains(another.device(t), "ana"), "%q", cookie.Value)
	for range 11 {
		s.browser(t).signIn(t, "ana@institute.org", "wrong")
		s.browser(t).signIn(t, "olive@institute.org", "wrong")
	}
	with := func(value string) *browser {
		b := s.browser(t)
		u, err := url.Parse(s.url)
		check.NoError(check.Now(t), err, "%s", s.url)
		b.Jar.SetCookies(u, []*http.Cookie{{Name: "registrar_device", Value: value}})
		return b
	}
	check.Equal(t, "a page", with(cookie.Value).do(t, "/my-courses/", nil).status, 303, "the cookie signs nobody in")
	check.Equal(t, "another's account", with(cookie.Value).signIn(t, "olive@institute.org", "correct horse battery").status, 429, "with the cookie")
	for _, made := range []string{"", "x", cookie.Value[:len(cookie.Value)-4] + "AAAA", strings.Repeat("A", 5000)} {
		check.Equal(t, "a cookie that is made up", with(made).signIn(t, "ana@institute.org", password).status, 429, "%.40q", made)
	}
	both := with(cookie.Value)
	check.Equal(t, "the person", both.signIn(t, "ana@institute.org", password).status, 303, "with the cookie")
	s.Advance(181 * 24 * time.Hour)
	check.Equal(t, "half a year later", with(cookie.Value).signIn(t, "ana@institute.org", password).status, 429, "the cookie has expired")
}

// Pages that refuse are for everybody, too, on a telephone as well.
func TestRefusalsInABrowser(t *testing.T) {
	t.Parallel()
	b, rdb := browsertest.Open(t), queuetest.New(t)
	s := openWith(t, rdb)
	s.setPassword(t)
	for range 11 {
		s.browser(t).signIn(t, "ana@institute.org", "wrong")
	}
	for range 4 {
		s.browser(t).do(t, "/forgot-password/", ask("ana@institute.org"))
	}
	// However long the browser takes, none of the names is allowed another try meanwhile.
	names, err := rdb.Keys(t.Context(), "*_name:*").Result()
	check.NoError(check.Now(t), err, "%v %v", names, err)
	check.Equal(check.Now(t), "number of names", len(names), 2, "%v %v", names, err)
	for _, name := range names {
		if err := errors.Join(rdb.IncrByFloat(t.Context(), name, 3600).Err(), rdb.Persist(t.Context(), name).Err()); err != nil {
			t.Fatal(err)
		}
	}
	b.Size(390, 844)
	snapshot := func(name, text string) {
		t.Helper()
		b.AwaitText(text)
		if got := b.TextOf("[role=alert]"); !strings.Contains(got, text) {
			t.Errorf("%s: %q", name, got)
		}
		b.Accessible(name)
		b.Screenshot(name)
		if b.WiderThanWindow() {
			t.Errorf("%s scrolls sideways on a telephone", name)
		}
	}
	b.Visit(s.url + "/sign-in/")
	b.Type("#name", "ana@institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	snapshot("429-sign-in", "Too many tries")
	b.Visit(s.url + "/forgot-password/")
	b.Type("#email", "ana@institute.org")
	b.Press("Send the link")
	snapshot("429-forgot-password", "Too many tries")
	b.Fill("#email", "ana@localhost@")
	b.Value(`document.querySelector("main form").noValidate = true, ""`)
	b.Press("Send the link")
	snapshot("400-forgot-password", "This is no email address")
}

func TestSignInWorksWithoutRedis(t *testing.T) {
	t.Parallel()
	rdb, err := queue.Connect("redis://127.0.0.1:1", queue.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	s := openWith(t, rdb)
	s.setPassword(t)
	for range 12 {
		if p := s.browser(t).signIn(t, "ana@institute.org", password); p.status != 303 {
			t.Fatalf("%d\n%s", p.status, p.body)
		}
	}
	if n := s.counted(t, "registrar_rate_limit_unchecked_total"); n < 24 {
		t.Errorf("%v tries were counted as unchecked, want one a rule and try", n)
	}
}

// A launch counts whatever comes of it, by the address and by the consumer key.
func TestLaunchesAreLimited(t *testing.T) {
	t.Parallel()
	s := openWith(t, queuetest.New(t))
	l, b := s.lms(t, "north", s.north), s.browser(t)
	refused := func(key string, from func(i int) string, burst int) {
		t.Helper()
		form := url.Values{"oauth_consumer_key": {key}}
		const most = 5000 // also for a slow machine, where some are allowed meanwhile
		for i := range most {
			p := l.launchFrom(t, b, form, from(i))
			if p.status == 429 {
				check.True(t, "there is a Retry-After", p.header.Get("Retry-After") != "", "launch %d", i)
				check.Contains(t, "the page", p.body, "Too many people", "launch %d", i)
				check.True(t, "the burst was allowed", i >= burst, "%d launches, want %d", i, burst)
				return
			}
		}
		t.Errorf("%d launches were taken", most)
	}
	refused("", func(int) string { return "192.0.2.1" }, 300)
	refused("of an LMS", func(i int) string { return "198.51.100." + strconv.Itoa(i%250) }, 600)
	if p := l.launchFrom(t, b, l.form("lena@school.example", "Learner"), "203.0.113.9"); p.status != 303 {
		t.Errorf("another LMS from another address: %d\n%s", p.status, p.body)
	}
}
