package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

var seedText = regexp.MustCompile(`<code class="copy" tabindex="0">([A-Z2-7 ]+)</code>`)

// addApp gives the person who is signed in an authenticator app, and what it shows.
func (s *site) addApp(t *testing.T, b *browser) (show func() string) {
	t.Helper()
	status, page, _ := b.post(t, "/sign-in-methods/app/", nil)
	want(t, "the seed", status, page, http.StatusOK, "Scan this")
	secret := strings.ReplaceAll(seedText.FindStringSubmatch(page)[1], " ", "")
	show = func() string {
		code, err := totp.GenerateCode(secret, s.Now())
		check.NoError(check.Now(t), err, "a code")
		return code
	}
	status, page, _ = b.post(t, "/sign-in-methods/app/add/", url.Values{"name": {"Telephone"}, "code": {show()}})
	want(t, "adding an app", status, page, http.StatusCreated, "Your recovery codes")
	return show
}

// A policy closes the console, and results, to staff of its roles without a second factor when the days of grace are over;
// to nobody else.
func TestAPolicyClosesTheConsoleToWhoHasNoSecondFactor(t *testing.T) {
	t.Parallel()
	s := open(t)
	olive, adam, tariq := s.signedIn(t, "olive"), s.signedIn(t, "adam"), s.signedIn(t, "tariq")
	status, page, _ := olive.post(t, "/console/north/staff/policy", url.Values{"roles": {"janitor"}, "grace_days": {"91"}})
	want(t, "a policy that will not do", status, page, http.StatusBadRequest, "is no role of staff")
	status, page, _ = olive.post(t, "/console/north/staff/policy", url.Values{"roles": {"owner"}, "grace_days": {"91"}})
	want(t, "too many days", status, page, http.StatusBadRequest, "from 0 to 90")
	status, page, _ = olive.post(t, "/console/north/staff/policy", url.Values{"roles": {"owner", "admin"}, "grace_days": {"7"}})
	want(t, "a policy", status, page, http.StatusSeeOther)
	status, page, _ = adam.get(t, "/console/north/")
	want(t, "in the days of grace", status, page, http.StatusOK, "Your institute demands a second factor")
	_, page, _ = tariq.get(t, "/console/north/")
	check.Lacks(t, "the page", page, "demands a second factor", "a teacher's")

	s.Advance(7 * 24 * time.Hour)
	adam, tariq, olive = s.signedIn(t, "adam"), s.signedIn(t, "tariq"), s.signedIn(t, "olive")
	for _, path := range []string{"/console/", "/console/north/", "/console/north/students/", "/console/north/api-keys/", "/console/north/staff/"} {
		status, page, _ = adam.get(t, path)
		want(t, path, status, page, http.StatusForbidden, "Set up a second factor", "/sign-in-methods/")
	}
	status, page, _ = adam.post(t, "/console/north/api-keys/", url.Values{"name": {"Mine"}, "access": {"full"}})
	want(t, "making a key", status, page, http.StatusForbidden, "Set up a second factor")
	status, page, _ = tariq.get(t, "/console/north/")
	want(t, "a teacher", status, page, http.StatusOK)
	status, page, _ = adam.get(t, "/sign-in-methods/")
	want(t, "where it is set up", status, page, http.StatusOK, "Your institute opens its pages only to staff with a second factor")
	show := s.addApp(t, adam)
	status, page, _ = adam.get(t, "/console/north/")
	want(t, "with an app", status, page, http.StatusOK)

	method := regexp.MustCompile(`name="method" value="([0-9a-f-]{36})"`)
	_, page, _ = adam.get(t, "/sign-in-methods/")
	status, page, _ = adam.post(t, "/sign-in-methods/remove/", url.Values{"method": {method.FindStringSubmatch(page)[1]}})
	want(t, "removing the last one", status, page, http.StatusBadRequest, "Add another one first")
	_ = show

	s.addApp(t, olive)
	status, page, _ = olive.post(t, "/console/north/staff/policy", url.Values{"grace_days": {"7"}})
	want(t, "no policy any more", status, page, http.StatusSeeOther)
	_, page, _ = olive.get(t, "/console/north/audit-log/")
	for _, text := range []string{"changed sign-in policy", "second factor for admin, owner, 7 days of grace", "no second factor is demanded", "added totp"} {
		check.Contains(t, "the audit log", page, text, "")
	}
}

