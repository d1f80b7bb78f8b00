package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
)

const asks = "Please confirm that it is you"

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// kept is the form that a page holds until the password is given.
func keptForm(page string) url.Values {
	form := url.Values{}
	page, _, _ = strings.Cut(page, `name="confirm_password"`) // forms of the page's foot come behind
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		form.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return form
}

// Whoever finds a browser in which somebody signed in ten minutes ago makes no key and reads no secret.
func TestSecretsAskForThePasswordAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	target := s.furnish(t)
	b := s.signedIn(t, "olive")
	s.Advance(10 * time.Minute)
	for _, route := range []string{
		"/console/{slug}/api-keys", "/console/{slug}/api-keys/{id}/revoke", "/console/{slug}/webhooks", "/console/{slug}/webhooks/{id}",
		"/console/{slug}/webhooks/{id}/rotate-secret",
	} {
		before := s.written(t)
		status, page, _ := b.post(t, target(route), url.Values{"name": {"Student system"}, "url": {"https://hooks.north-institute.org/new"}})
		want(t, route, status, page, http.StatusOK, asks, `name="confirm_password"`)
		check.Equal(t, "what was done", s.written(t), before, "%s without the password", route)
	}
	status, page, _ := s.signedInThen(t, "elena", 10*time.Minute).post(t, "/console/north/api-keys/", nil)
	want(t, "an examiner", status, page, http.StatusForbidden, "is for owners and admins")
}

// written counts the commands of the audit log.
func (s *site) written(t *testing.T) (n int) {
	t.Helper()
	if err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM audit_log`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *site) signedInThen(t *testing.T, name string, later time.Duration) *browser {
	t.Helper()
	b := s.signedIn(t, name)
	s.Advance(later)
	return b
}

// The page goes on with what was filled in, and then does not ask for a while.
func TestNothingThatWasFilledInIsLostWhenThePasswordIsAskedFor(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedInThen(t, "olive", 11*time.Minute)
	const path = "/console/north/webhooks/"
	form := url.Values{"url": {"https://hooks.north-institute.org/a?b=1&c=2"}, "time_zone": {"Asia/Kolkata"}, "events": {"student.joined", "student.left"}}
	status, page, _ := b.post(t, path, form)
	want(t, "asking", status, page, http.StatusOK, asks, "olive@north-institute.org")
	for _, typed := range []string{"wrong", ""} {
		again := keptForm(page)
		check.Equal(check.Now(t), "what is kept", again.Encode(), form.Encode(), "after %q", typed)
		again.Set("confirm_password", typed)
		status, page, _ = b.post(t, path, again)
		want(t, "a wrong password", status, page, http.StatusBadRequest, asks, "The current password is not right", `role="alert"`)
	}
	again := keptForm(page)
	again.Set("confirm_password", password)
	status, page, _ = b.post(t, path, again)
	want(t, "the right one", status, page, http.StatusCreated, "The URL is added", "whsec_", "https://hooks.north-institute.org/a?b=1&amp;c=2")
	var events, zone string
	if err := s.DB.QueryRow(t.Context(), `SELECT array_to_string(events, ' '), time_zone FROM webhook_endpoints`).Scan(&events, &zone); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "the events", events, "student.joined student.left", "as they were ticked")
	check.Equal(t, "the zone", zone, "Asia/Kolkata", "as it was typed")
	s.Advance(9 * time.Minute)
	status, page, _ = b.post(t, "/console/north/api-keys/", url.Values{"name": {"Student system"}, "access": {"full"}})
	want(t, "nine minutes later", status, page, http.StatusCreated, "Your new key")
	s.Advance(time.Minute)
	status, page, _ = b.post(t, "/console/north/api-keys/", url.Values{"name": {"Another"}, "access": {"full"}})
	want(t, "ten minutes later", status, page, http.StatusOK, asks)
}

func TestThePasswordIsNotGuessedInASession(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, func(d *server.Deps) {
		d.PublicURL, d.Redis, d.RedisPatience = "http://registrar.test", queuetest.New(t), time.Minute
	})
	s := &site{Env: e, north: e.Organization(t, "north")}
	e.Platform.Put(t, "organizations/north/staff/olive@north-institute.org", map[string]any{"first_name": "olive", "role": "owner", "password": password})
	b := s.signedInThen(t, "olive", 11*time.Minute)
	for i := range 11 {
		wanted := http.StatusBadRequest
		if i == 10 {
			wanted = http.StatusTooManyRequests
		}
		status, page, _ := b.post(t, "/console/north/api-keys/", url.Values{"name": {"Student system"}, "confirm_password": {"wrong"}})
		want(t, "guessing", status, page, wanted, asks)
	}
	status, page, _ := b.post(t, "/console/north/api-keys/", url.Values{"name": {"Student system"}, "confirm_password": {password}})
	want(t, "the right one after too many", status, page, http.StatusTooManyRequests, "Too many tries")
}

// In light and dark, on a desktop and on a telephone.
func TestThePasswordAndTheBrowsersInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := browsertest.Open(t)
	s.enter(b, "olive")
	s.signedIn(t, "olive")
	s.Advance(11 * time.Minute)
	b.Visit(s.URL() + "/console/north/api-keys/")
	b.Type("#name", "Student system")
	b.Press("Create the key")
	b.AwaitHeading(asks)
	everywhere(t, b, "confirm")
	b.Type("#confirm", "wrong")
	b.Press("Continue")
	b.AwaitText("not right")
	everywhere(t, b, "confirm-refused")
	b.Type("#confirm", password)
	b.Press("Continue")
	b.AwaitText("Your new key “Student system”")
	b.Press("Signed-in browsers")
	b.AwaitHeading("Where you are signed in")
	b.AwaitText("An unknown browser")
	everywhere(t, b, "console-sessions")
	b.Press("Sign out everywhere else")
	b.AwaitText("You are signed out in the other browser.")
	s.signedIn(t, "olive")
	b.Visit(s.URL() + "/sessions/")
	b.AwaitText("this browser")
	everywhere(t, b, "sessions")
	b.Press("Sign out everywhere else")
	b.AwaitText("You are signed in nowhere else.")
	everywhere(t, b, "sessions-one")
}
