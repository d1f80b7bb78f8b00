package pages_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// held is the body of a form that is sent once it is released.
type held struct {
	text         *strings.Reader
	read, goesOn chan struct{}
}

func (h *held) Read(p []byte) (int, error) {
	if h.read != nil {
		close(h.read)
		<-h.goesOn
		h.read = nil
	}
	return h.text.Read(p)
}

// hold posts the form and returns while the handler waits for its body: the browser's session
// is loaded. release lets the body go, and gives the answer.
func (b *browser) hold(t *testing.T, path string, form url.Values) (release func() page) {
	t.Helper()
	body := &held{text: strings.NewReader(form.Encode()), read: make(chan struct{}), goesOn: make(chan struct{})}
	read := body.read
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.site.url+path, io.NopCloser(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Expect", "100-continue") // the body is read when the handler asks for it, which openWith sees to
	transport := &http.Transport{ExpectContinueTimeout: time.Hour}
	t.Cleanup(transport.CloseIdleConnections)
	slow := &browser{&http.Client{Jar: b.Jar, CheckRedirect: b.CheckRedirect, Transport: transport}, b.site}
	answer := make(chan page, 1)
	go func() {
		res, err := slow.Do(r)
		if err != nil {
			t.Error(err)
			answer <- page{}
			return
		}
		defer res.Body.Close()
		answer <- page{status: res.StatusCode, to: res.Header.Get("Location"), header: res.Header}
	}()
	select {
	case <-read:
	case <-time.After(30 * time.Second):
		t.Fatal("the handler has not asked for the body after 30 s")
	}
	return func() page { close(body.goesOn); return <-answer }
}

// mailed is a link that went to Ana's mailbox.
func (s *site) mailed(t *testing.T) (path string) {
	t.Helper()
	err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		l, err := student.ResetLink(t.Context(), tx, 1, s.Now())
		path = "/set-password/" + l.Token
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const another = "N3w-passphrase!"

func change(current, next string) url.Values {
	return url.Values{"current": {current}, "password": {next}, "again": {next}}
}

// A session that ends while a request of it is under way has ended, also when the request is
// answered later.
func TestASessionThatEndedDoesNotComeBackWithAnAnswer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *site, b *browser){
		"signed out": func(t *testing.T, _ *site, b *browser) {
			if p := b.do(t, "/sign-out/", url.Values{}); p.status != 303 {
				t.Errorf("%d", p.status)
			}
		},
		"signed in again": func(t *testing.T, _ *site, b *browser) { b.signIn(t, "ana@institute.org", password) },
		"a new password": func(t *testing.T, s *site, _ *browser) {
			if status, _, _ := s.visit(t, s.url+s.mailed(t), twice(another)); status != 200 {
				t.Errorf("%d", status)
			}
		},
		"a changed password": func(t *testing.T, s *site, _ *browser) {
			other := s.browser(t)
			other.signIn(t, "ana@institute.org", password)
			if p := other.do(t, "/change-password/", change(password, another)); p.status != 303 {
				t.Errorf("%d", p.status)
			}
		},
		"a password from the platform": func(t *testing.T, s *site, _ *browser) {
			s.Platform.Put(t, "organizations/north/staff/ana@institute.org", `{"role": "teacher", "password": "`+another+`"}`).Want(t, 200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.setPassword(t)
			b := s.browser(t)
			b.signIn(t, "ana@institute.org", password)
			id := b.cookie(t)
			release := b.hold(t, "/change-password/", change("wrong", another))
			if p := b.do(t, "/my-courses/", nil); p.status != 200 {
				t.Fatalf("before: %d", p.status)
			}
			end(t, s, b)
			if p := release(); p.status != 400 {
				t.Errorf("the answer: %d", p.status)
			}
			thief := s.browser(t)
			u, _ := url.Parse(s.url)
			thief.Jar.SetCookies(u, []*http.Cookie{{Name: "registrar_session", Value: id}})
			if p := thief.do(t, "/my-courses/", nil); p.status != 303 {
				t.Errorf("the session is back: %d", p.status)
			}
		})
	}
}

// Who knows the password of before, and has begun to change it, does not replace the new one.
func TestAPasswordIsChangedOnlyByTheOneThatItIs(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	b := s.browser(t)
	b.signIn(t, "ana@institute.org", password)
	release := b.hold(t, "/change-password/", change(password, "Evil-passphrase-1"))
	if status, _, _ := s.visit(t, s.url+s.mailed(t), twice(another)); status != 200 {
		t.Fatalf("%d", status)
	}
	if p := release(); p.status != 400 {
		t.Errorf("the password of before changes the new one: %d to %q", p.status, p.to)
	}
	if p := s.browser(t).signIn(t, "ana@institute.org", another); p.status != 303 {
		t.Errorf("the new password: %d", p.status)
	}
}
