package pages_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

var (
	shownSeed     = regexp.MustCompile(`<code class="copy" tabindex="0">([A-Z2-7 ]+)</code>`)
	shownRecovery = regexp.MustCompile(`<li><code>([A-Z2-7-]{19})</code></li>`)
	shownMethod   = regexp.MustCompile(`name="method" value="([0-9a-f-]{36})"`)
)

// app is an authenticator app.
type app struct {
	site   *site
	secret string
}

func (a app) code(t *testing.T) string {
	t.Helper()
	code, err := totp.GenerateCode(a.secret, a.site.Now())
	check.NoError(check.Now(t), err, "a code")
	return code
}

// addApp adds an app to the account that is signed in, whose recovery codes it gives.
func (b *browser) addApp(t *testing.T, name string) (app, []string) {
	t.Helper()
	p := b.do(t, "/sign-in-methods/app/", url.Values{})
	check.Equal(check.Now(t), "the page with the seed", p.status, 200, "%s", p.body)
	a := app{b.site, strings.ReplaceAll(shownSeed.FindStringSubmatch(p.body)[1], " ", "")}
	p = b.do(t, "/sign-in-methods/app/add/", url.Values{"name": {name}, "code": {"000000"}})
	check.Equal(check.Now(t), "a wrong code", p.status, 400, "%s", p.body)
	p = b.do(t, "/sign-in-methods/app/add/", url.Values{"name": {name}, "code": {a.code(t)}})
	check.True(check.Now(t), "it is added", p.status == 201 || p.status == 303, "%d %s", p.status, p.body)
	var codes []string
	for _, m := range shownRecovery.FindAllStringSubmatch(p.body, -1) {
		codes = append(codes, m[1])
	}
	return a, codes
}

func (s *site) olive(t *testing.T) *browser {
	t.Helper()
	s.Platform.Put(t, "organizations/north/staff/olive@institute.org", `{"first_name": "Olive", "role": "teacher", "password": "`+oldPassword+`"}`).Want(t, 201)
	b := s.browser(t)
	check.Equal(check.Now(t), "signing in", b.signIn(t, "olive@institute.org", oldPassword).to, "/console/", "")
	return b
}

// Whoever has an app is asked for its code, and nothing opens before.
func TestThePasswordAloneOpensNothingBesideAnApp(t *testing.T) {
	t.Parallel()
	s := open(t)
	first, elsewhere := s.olive(t), s.browser(t)
	elsewhere.signIn(t, "olive@institute.org", oldPassword)
	phone, recovery := first.addApp(t, "Telephone")
	check.Equal(t, "recovery codes", len(recovery), 10, "%v", recovery)
	check.True(t, "sessions end that were there before", strings.HasPrefix(elsewhere.do(t, "/sessions/", nil).to, "/sign-in/"), "")
	check.Equal(t, "this one stays", first.do(t, "/sessions/", nil).status, 200, "")

	closed := func(b *browser, what string) {
		t.Helper()
		for _, path := range []string{"/", "/my-courses/", "/sessions/", "/sign-in-methods/", "/change-password/", "/guarded/"} {
			p := b.do(t, path, nil)
			check.False(t, "it opens", p.status == 200, "%s: %s", what, path)
		}
	}
	b := s.browser(t)
	p := b.signIn(t, "olive@institute.org", oldPassword)
	check.Equal(check.Now(t), "the password leads", p.to, "/sign-in/second/", "%s", p.body)
	closed(b, "after the password")
	give := func(code string) page { return b.do(t, "/sign-in/second/", url.Values{"code": {code}}) }
	check.Equal(t, "a wrong code", give("123456").status, 401, "")
	check.Equal(t, "the code that added the app", give(phone.code(t)).status, 401, "it was used")
	closed(b, "after wrong codes")
	s.Advance(30 * time.Second)
	code := phone.code(t)
	check.Equal(check.Now(t), "the code leads", give(code).to, "/console/", "")
	check.Equal(t, "a page", b.do(t, "/sessions/", nil).status, 200, "")

	again := s.browser(t)
	again.signIn(t, "olive@institute.org", oldPassword)
	check.Equal(t, "the same code again", again.do(t, "/sign-in/second/", url.Values{"code": {code}}).status, 401, "")
	check.Equal(t, "a recovery code", again.do(t, "/sign-in/second/", url.Values{"code": {recovery[2]}}).to, "/console/", "")
	again.do(t, "/sign-out/", url.Values{})
	again.signIn(t, "olive@institute.org", oldPassword)
	check.Equal(t, "the same one again", again.do(t, "/sign-in/second/", url.Values{"code": {recovery[2]}}).status, 401, "")

	late := s.browser(t)
	late.signIn(t, "olive@institute.org", oldPassword)
	s.Advance(10 * time.Minute)
	check.Equal(t, "a code after ten minutes", late.do(t, "/sign-in/second/", url.Values{"code": {phone.code(t)}}).status, 401, "")
	closed(late, "after ten minutes")

	kinds := map[string]int{}
	for _, n := range s.notices(t, "olive@institute.org") {
		kinds[n.Notice]++
	}
	check.Equal(t, "notices of the app", kinds["factor_added"], 1, "%v", kinds)
	check.Equal(t, "notices of recovery codes", kinds["factor_removed"], 1, "%v", kinds)
}

