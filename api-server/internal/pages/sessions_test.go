package pages_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// calling is a browser that calls itself so.
type calling string

func (c calling) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", string(c))
	r.Header.Set("X-Forwarded-For", "2001:db8:1:2::7")
	return http.DefaultTransport.RoundTrip(r)
}

func TestAPersonSeesAndEndsTheirSessions(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	s.Platform.Put(t, "organizations/north/staff/olive@institute.org", `{"first_name": "Olive", "role": "teacher", "password": "correct horse battery"}`).Want(t, 201)
	olive, laptop, phone := s.browser(t), s.browser(t), s.browser(t)
	laptop.Transport = calling("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0")
	phone.Transport = calling("Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) Version/17.6 Safari/604.1" + strings.Repeat("x", 5000) + "\u00ff")
	olive.signIn(t, "olive@institute.org", "correct horse battery")
	phone.signIn(t, "ana@institute.org", password)
	laptop.signIn(t, "ana@institute.org", password)
	p := laptop.do(t, "/sessions/", nil)
	check.Equal(t, "the status", p.status, 200, "%s", p.body)
	for _, text := range []string{"Firefox on Linux", "Safari on an iPhone", "from 2001:db8:1:2::/64", "21 November 2026 at", "Sign out everywhere else"} {
		check.True(t, "the page has "+text, strings.Contains(p.body, text), "%s", p.body)
	}
	check.Equal(t, "this browser", strings.Count(p.body, "this browser"), 1, "%s", p.body)
	here, _, _ := strings.Cut(p.body, "this browser")
	check.True(t, "this browser is the first", strings.Contains(here, "Firefox") && !strings.Contains(here, "iPhone"), "%s", p.body)
	s.Advance(time.Hour)
	phone.do(t, "/my-courses/", nil)
	p = laptop.do(t, "/sessions/", nil)
	check.Equal(t, "used now", strings.Count(p.body, "last used on 21 November 2026 at 11:00 UTC"), 2, "%s", p.body)
	p = laptop.do(t, "/sessions/end-others/", url.Values{})
	check.Equal(t, "ending the others leads", p.to, "/sessions/", "%d", p.status)
	p = laptop.do(t, "/sessions/", nil)
	check.True(t, "it says so", strings.Contains(p.body, "You are signed out in the other browser."), "%s", p.body)
	check.False(t, "the other is listed", strings.Contains(p.body, "iPhone"), "%s", p.body)
	check.True(t, "the other is out", strings.HasPrefix(phone.do(t, "/my-courses/", nil).to, "/sign-in/"), "after its session ended")
	check.Equal(t, "somebody else", olive.do(t, "/sessions/", nil).status, 200, "is still signed in")
}

var sessionName = regexp.MustCompile(`name="browser" value="([0-9a-f]{24})"`)

func TestAPersonEndsOneSession(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	s.Platform.Put(t, "organizations/north/staff/olive@institute.org", `{"first_name": "Olive", "role": "teacher", "password": "correct horse battery"}`).Want(t, 201)
	olive, one, two, three := s.browser(t), s.browser(t), s.browser(t), s.browser(t)
	olive.signIn(t, "olive@institute.org", "correct horse battery")
	for _, b := range []*browser{one, two, three} {
		s.Advance(time.Minute)
		b.signIn(t, "ana@institute.org", password)
	}
	p := three.do(t, "/sessions/", nil)
	names := sessionName.FindAllStringSubmatch(p.body, -1)
	check.Equal(check.Now(t), "sessions to end", len(names), 2, "%s", p.body)
	end := func(b *browser, name, wants string) {
		t.Helper()
		check.Equal(t, "it leads", b.do(t, "/sessions/end/", url.Values{"browser": {name}}).to, "/sessions/", "%s", name)
		check.Contains(t, "the page", b.do(t, "/sessions/", nil).body, wants, "%s", name)
	}
	end(olive, names[0][1], "not signed in there any more")
	in := func(b *browser) bool { return b.do(t, "/my-courses/", nil).status == 200 }
	check.True(t, "another person ends nothing", in(two), "%v", names)
	end(three, names[0][1], "You are signed out in that browser.") // the last used
	check.False(t, "the second is in", in(two), "after its session ended")
	check.True(t, "the first is in", in(one), "nobody ended it")
	check.True(t, "the third is in", in(three), "nobody ended it")
	end(three, names[0][1], "not signed in there any more")
}
