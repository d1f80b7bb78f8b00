package pages_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

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
		check.True(t, "strings.Contains(p.body, \"Too many tries\")", strings.Contains(p.body, "Too many tries"), "the right password after too many wrong ones: %d", p.status)
	}
	if p := s.browser(t).signIn(t, "nobody@institute.org", password); p.status != 401 {
		t.Errorf("another name: %d", p.status)
	}
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
	check.Equal(check.Now(t), "len(names)", len(names), 2, "%v %v", names, err)
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
	rdb, err := queue.Connect("redis://127.0.0.1:1")
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
