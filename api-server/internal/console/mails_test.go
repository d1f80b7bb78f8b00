package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Owners and admins choose their own mails; the link of a mail ends those of its kind without a sign-in.
func TestMailsThatOwnersAndAdminsDoWithout(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "olive")
	const page = "/console/north/mails/"
	wanted := func() (all []string) {
		t.Helper()
		_, text, _ := b.get(t, page)
		for _, of := range email.Alerts() {
			if strings.Contains(text, fmt.Sprintf(`value="%s" checked`, of)) {
				all = append(all, string(of))
			}
		}
		return all
	}
	check.Slices(t, "at first", wanted(), []string{"url_switched_off", "url_failing", "roster_held"}, "")
	status, text, _ := b.post(t, page, url.Values{"wanted": {"url_switched_off", "roster_held", "welcome"}})
	want(t, "the choice", status, text, http.StatusSeeOther)
	check.Slices(t, "after the choice", wanted(), []string{"url_switched_off", "roster_held"}, "")
	check.Equal(t, "rows", s.count(t, "mail_optouts"), 1, "")

	token, err := email.Subscription{Organization: 1, User: id.User(s.userID(t, "olive")), Of: email.TypeURLSwitchedOff}.Token(t.Context(), s.Box)
	check.NoError(check.Now(t), err, "the token")
	path := email.UnsubscribePath + token + "/"
	status, text, _ = s.browser(t).get(t, path)
	want(t, "the link", status, text, http.StatusOK, "Institute north mails you when a webhook URL is switched off", "Stop these mails")
	check.Slices(t, "after a look", wanted(), []string{"url_switched_off", "roster_held"}, "")
	// As a mail client does it.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader("List-Unsubscribe=One-Click"))
	check.NoError(check.Now(t), err, "the request")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	check.NoError(check.Now(t), err, "the request")
	check.NoError(t, answer.Body.Close(), "the answer")
	check.Equal(t, "status", answer.StatusCode, http.StatusOK, "")
	check.Slices(t, "after one click", wanted(), []string{"roster_held"}, "")
	status, _, _ = s.browser(t).post(t, email.UnsubscribePath+token[:len(token)-2]+"/", nil)
	check.Equal(t, "status", status, http.StatusNotFound, "a token that is none")
	_, _, _ = b.post(t, page, url.Values{"wanted": {"url_switched_off", "url_failing", "roster_held"}})
	check.Equal(t, "rows", s.count(t, "mail_optouts"), 0, "all are wanted")

	c := browsertest.Open(t)
	s.enter(c, "olive")
	for _, width := range []int64{1280, 390} {
		for _, dark := range []bool{false, true} {
			c.Size(width, 900)
			c.Dark(dark)
			for name, at := range map[string]string{"mails": page, "unsubscribe": path} {
				c.Visit(s.URL() + at)
				c.Screenshot(fmt.Sprintf("%s-%d-dark-%t", name, width, dark))
				check.False(t, "it scrolls sideways", c.WiderThanWindow(), "%s at %d", name, width)
				if dark {
					c.Accessible(name) // in both schemes
				}
			}
		}
	}
	c.Visit(s.URL() + path)
	c.Press("Stop these mails")
	c.AwaitHeading("These mails are stopped")
	c.Accessible("unsubscribed")
	c.Screenshot("unsubscribed")
	check.Slices(t, "after the page's button", wanted(), []string{"url_failing", "roster_held"}, "")
}

func (s *site) count(t *testing.T, from string) (n int) {
	t.Helper()
	check.NoError(check.Now(t), s.DB.QueryRow(t.Context(), "SELECT count(*) FROM "+from).Scan(&n), "%s", from)
	return n
}