// Who has lost a telephone gets in again by the word of another owner, which is recorded; not by their own, an admin's or
// that of an owner elsewhere.
func TestAnotherOwnerRemovesALostFactor(t *testing.T) {
	t.Parallel()
	s := open(t)
	adam, olive := s.signedIn(t, "adam"), s.signedIn(t, "olive")
	s.addApp(t, adam)
	s.addApp(t, olive)
	reset := func(name string) string {
		return fmt.Sprintf("/console/north/staff/%d/reset-factors", s.userID(t, name))
	}
	status, page, _ := olive.post(t, reset("olive"), nil)
	want(t, "one's own", status, page, http.StatusConflict, "Another owner has to do this for you.")
	status, page, _ = adam.post(t, reset("olive"), nil)
	want(t, "an admin", status, page, http.StatusForbidden, "is for owners")
	lost := s.browser(t)
	status, _, header := lost.post(t, "/sign-in/", url.Values{"name": {"adam@north-institute.org"}, "password": {password}})
	check.Equal(t, "before", header.Get("Location"), "/sign-in/second/", "%d", status)

	s.Organization(t, "south")
	s.Platform.Put(t, "organizations/south/staff/adam@north-institute.org", `{"first_name": "Adam", "role": "teacher"}`).Want(t, 201)
	status, page, _ = olive.post(t, reset("adam"), nil)
	want(t, "who is on the staff of others, too", status, page, http.StatusConflict, "only be done by the platform")
	s.exec(t, `UPDATE members SET role = 'member' WHERE organization_id = (SELECT id FROM organizations WHERE slug = 'south')`)
	status, page, _ = olive.post(t, reset("adam"), nil)
	want(t, "who is a student of others", status, page, http.StatusConflict, "only be done by the platform")
	s.exec(t, `DELETE FROM members WHERE organization_id = (SELECT id FROM organizations WHERE slug = 'south')`)

	status, page, header = olive.post(t, reset("adam"), nil)
	want(t, "another owner", status, page, http.StatusSeeOther)
	_, page, _ = olive.get(t, header.Get("Location"))
	check.Contains(t, "the page", page, "1 second factors are removed", "")
	_, _, header = adam.get(t, "/console/north/")
	check.Contains(t, "where the person was signed in leads", header.Get("Location"), "/sign-in/", "whoever found the telephone may be in one")
	status, _, header = lost.post(t, "/sign-in/", url.Values{"name": {"adam@north-institute.org"}, "password": {password}})
	check.Equal(t, "after", header.Get("Location"), "/console/", "%d", status)
	_, page, _ = olive.get(t, "/console/north/audit-log/")
	check.Contains(t, "the audit log", page, "removed lost second factors", "")
	var notices int
	err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM emails WHERE recipient = 'adam@north-institute.org' AND params ->> 'notice' = 'factor_removed'`).Scan(&notices)
	check.NoError(t, err, "")
	check.Equal(t, "notices to the person", notices, 1, "")
}

// An invited teacher chooses a password over the mailed link, becomes an admin, and is out at once when deactivated.
func TestStaffComeAndGo(t *testing.T) {
	t.Parallel()
	s := open(t)
	olive := s.signedIn(t, "olive")
	status, page, _ := olive.post(t, "/console/north/staff/", url.Values{"email": {"no address"}, "first_name": {"Nina"}, "role": {"teacher"}})
	want(t, "no address", status, page, http.StatusBadRequest, `value="no address"`, `value="Nina"`, `role="alert"`)
	status, page, header := olive.post(t, "/console/north/staff/", url.Values{"email": {"nina@north-institute.org"}, "first_name": {"Nina"}, "role": {"teacher"}})
	want(t, "inviting", status, page, http.StatusSeeOther)
	_, page, _ = olive.get(t, header.Get("Location"))
	check.Contains(t, "the page", page, "A mail is on its way to nina@north-institute.org.", "")
	var mails int
	err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM emails WHERE type = 'staff_invitation' AND recipient = 'nina@north-institute.org' AND sealed IS NOT NULL`).Scan(&mails)
	check.NoError(t, err, "")
	check.Equal(t, "mails with a link", mails, 1, "")
	s.Platform.Put(t, "organizations/north/staff/nina@north-institute.org", map[string]any{"password": password}).Want(t, 200) // in place of the link
	nina := s.signedIn(t, "nina")
	path := fmt.Sprintf("/console/north/staff/%d/", s.userID(t, "nina"))
	status, page, _ = nina.get(t, "/console/north/api-keys/")
	want(t, "a teacher", status, page, http.StatusForbidden, "is for owners and admins")
	status, page, _ = olive.post(t, path+"role", url.Values{"role": {"admin"}})
	want(t, "a new role", status, page, http.StatusSeeOther)
	status, page, _ = nina.get(t, "/console/north/api-keys/")
	want(t, "an admin", status, page, http.StatusOK)
	status, page, _ = nina.post(t, "/console/north/staff/", url.Values{"email": {"evil@north-institute.org"}, "first_name": {"Evil"}, "role": {"owner"}})
	want(t, "an admin who invites", status, page, http.StatusForbidden, "is for owners")
	status, page, _ = olive.post(t, path+"deactivate", nil)
	want(t, "deactivating", status, page, http.StatusSeeOther)
	status, page, _ = nina.get(t, "/console/north/")
	want(t, "at once", status, page, http.StatusNotFound)
	status, _, header = s.browser(t).post(t, "/sign-in/", url.Values{"name": {"nina@north-institute.org"}, "password": {password}})
	check.Equal(t, "signing in leads", header.Get("Location"), "/my-courses/", "%d", status)

	status, page, _ = olive.post(t, fmt.Sprintf("/console/north/staff/%d/transfer", s.userID(t, "adam")), nil)
	want(t, "handing over", status, page, http.StatusSeeOther)
	status, page, _ = olive.post(t, path+"role", url.Values{"role": {"owner"}})
	want(t, "who was an owner", status, page, http.StatusForbidden, "is for owners")
	_, page, _ = olive.get(t, "/console/north/audit-log/")
	for _, text := range []string{"invited staff member", "deactivated staff member", "transferred ownership", "nina@north-institute.org (admin)"} {
		check.Contains(t, "the audit log", page, text, "")
	}
	s.Advance(11 * time.Minute)
	adam := s.signedInThen(t, "adam", 11*time.Minute)
	status, page, _ = adam.post(t, path+"role", url.Values{"role": {"teacher"}})
	want(t, "ten minutes later", status, page, http.StatusOK, asks)
}