// A session that was there before the first factor is worth no session with one, even if it was not ended: a request of
// it was under way.
func TestANewPasswordTakesNoSessionPastTheSecondFactor(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.olive(t)
	_, err := s.DB.Exec(t.Context(), `
		INSERT INTO factors (id, user_id, kind, name, sealed, created_at)
		SELECT gen_random_uuid(), id, 'totp', 'Telephone', '', now() FROM accounts WHERE email = 'olive@institute.org'`)
	check.NoError(check.Now(t), err, "a factor")
	b.do(t, "/change-password/", url.Values{"current": {oldPassword}, "password": {newPassword}, "again": {newPassword}})
	check.True(t, "nothing opens", strings.HasPrefix(b.do(t, "/sessions/", nil).to, "/sign-in/"), "")

	other := open(t)
	b = other.olive(t)
	b.addApp(t, "Telephone")
	b.do(t, "/change-password/", url.Values{"current": {oldPassword}, "password": {newPassword}, "again": {newPassword}})
	check.Equal(t, "where the factor was given", b.do(t, "/sessions/", nil).status, 200, "")
}

// Whoever tries codes knows the password: the person hears of it, once.
func TestStaffAreMailedOfCodesThatAreTried(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.olive(t).addApp(t, "Telephone")
	b := s.browser(t)
	b.signIn(t, "olive@institute.org", oldPassword)
	tried := func() (n int) {
		for _, notice := range s.notices(t, "olive@institute.org") {
			if notice.Notice == "codes_tried" {
				n++
			}
		}
		return n
	}
	for try := 1; try <= 13; try++ {
		check.Equal(t, "the status", b.do(t, "/sign-in/second/", url.Values{"code": {"000000"}}).status, 401, "try %d", try)
		mails := 0
		if try > 10 {
			mails = 1
		}
		check.Equal(t, "mails", tried(), mails, "after try %d", try)
	}
}

// A mailed link sets a password, and goes no way around the code; a password that changes meanwhile ends what
// was begun with the one before.
func TestALinkGoesNoWayAroundTheSecondFactor(t *testing.T) {
	t.Parallel()
	s := open(t)
	phone, _ := s.olive(t).addApp(t, "Telephone")
	begun := s.browser(t)
	begun.signIn(t, "olive@institute.org", oldPassword)
	b := s.browser(t)
	token := s.mailedLink(t, "olive@institute.org")
	p := b.do(t, "/set-password/"+token, url.Values{"password": {newPassword}, "again": {newPassword}})
	check.Equal(check.Now(t), "the password is set", p.status, 200, "%s", p.body)
	check.Contains(t, "the page", p.body, "Continue with your second factor", "")
	check.True(t, "nothing opens", strings.HasPrefix(b.do(t, "/sessions/", nil).to, "/sign-in/"), "")
	s.Advance(time.Minute)
	check.Equal(t, "what the old password began", begun.do(t, "/sign-in/second/", url.Values{"code": {phone.code(t)}}).status, 401, "")
	check.Equal(t, "the code leads", b.do(t, "/sign-in/second/", url.Values{"code": {phone.code(t)}}).to, "/console/", "")
}

// Removing and adding needs who has just shown who they are, by the same factors.
func TestWaysInChangeOnlyForWhoConfirms(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.olive(t)
	phone, _ := b.addApp(t, "Telephone")
	method := shownMethod.FindStringSubmatch(b.do(t, "/sign-in-methods/", nil).body)[1]
	s.Advance(11 * time.Minute)
	for _, path := range []string{"app/", "app/add/", "remove/", "recovery-codes/"} {
		p := b.do(t, "/sign-in-methods/"+path, url.Values{"method": {method}})
		check.Contains(t, "the page", p.body, "Please confirm that it is you", "%s", path)
	}
	remove := func(more url.Values) page {
		more.Set("method", method)
		return b.do(t, "/sign-in-methods/remove/", more)
	}
	check.Equal(t, "the password alone", remove(url.Values{"confirm_password": {oldPassword}}).status, 400, "")
	check.Equal(t, "the code alone", remove(url.Values{"confirm_code": {phone.code(t)}, "confirm_password": {""}}).status, 400, "")
	s.Advance(30 * time.Second)
	p := remove(url.Values{"confirm_password": {oldPassword}, "confirm_code": {phone.code(t)}})
	check.Equal(t, "both", p.to, "/sign-in-methods/", "%d %s", p.status, p.body)
	check.Equal(t, "signing in", s.browser(t).signIn(t, "olive@institute.org", oldPassword).to, "/console/", "without the app")
}

// mailedLink is the token of a link that was mailed to the address.
func (s *site) mailedLink(t *testing.T, address string) string {
	t.Helper()
	token := seal.Token()
	_, err := s.DB.Exec(t.Context(), `
		INSERT INTO set_password_tokens (hash, user_id, mailed, created_at, expires_at)
		SELECT $1, id, true, $3, $3::timestamptz + interval '1 hour' FROM accounts WHERE email = $2`, seal.Hash(token), address, s.Now())
	check.NoError(check.Now(t), err, "a link")
	return token
}
