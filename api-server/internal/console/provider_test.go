package console_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/pquerna/otp/totp"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"

	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
)

// records are TXT records by their names.
type records map[string][]string

func (r records) LookupTXT(_ context.Context, name string) ([]string, error) {
	if found, there := r[name]; there {
		return found, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// openWithProvider is open, with providers on this machine and the time that they have, too.
func openWithProvider(t *testing.T, dns records) *site {
	t.Helper()
	local := egress.Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	return open(t, func(d *server.Deps) { d.Egress, d.Clock, d.DNS = egress.New(local), time.Now, dns })
}

// people are those whom a provider knows.
type people map[string]*storage.User

func (p people) GetUserByID(id string) *storage.User      { return p[id] }
func (people) ExampleClientID() string                    { return "service" }
func (p people) GetUserByUsername(n string) *storage.User { return p[n] }

const answerURL = "http://registrar.test/sign-in/answer/north/"

// realProvider is the provider of another project, with a client for the site.
func realProvider(t *testing.T, addresses ...string) (issuer string) {
	t.Helper()
	known := people{}
	for _, address := range addresses {
		name, _, _ := strings.Cut(address, "@")
		known[name] = &storage.User{ID: name, Username: name, Password: "verysecure", Email: address, EmailVerified: !strings.HasPrefix(address, "unverified")}
	}
	var handler http.Handler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(s.Close)
	clients := map[string]*storage.Client{"registrar": storage.WebClient("registrar", "plain-to-nobody", answerURL)}
	handler = exampleop.SetupServer(s.URL, storage.NewStorageWithClients(known, clients), nil, false)
	return s.URL
}

func (s *site) setProvider(t *testing.T, b *browser, form url.Values) {
	t.Helper()
	status, page, _ := b.post(t, "/console/north/staff/provider/", form)
	want(t, "the settings", status, page, http.StatusSeeOther)
	_, err := s.DB.Exec(t.Context(), `
		INSERT INTO mail_domains (organization_id, domain, token, proven_at, proven_by, created_at)
		SELECT id, 'north-institute.org', 'x', now(), 'platform', now() FROM organizations WHERE slug = 'north' ON CONFLICT DO NOTHING`)
	check.NoError(check.Now(t), err, "a domain")
}

// there goes to the real provider, signs in there, and gives the address to which it sends the browser back.
func (b *browser) there(t *testing.T, name string) string {
	t.Helper()
	status, page, header := b.get(t, "/sign-in/with/north/")
	want(t, "to the provider", status, page, http.StatusSeeOther)
	follow := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), answerURL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	get := func(address string, form url.Values) (at *url.URL, next string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if form != nil {
			r, err = http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
		}
		check.NoError(check.Now(t), err, "%s", address)
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		res, err := follow.Do(r)
		check.NoError(check.Now(t), err, "%s", address)
		_ = res.Body.Close()
		return res.Request.URL, res.Header.Get("Location")
	}
	login, _ := get(header.Get("Location"), nil)
	_, back := get(login.String(), url.Values{"id": {login.Query().Get("authRequestID")}, "username": {name}, "password": {"verysecure"}})
	check.True(check.Now(t), "it leads back", strings.HasPrefix(back, answerURL), "%s: %s", name, back)
	return strings.TrimPrefix(back, "http://registrar.test")
}

// With a provider that others wrote: who belongs to the organization gets in, nobody else, and an answer once.
func TestSigningInAtTheInstitutesOwnProvider(t *testing.T) {
	t.Parallel()
	s := openWithProvider(t, nil)
	issuer := realProvider(t, "tariq@north-institute.org", "stranger@north-institute.org", "unverified@north-institute.org", "olive@elsewhere.org", "sunita@north-institute.org")
	s.Platform.Put(t, "organizations/north/staff/unverified@north-institute.org", map[string]any{"first_name": "U", "role": "owner", "password": password})
	s.Platform.Put(t, "organizations/north/staff/olive@elsewhere.org", map[string]any{"first_name": "O", "role": "owner", "password": password})
	s.north.Full.Post(t, "provision/student/", `{"email": "sunita@north-institute.org", "first_name": "Sunita", "courses": "toefl"}`).Want(t, 201)
	olive := s.signedIn(t, "olive")
	s.setProvider(t, olive, url.Values{"issuer": {issuer}, "client_id": {"registrar"}, "client_secret": {"plain-to-nobody"}})
	status, page, _ := olive.post(t, "/console/north/staff/provider/test", nil)
	want(t, "the test", status, page, http.StatusOK, "The provider answers as it should.")
	check.Lacks(t, "the page", page, "plain-to-nobody", "")

	tariq := s.browser(t)
	back := tariq.there(t, "tariq")
	status, page, _ = s.browser(t).get(t, back)
	want(t, "the answer in another browser", status, page, http.StatusUnauthorized, "not begun in this browser")
	status, page, header := tariq.get(t, back)
	want(t, "the answer", status, page, http.StatusSeeOther)
	check.Equal(t, "it leads", header.Get("Location"), "/console/", "")
	status, page, _ = tariq.get(t, "/console/north/")
	want(t, "the console", status, page, http.StatusOK)
	status, page, _ = tariq.get(t, back)
	want(t, "the answer again", status, page, http.StatusUnauthorized, "not begun in this browser")

	for name, why := range map[string]string{"stranger": "has given stranger@north-institute.org access", "unverified": "does not say that your email address is verified",
		"olive": "is of no domain that Institute north has shown", "sunita": "has given sunita@north-institute.org access"} {
		b := s.browser(t)
		status, page, _ := b.get(t, b.there(t, name))
		want(t, name, status, html.UnescapeString(page), http.StatusUnauthorized, why)
		status, _, _ = b.get(t, "/my-courses/")
		check.Equal(t, "the session", status, http.StatusSeeOther, "%s", name)
	}
	s.exec(t, `UPDATE identity_providers SET students = true`)
	b := s.browser(t)
	_, _, header = b.get(t, b.there(t, "sunita"))
	check.Equal(t, "a student, where the organization says so", header.Get("Location"), "/my-courses/", "")

	s.exec(t, `UPDATE members SET status = 'inactive' WHERE user_id = `+fmt.Sprint(s.userID(t, "tariq")))
	status, page, _ = tariq.get(t, "/console/north/")
	want(t, "who was deactivated, at once", status, page, http.StatusNotFound)
	b = s.browser(t)
	status, page, _ = b.get(t, b.there(t, "tariq"))
	want(t, "who was deactivated, anew", status, page, http.StatusUnauthorized, "Ask an owner for an invitation")
}

// newCodes gives the person who is signed in an authenticator app, and lists their recovery codes.
func (s *site) newCodes(t *testing.T, b *browser) (codes []string) {
	t.Helper()
	_, page, _ := b.post(t, "/sign-in-methods/app/", nil)
	code, err := totp.GenerateCode(strings.ReplaceAll(seedText.FindStringSubmatch(page)[1], " ", ""), time.Now())
	check.NoError(check.Now(t), err, "a code")
	status, page, _ := b.post(t, "/sign-in-methods/app/add/", url.Values{"name": {"Telephone"}, "code": {code}})
	want(t, "adding an app", status, page, http.StatusCreated)
	for _, m := range recoveryText.FindAllStringSubmatch(page, -1) {
		codes = append(codes, m[1])
	}
	return codes
}

// liar is a provider that says what a test wants.
type liar struct {
	*httptest.Server
	key    *rsa.PrivateKey
	claims func(map[string]any) // changes the answer
	signer *rsa.PrivateKey      // nil: key
	nonce  string               // of the last question
	issuer string               // in the discovery document; "": its own
	names  bool                 // it says that its answers name it
	told   atomic.Int32         // codes
}

func newLiar(t *testing.T) *liar {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check.NoError(check.Now(t), err, "a key")
	l := &liar{key: key, claims: func(map[string]any) {}}
	mux := http.NewServeMux()
	give := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		issuer := l.URL
		if l.issuer != "" {
			issuer = l.issuer
		}
		give(w, map[string]any{"issuer": issuer, "authorization_endpoint": l.URL + "/auth", "token_endpoint": l.URL + "/token", "jwks_uri": l.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"}, "authorization_response_iss_parameter_supported": l.names})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		give(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: l.key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		l.told.Add(1)
		if r.PostFormValue("code_verifier") == "" {
			w.WriteHeader(http.StatusBadRequest)
			give(w, map[string]any{"error": "invalid_grant"})
			return
		}
		claims := map[string]any{"iss": l.URL, "aud": "registrar", "sub": "1", "nonce": l.nonce, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
			"auth_time": time.Now().Unix(), "email": "adam@north-institute.org", "email_verified": true}
		l.claims(claims)
		signer := l.key
		if l.signer != nil {
			signer = l.signer
		}
		give(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": sign(t, signer, claims)})
	})
	l.Server = httptest.NewServer(mux)
	t.Cleanup(l.Close)
	return l
}

func sign(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Error(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		t.Error(err)
		return ""
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Error(err)
	}
	return token
}

// asked begins a sign-in at the liar, and gives the state of the question.
func (l *liar) asked(t *testing.T, b *browser, query string) string {
	t.Helper()
	status, page, header := b.get(t, "/sign-in/with/north/"+query)
	want(t, "to the provider", status, page, http.StatusSeeOther)
	to, err := url.Parse(header.Get("Location"))
	check.NoError(check.Now(t), err, "%s", header.Get("Location"))
	check.Equal(t, "PKCE", to.Query().Get("code_challenge_method"), "S256", "%s", to)
	l.nonce = to.Query().Get("nonce")
	return to.Query().Get("state")
}

func (s *site) withLiar(t *testing.T) (*liar, *browser) {
	t.Helper()
	l, olive := newLiar(t), s.signedIn(t, "olive")
	s.setProvider(t, olive, url.Values{"issuer": {l.URL}, "client_id": {"registrar"}, "client_secret": {"s"}, "role_claim": {"groups"}, "roles": {"bosses = owner\nhelpers = teacher\n"}})
	return l, olive
}

func TestAnswersOfAProviderThatAreRefused(t *testing.T) {
	t.Parallel()
	s := openWithProvider(t, nil)
	l, _ := s.withLiar(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	check.NoError(check.Now(t), err, "a key")
	for name, change := range map[string]func(map[string]any){
		"of another issuer":       func(c map[string]any) { c["iss"] = "https://evil.test" },
		"for another client":      func(c map[string]any) { c["aud"] = "somebody" },
		"too old":                 func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
		"to another question":     func(c map[string]any) { c["nonce"] = "another" },
		"without a nonce":         func(c map[string]any) { delete(c, "nonce") },
		"without an address":      func(c map[string]any) { delete(c, "email") },
		"not verified":            func(c map[string]any) { c["email_verified"] = false },
		"verified by no word":     func(c map[string]any) { delete(c, "email_verified") },
		"of another domain":       func(c map[string]any) { c["email"] = "sam@south-institute.org" },
		"of a domain below":       func(c map[string]any) { c["email"] = "adam@evil.north-institute.org" },
		"of a domain like it":     func(c map[string]any) { c["email"] = "adam@evilnorth-institute.org" },
		"of two domains":          func(c map[string]any) { c["email"] = "adam@north-institute.org@evil.test" },
		"signed by somebody else": func(map[string]any) { l.signer = other },
	} {
		b := s.browser(t)
		state := l.asked(t, b, "")
		l.claims, l.signer = change, nil
		status, page, _ := b.get(t, "/sign-in/answer/north/?code=x&state="+state)
		check.Equal(t, "the status", status, http.StatusUnauthorized, "%s: %s", name, page)
		status, _, _ = b.get(t, "/console/north/")
		check.Equal(t, "the console", status, http.StatusSeeOther, "%s", name)
	}
	l.claims, l.signer = func(map[string]any) {}, nil
	b := s.browser(t)
	l.asked(t, b, "")
	status, page, _ := b.get(t, "/sign-in/answer/north/?code=x&state=another")
	want(t, "another state", status, page, http.StatusUnauthorized, "does not belong to a sign-in that this browser began")
	state := l.asked(t, b, "")
	status, page, _ = b.get(t, "/sign-in/answer/north/?code=x&iss=https://evil.test&state="+state)
	want(t, "mixed up", status, page, http.StatusUnauthorized, "of another provider")
	l.names = true
	state = l.asked(t, b, "")
	status, page, _ = b.get(t, "/sign-in/answer/north/?code=x&state="+state)
	want(t, "without its name, which it says that it gives", status, page, http.StatusUnauthorized, "of another provider")
	state = l.asked(t, b, "")
	status, page, _ = b.get(t, "/sign-in/answer/north/?code=x&iss="+url.QueryEscape(l.URL)+"&state="+state)
	want(t, "with its name", status, page, http.StatusSeeOther)
	l.names = false
	state = l.asked(t, b, "")
	s.exec(t, `UPDATE identity_providers SET client_id = 'other'`)
	status, page, _ = b.get(t, "/sign-in/answer/north/?code=x&state="+state)
	want(t, "a client that was exchanged meanwhile", status, page, http.StatusUnauthorized, "of another provider")
	s.exec(t, `UPDATE identity_providers SET client_id = 'registrar'`)
	state = l.asked(t, b, "")
	status, page, _ = b.get(t, "/sign-in/answer/north/?error=access_denied%3Cb%3E&state="+state)
	want(t, "the person changed their mind", status, page, http.StatusUnauthorized, "access_deniedb")
	state = l.asked(t, b, "")
	status, page, header := b.get(t, "/sign-in/answer/north/?code=x&state="+state)
	want(t, "a good one", status, page, http.StatusSeeOther)
	check.Equal(t, "it leads", header.Get("Location"), "/console/", "")
}

// An organization whose provider sends the browser on to another's does not get the code with which that answers: it
// would sign in with it as whoever uses the browser.
func TestNoProviderReadsTheCodesOfAnother(t *testing.T) {
	t.Parallel()
	s := openWithProvider(t, nil)
	honest, _ := s.withLiar(t)
	s.Organization(t, "south")
	s.Platform.Put(t, "organizations/south/staff/sam@south-institute.org", map[string]any{"first_name": "Sam", "role": "owner", "password": password}).Want(t, 201)
	evil, sam := newLiar(t), s.browser(t)
	sam.post(t, "/sign-in/", url.Values{"name": {"sam@south-institute.org"}, "password": {password}})
	status, page, _ := sam.post(t, "/console/south/staff/provider/", url.Values{"issuer": {evil.URL}, "client_id": {"registrar"}, "client_secret": {"s"}})
	want(t, "the settings", status, page, http.StatusSeeOther)

	adam := s.browser(t)
	_, _, header := adam.get(t, "/sign-in/with/south/")
	to, err := url.Parse(header.Get("Location"))
	check.NoError(check.Now(t), err, "")
	check.Equal(t, "where the answer goes", to.Query().Get("redirect_uri"), "http://registrar.test/sign-in/answer/south/", "")
	// That leads on to north's, for a code that comes back to what north's knows.
	status, page, _ = adam.get(t, "/sign-in/answer/north/?code=of-adam&state="+to.Query().Get("state"))
	want(t, "the answer of another provider", status, page, http.StatusUnauthorized, "of another provider")
	check.Equal(t, "codes that were told", evil.told.Load()+honest.told.Load(), 0, "")
}

// The claim gives a role to who is on the staff, takes it, and makes nobody staff.
func TestAProvidersClaimNamesTheRole(t *testing.T) {
	t.Parallel()
	s := openWithProvider(t, nil)
	l, _ := s.withLiar(t)
	role := func() (role string) {
		err := s.DB.QueryRow(t.Context(), `SELECT role FROM members WHERE user_id = $1`, s.userID(t, "adam")).Scan(&role)
		check.NoError(check.Now(t), err, "")
		return role
	}
	for _, c := range []struct {
		groups any
		role   string
	}{{[]string{"helpers"}, "teacher"}, {"bosses", "owner"}, {[]string{"helpers", "bosses"}, "owner"}, {[]string{"others"}, "owner"}, {nil, "owner"}} {
		b := s.browser(t)
		state := l.asked(t, b, "")
		l.claims = func(claims map[string]any) { claims["groups"] = c.groups }
		status, page, _ := b.get(t, "/sign-in/answer/north/?code=x&state="+state)
		want(t, fmt.Sprint(c.groups), status, page, http.StatusSeeOther)
		check.Equal(t, "the role", role(), c.role, "%v", c.groups)
	}
	b := s.browser(t)
	state := l.asked(t, b, "")
	l.claims = func(claims map[string]any) {
		claims["groups"], claims["email"] = "bosses", "stranger@north-institute.org"
	}
	status, page, _ := b.get(t, "/sign-in/answer/north/?code=x&state="+state)
	want(t, "a stranger with a role", status, page, http.StatusUnauthorized, "Ask an owner for an invitation")
}

// Where staff must sign in at the provider, no password, passkey or link opens the console, but of two owners.
func TestNoWayAroundTheInstitutesSignIn(t *testing.T) {
	t.Parallel()
	s := openWithProvider(t, nil)
	l, olive := s.withLiar(t)
	policy := func(b *browser, form url.Values) (int, string) {
		t.Helper()
		status, page, _ := b.post(t, "/console/north/staff/provider/policy", form)
		return status, page
	}
	s.Platform.Put(t, "organizations/north/staff/otto@north-institute.org", map[string]any{"first_name": "Otto", "role": "owner", "password": password})
	s.Platform.Put(t, "organizations/north/staff/ophelia@north-institute.org", map[string]any{"first_name": "Ophelia", "role": "owner", "password": password})
	two := []string{fmt.Sprint(s.userID(t, "olive")), fmt.Sprint(s.userID(t, "otto"))}
	codes := map[string][]string{"olive": s.newCodes(t, olive)}
	status, page := policy(olive, url.Values{"only": {"yes"}, "break_glass": two})
	want(t, "an owner without a second factor", status, page, http.StatusConflict, "choose 2 owners with a second factor")
	codes["otto"] = s.newCodes(t, s.signedIn(t, "otto"))
	status, page = policy(olive, url.Values{"only": {"yes"}, "break_glass": two[:1]})
	want(t, "one owner", status, page, http.StatusConflict, "choose 2 owners")
	before := s.signedIn(t, "ophelia")
	status, page = policy(olive, url.Values{"only": {"yes"}, "break_glass": two})
	want(t, "a policy", status, page, http.StatusSeeOther)
	past := func(name string) *browser {
		t.Helper()
		b := s.browser(t)
		b.post(t, "/sign-in/", url.Values{"name": {name + "@north-institute.org"}, "password": {password}})
		status, page, _ := b.post(t, "/sign-in/second/", url.Values{"code": {codes[name][0]}})
		want(t, name, status, page, http.StatusSeeOther)
		codes[name] = codes[name][1:]
		return b
	}

	closed := func(b *browser, name string) {
		t.Helper()
		for _, path := range []string{"/console/", "/console/north/", "/console/north/api-keys/", "/console/north/staff/"} {
			status, page, _ := b.get(t, path)
			want(t, name+" "+path, status, page, http.StatusForbidden, "/sign-in/with/north/")
		}
	}
	closed(before, "a session from before")
	for _, name := range []string{"ophelia", "adam", "tariq"} {
		closed(s.signedIn(t, name), name)
	}
	for _, name := range []string{"olive", "otto"} {
		status, page, _ := past(name).get(t, "/console/north/")
		want(t, name, status, page, http.StatusOK)
	}
	for _, form := range []url.Values{{"role": {"admin"}}, {}} {
		path := fmt.Sprintf("/console/north/staff/%s/", two[1]) + map[bool]string{true: "role", false: "deactivate"}[form.Has("role")]
		status, page, _ = olive.post(t, path, form)
		want(t, path, status, page, http.StatusConflict, "choose another for that first")
	}
	status, page, _ = olive.post(t, fmt.Sprintf("/console/north/staff/%d/transfer", s.userID(t, "adam")), nil)
	want(t, "handing over", status, page, http.StatusConflict, "choose another for that first")
	status, page, _ = olive.post(t, "/console/north/staff/provider/domains/remove", url.Values{"domain": {"north-institute.org"}})
	want(t, "removing the domain", status, page, http.StatusConflict, "The staff must sign in there")
	adam := s.browser(t)
	state := l.asked(t, adam, "")
	status, page, _ = adam.get(t, "/sign-in/answer/north/?code=x&state="+state)
	want(t, "the provider", status, page, http.StatusSeeOther)
	status, page, _ = adam.get(t, "/console/north/api-keys/")
	want(t, "over the provider", status, page, http.StatusOK)

	l.Close()
	b := s.browser(t)
	status, page, _ = b.get(t, "/sign-in/with/north/")
	want(t, "the provider is away", status, page, http.StatusServiceUnavailable, "Your institute&#39;s sign-in is away", "Two of its owners can still")
	status, page, _ = past("otto").get(t, "/console/north/")
	want(t, "who keeps another way", status, page, http.StatusOK)
	status, page, _ = olive.post(t, "/console/north/staff/provider/remove", nil)
	want(t, "removing it", status, page, http.StatusConflict, "The staff must sign in there")
	status, page = policy(olive, nil)
	want(t, "no policy", status, page, http.StatusSeeOther)
	status, page, _ = s.signedIn(t, "ophelia").get(t, "/console/north/")
	want(t, "without the policy", status, page, http.StatusOK)
}

// The test button says what is wrong, and no provider leads into the network that the programs run in.
func TestATestSaysWhatIsWrongWithAProvider(t *testing.T) {
	t.Parallel()
	s := openWithProvider(t, nil)
	l, olive := s.withLiar(t)
	test := func(wants string) {
		t.Helper()
		status, page, _ := olive.post(t, "/console/north/staff/provider/test", nil)
		want(t, wants, status, html.UnescapeString(page), http.StatusConflict, wants)
	}
	l.issuer = "https://other.test"
	test("The provider calls itself https://other.test, not " + l.URL)
	l.issuer = ""
	s.exec(t, `UPDATE identity_providers SET issuer = issuer || '/nothing'`)
	test("There is nothing at " + l.URL + "/nothing/.well-known/openid-configuration")
	l.Close()
	test("cannot be reached")

	closed := open(t)
	b := closed.signedIn(t, "olive")
	for _, issuer := range []string{"https://127.0.0.1:8443", "https://169.254.169.254/latest", "https://10.0.0.1", "http://accounts.google.com", "https://localhost", "https://vault.internal"} {
		status, page, _ := b.post(t, "/console/north/staff/provider/", url.Values{"issuer": {issuer}, "client_id": {"x"}, "client_secret": {"x"}})
		check.Equal(t, "the status", status, http.StatusBadRequest, "%s: %s", issuer, page)
	}
}

// Owners set the provider up, and people find it, at every width.
func TestTheInstitutesSignInInABrowser(t *testing.T) {
	t.Parallel()
	s := openWithProvider(t, records{})
	l, _ := s.withLiar(t)
	b := browsertest.Open(t)
	b.Visit(s.URL() + "/sign-in/institute/")
	everywhere(t, b, "institute-none")
	b.Type("#email", "adam@north-institute.org")
	b.Press("Continue")
	b.AwaitText("Institute north has a sign-in of its own.")
	everywhere(t, b, "institute")
	b.Visit(s.URL() + "/console/north/staff/provider/")
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitHeading("Your own sign-in")
	b.Type("#domain", "north-institute.example")
	b.Press("Add the domain")
	b.AwaitText("Add the record below")
	b.Press("Test the provider")
	b.AwaitText("The provider answers as it should.")
	everywhere(t, b, "provider")
	l.Close()
	b.Visit(s.URL() + "/sign-in/with/north/")
	everywhere(t, b, "provider-away")
	s.exec(t, `UPDATE sign_in_policies SET provider_only = true`)
	s.exec(t, `INSERT INTO sign_in_policies (organization_id, factor_since, grace_days, updated_at, provider_only) SELECT id, now(), 0, now(), true FROM organizations WHERE slug = 'north' ON CONFLICT DO NOTHING`)
	b.Visit(s.URL() + "/console/")
	b.AwaitHeading("Sign in at your institute")
	everywhere(t, b, "needs-provider")
}

// A provider inside an institute often has a certificate of the institute's own authority.
func TestAProviderWithAnAuthorityOfItsOwn(t *testing.T) {
	t.Parallel()
	s := openWithProvider(t, nil)
	l, olive := newLiar(t), s.signedIn(t, "olive")
	secure := httptest.NewUnstartedServer(l.Config.Handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // clients hang up
	secure.StartTLS()
	t.Cleanup(secure.Close)
	l.Server = secure
	test := func(form url.Values, wantStatus int, wants string) {
		t.Helper()
		form.Set("issuer", l.URL)
		form.Set("client_id", "registrar")
		form.Set("client_secret", "s")
		s.setProvider(t, olive, form)
		status, page, _ := olive.post(t, "/console/north/staff/provider/test", nil)
		want(t, wants, status, html.UnescapeString(page), wantStatus, wants)
	}
	test(url.Values{}, http.StatusConflict, "The certificate of "+l.URL+" is not valid.")
	own := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	test(url.Values{"ca": {own}}, http.StatusOK, "The provider answers as it should.")
	adam := s.browser(t)
	state := l.asked(t, adam, "")
	status, page, _ := adam.get(t, "/sign-in/answer/north/?code=x&state="+state)
	want(t, "signing in", status, page, http.StatusSeeOther)
	status, page, _ = olive.post(t, "/console/north/staff/provider/", url.Values{"issuer": {l.URL}, "client_id": {"registrar"}, "ca": {"no certificate"}})
	want(t, "no certificate", status, page, http.StatusBadRequest, "send certificates in PEM form")
}

var tokenText = regexp.MustCompile(`registrar-domain=([\w-]+)`)

// A domain is whose DNS says so, and one organization's alone.
func TestADomainIsProven(t *testing.T) {
	t.Parallel()
	dns := records{}
	s := openWithProvider(t, dns)
	olive := s.signedIn(t, "olive")
	status, page, _ := olive.post(t, "/console/north/staff/provider/domains", url.Values{"domain": {"no domain"}})
	want(t, "no domain", status, page, http.StatusConflict, "send one such as institute.org")
	status, page, header := olive.post(t, "/console/north/staff/provider/domains", url.Values{"domain": {" North-Institute.org. "}})
	want(t, "a domain", status, page, http.StatusSeeOther)
	_, page, _ = olive.get(t, header.Get("Location"))
	token := tokenText.FindStringSubmatch(page)[1]
	prove := func(b *browser, path string, wantStatus int, wants string) {
		t.Helper()
		status, page, _ := b.post(t, path+"/staff/provider/domains/prove", url.Values{"domain": {"north-institute.org"}})
		want(t, wants, status, page, wantStatus, wants)
	}
	prove(olive, "/console/north", http.StatusConflict, "There is no TXT record _registrar.north-institute.org yet")
	dns["_registrar.north-institute.org."] = []string{"something"}
	prove(olive, "/console/north", http.StatusConflict, "says something else")
	dns["_registrar.north-institute.org."] = []string{"something", "registrar-domain=" + token}
	prove(olive, "/console/north", http.StatusSeeOther, "")

	s.Organization(t, "south")
	s.Platform.Put(t, "organizations/south/staff/sam@north-institute.org", map[string]any{"first_name": "Sam", "role": "owner", "password": password}).Want(t, 201)
	sam := s.signedIn(t, "sam")
	status, page, _ = sam.post(t, "/console/south/staff/provider/domains", url.Values{"domain": {"north-institute.org"}})
	want(t, "another organization", status, page, http.StatusSeeOther)
	prove(sam, "/console/south", http.StatusConflict, "says something else")
	_, page, _ = sam.get(t, "/console/south/staff/provider/")
	dns["_registrar.north-institute.org."] = []string{"registrar-domain=" + tokenText.FindStringSubmatch(page)[1]}
	prove(sam, "/console/south", http.StatusConflict, "Another organization has proven this domain.")
	check.True(t, "records of ours", slices.Contains(dns["_registrar.north-institute.org."], "registrar-domain="+token) == false, "")
}
