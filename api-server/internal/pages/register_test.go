package pages_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	advantage "github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// platform is an LMS that takes registrations.
type platform struct {
	*httptest.Server
	answer string // to a registration, with its address for HOST
	asked  atomic.Int32
	mu     sync.Mutex
	sent   map[string]any
	bearer string
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{answer: `{"client_id": "c-7", "https://purl.imsglobal.org/spec/lti-tool-configuration": {"deployment_id": "1:a"}}`}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/config" {
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
				"jwks_uri": p.URL + "/keys", "registration_endpoint": p.URL + "/register"})
			return
		}
		p.asked.Add(1)
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = json.NewDecoder(r.Body).Decode(&p.sent)
		p.bearer = r.Header.Get("Authorization")
		_, _ = w.Write([]byte(p.answer))
	}))
	t.Cleanup(p.Close)
	return p
}

// invite makes a link as an owner does.
func (s *site) invite(t *testing.T) string {
	t.Helper()
	service := advantage.Service{DB: s.Served, Policy: local, Box: s.Box}
	token, err := service.Invite(t.Context(), audit.Actor{Kind: audit.Staff, ID: 1, Name: "Olive Owner"}, s.north.ID, s.Now())
	check.NoError(check.Now(t), err, "a link")
	return advantage.RegisterPath + "north/" + token + "/"
}

// An LMS registers itself by a link, which is good once, and opens work when somebody has confirmed it.
func TestAnLMSRegistersItself(t *testing.T) {
	t.Parallel()
	s := open(t)
	l, b, p := s.school(t, "north", s.north), s.browser(t), newPlatform(t)
	link := s.invite(t)
	asked := url.Values{"openid_configuration": {p.URL + "/config"}, "registration_token": {"a.b-c"}}
	page := b.do(t, link+"?"+asked.Encode(), nil)
	check.Equal(check.Now(t), "status", page.status, 200, "%s", page.body)
	check.Contains(t, "the page", page.body, strings.TrimPrefix(p.URL, "http://"), "it says who asks")
	check.Equal(t, "registrations", p.asked.Load(), 0, "before the button")
	var done atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if page := b.do(t, link, asked); page.status == 200 && strings.Contains(page.body, "close.js") {
				done.Add(1)
			} else {
				check.Contains(t, "the page", page.body, "used already", "%d", page.status)
			}
		})
	}
	wg.Wait()
	check.Equal(check.Now(t), "done", done.Load(), 1, "of 4 at once")
	check.Equal(t, "registrations", p.asked.Load(), 1, "")
	check.Equal(t, "the token", p.bearer, "Bearer a.b-c", "")
	tool := advantage.NewTool(s.url, "north")
	check.Equal(t, "initiate_login_uri", p.sent["initiate_login_uri"], any(tool.LoginURL), "")
	check.Equal(t, "redirect_uris", p.sent["redirect_uris"].([]any)[0], any(tool.RedirectURL), "")
	check.Equal(t, "jwks_uri", p.sent["jwks_uri"], any(tool.KeysURL), "")
	check.Equal(t, "token_endpoint_auth_method", p.sent["token_endpoint_auth_method"], any("private_key_jwt"), "")
	check.Equal(t, "scope", p.sent["scope"], any(advantage.ScoreScope+" "+advantage.NamesScope), "")
	of := p.sent["https://purl.imsglobal.org/spec/lti-tool-configuration"].(map[string]any)
	check.Equal(t, "messages", len(of["messages"].([]any)), 2, "%v", of)
	check.Equal(t, "by whom", s.count(t, `SELECT count(*) FROM audit_log WHERE actor_name = 'Olive Owner' AND action IN ('registered LMS', 'made registration link for LMS')`), 2, "")
	// It waits.
	all, err := advantage.List(t.Context(), s.DB, s.north.ID)
	check.NoError(check.Now(t), err, "the registrations")
	var made advantage.Registration
	for _, r := range all {
		if r.ClientID == "c-7" {
			made = r
		}
	}
	check.True(check.Now(t), "it waits", made.Waiting && made.Issuer == p.URL && made.TokenURL == p.URL+"/token" && len(made.Deployments) == 1, "%+v", made)
	l.registration = made
	refused := l.initiate(t, b)
	check.Equal(t, "before somebody has confirmed it", refused.status, 409, "%s", refused.body)
	check.Contains(t, "the page", html.UnescapeString(refused.body), "confirm", "")
	made, err = advantage.Service{DB: s.DB, Policy: local}.Change(t.Context(), audit.Platform, s.north.ID, made, s.Now())
	check.NoError(check.Now(t), err, "confirming")
	check.False(t, "it waits", made.Waiting, "")
	check.Equal(t, "when somebody has", l.initiate(t, b).status, 303, "")
	check.Equal(t, "confirmations", s.count(t, `SELECT count(*) FROM audit_log WHERE action = 'confirmed LMS'`), 1, "")
}

// What a hostile LMS, or somebody with a link, may try.
func TestRegistrationsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Organization(t, "south")
	b, p := s.browser(t), newPlatform(t)
	link := s.invite(t)
	for name, c := range map[string]struct{ link, address, text string }{
		"no address":             {link, "", "openid_configuration: required"},
		"a private address":      {link, "http://169.254.169.254/", "not a public address"},
		"a file":                 {link, "file:///etc/passwd", "openid_configuration"},
		"nothing there":          {link, p.URL + "/register", "issuer"},
		"another organization's": {strings.Replace(link, "north", "south", 1), p.URL + "/config", "used already"},
		"nobody's link":          {advantage.RegisterPath + "north/abc/", p.URL + "/config", "used already"},
	} {
		page := b.do(t, c.link, url.Values{"openid_configuration": {c.address}})
		check.Equal(t, "status", page.status, 400, "%s: %s", name, page.body)
		check.Contains(t, "the page", html.UnescapeString(page.body), c.text, "%s", name)
	}
	asked := url.Values{"openid_configuration": {p.URL + "/config"}}
	page := b.do(t, s.invite(t), url.Values{"openid_configuration": {p.URL + "/config"}, "registration_token": {"a\r\nX: y"}})
	check.Equal(t, "a header in the token", page.status, 400, "%s", page.body)
	page = b.do(t, link, asked)
	check.Equal(t, "a link that was replaced", page.status, 400, "%s", page.body)
	link = s.invite(t)
	p.answer = `{"client_id": ""}`
	page = b.do(t, link, asked)
	check.Equal(t, "no client", page.status, 400, "%s", page.body)
	page = b.do(t, link, asked)
	check.Contains(t, "the link after that", page.body, "used already", "%d", page.status)
	link = s.invite(t)
	s.Advance(24*time.Hour + time.Second)
	page = b.do(t, link+"?"+asked.Encode(), nil)
	check.Equal(t, "too late", page.status, 400, "%s", page.body)
	check.Equal(t, "registrations", s.count(t, `SELECT count(*) FROM lms_registrations`), 0, "")
	check.Lacks(t, "the log", s.log.String(), strings.TrimPrefix(link, advantage.RegisterPath+"north/"), "a link is a secret")
}