// named is the site under a name, which passkeys need.
func named(t *testing.T) (*site, string) {
	t.Helper()
	var to *url.URL
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = r.Host }}).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	address := strings.Replace(front.URL, "127.0.0.1", "localhost", 1)
	e := apitest.New(t, func(d *server.Deps) { d.PublicURL = address })
	var err error
	to, err = url.Parse(e.URL())
	check.NoError(check.Now(t), err, "%s", e.URL())
	s := &site{Env: e, north: e.Organization(t, "north")}
	e.Platform.Put(t, "organizations/north/staff/olive@north-institute.org", map[string]any{"first_name": "olive", "role": "owner", "password": password})
	return s, address
}

// everywhere looks at a page at the widths of a desk and a telephone, in the light and in the dark.
func everywhere(t *testing.T, b *browsertest.Browser, name string) {
	t.Helper()
	for _, dark := range []bool{false, true} {
		for size, width := range map[string]int64{"": 1280, "-telephone": 390} {
			b.Size(width, 844)
			b.Dark(dark)
			shade := map[bool]string{true: "-dark"}[dark]
			b.Screenshot(name + size + shade)
			b.Accessible(name + size + shade)
			check.False(t, "it scrolls sideways", b.WiderThanWindow(), "%s at %d", name, width)
		}
	}
	b.Size(1280, 844)
	b.Dark(false)
}

// A real browser makes a passkey, signs in with it alone and beside the password, and confirms with it.
func TestAPasskeyInABrowser(t *testing.T) {
	t.Parallel()
	s, address := named(t)
	b := browsertest.Open(t)
	b.Passkeys()
	everywhere := func(name string) { everywhere(t, b, name) }
	b.Visit(address + "/console/")
	everywhere("sign-in")
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.Await("nav[aria-label=Console]")
	b.Press("Staff")
	b.AwaitHeading("Staff")
	everywhere("staff")
	b.Press("How you sign in")
	b.AwaitHeading("How you sign in")
	everywhere("methods-none")
	b.Press("Add an authenticator app")
	b.AwaitHeading("Add an authenticator app")
	everywhere("app")
	b.Visit(address + "/sign-in-methods/")
	b.Press("Add a passkey")
	b.AwaitHeading("Add a passkey")
	everywhere("new-passkey")
	b.Type("#name", "Work laptop")
	b.Press("Add the passkey")
	b.AwaitText("Your recovery codes")
	everywhere("methods")

	b.Press("Sign out")
	b.AwaitHeading("Sign in")
	b.Press("Sign in with a passkey")
	b.AwaitHeading("Sign in with a passkey")
	everywhere("passkey")
	b.Press("Use a passkey")
	b.Await("nav[aria-label=Console]")

	s.Advance(11 * time.Minute)
	b.Visit(address + "/console/north/api-keys/")
	b.Type("#name", "Student system")
	b.Press("Create the key")
	b.AwaitHeading(asks)
	everywhere("confirm-passkey")
	b.Press("Use a passkey")
	b.AwaitText("Your new key “Student system”")

	b.Press("Sign out")
	b.AwaitHeading("Sign in")
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitHeading("Confirm that it is you")
	everywhere("second")
	b.Press("Use a passkey")
	b.Await("nav[aria-label=Console]")
}
