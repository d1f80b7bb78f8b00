package pages_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/dynreg"
	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/jwks"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/oidc"
	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	advantage "github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/flow/account"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
)

// site serves the pages of an environment, and knows one student's link.
type site struct {
	*apitest.Env
	url, link string
	log       *apitest.LogBuffer
	registry  *prometheus.Registry
	north     apitest.Organization
}

func open(t *testing.T) *site { return openWith(t, nil) }

// openWith counts tries in rdb.
func openWith(t *testing.T, rdb redis.UniversalClient) *site {
	t.Helper()
	s := &site{Env: apitest.New(t), log: &apitest.LogBuffer{}, registry: prometheus.NewRegistry()}
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	routes := edge.NewRouter(edge.Options{API: "pages", Metrics: edge.NewMetrics(s.registry), Log: log, InFlight: 10, Secret: pages.SecretPaths,
		Streams: func(r *http.Request) bool { return r.Header.Get("Expect") != "" }}) // whose form a test holds back
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	s.url = server.URL
	proxies := limit.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
	sessions := signin.New(s.Served, s.Now, s.url, proxies, pages.Fail)
	routes.Group(func(r chi.Router) {
		(&pages.Server{DB: s.Served, Clock: s.Now, Zone: time.UTC, PublicURL: s.url, Sessions: sessions, Devices: signin.Devices{Box: s.Box, Clock: s.Now},
			Limits: limit.New(rdb, time.Minute, s.registry, log), Proxies: proxies, Refusals: s.Refusals, LTI: lti.Service{DB: s.Served, Box: s.Box},
			LMS: advantage.Service{DB: s.Served, Policy: local, Box: s.Box}, Registrar: dynreg.New(local), LMSKeys: advantage.Keys{DB: s.Served, Box: s.Box}, KeySets: jwks.New(local, s.Now),
			Launches: &launch.Service{DB: s.Served, Clock: s.Now, Zone: time.UTC},
			Accounts: &account.Service{DB: s.Served, Mail: email.Service{Box: s.Box}, Factors: factor.New(s.Served, s.Box, s.url), Clock: s.Now, PublicURL: s.url},
			Staff:    &staff.Service{DB: s.Served, Mail: email.Service{Box: s.Box}, Clock: s.Now, PublicURL: s.url}, Providers: provider.Service{DB: s.Served, Box: s.Box},
			OIDC: oidc.New(egress.New(egress.Config{}), s.Now, s.url)}).Routes(r)
	})
	routes.Group(guarded(sessions))
	s.north = s.Organization(t, "north")
	s.link = s.provision(t)["set_password_url"].(string)
	return s
}

// counted is the sum of a counter over its labels.
func (s *site) counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func (s *site) provision(t *testing.T) map[string]any {
	t.Helper()
	return s.north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana"}`).Object(t)
}

// visit makes a browser's request to the path of an address.
func (s *site) visit(t *testing.T, address string, form url.Values, header ...string) (int, string, http.Header) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+u.EscapedPath(), body)
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text), res.Header
}

func twice(password string) url.Values {
	return url.Values{"password": {password}, "again": {password}}
}

func TestTheLinkOfAnAnswerSetsThePassword(t *testing.T) {
	t.Parallel()
	s := open(t)
	if !strings.HasPrefix(s.link, apitest.PublicURL+"/set-password/") {
		t.Fatalf("link %q", s.link)
	}
	for range 3 { // opening consumes nothing
		status, page, header := s.visit(t, s.link, nil)
		check.Equal(check.Now(t), "status", status, 200, "%d\n%s", status, page)
		check.Contains(check.Now(t), "the page", page, "ana@institute.org", "%d\n%s", status, page)
		check.Contains(check.Now(t), "the page", page, "<form", "%d\n%s", status, page)
		if csp := header.Get("Content-Security-Policy"); check.Contains(check.Now(t), "the policy", csp, "default-src 'none'", "header = %v", header) &&
			check.Lacks(check.Now(t), "the policy", csp, "unsafe", "header = %v", header) &&
			check.Equal(check.Now(t), "Referrer-Policy", header.Get("Referrer-Policy"), "no-referrer", "header = %v", header) {
			check.Equal(check.Now(t), "Cache-Control", header.Get("Cache-Control"), "no-store", "header = %v", header)
		}
		check.Lacks(check.Now(t), "the page", page, "<script", "the policy forbids what is inline:\n%s", page)
		check.Lacks(check.Now(t), "the page", page, "<style", "the policy forbids what is inline:\n%s", page)
		check.Lacks(check.Now(t), "the page", page, "style=", "the policy forbids what is inline:\n%s", page)
	}
	other := s.provision(t)["set_password_url"].(string)
	if status, page, _ := s.visit(t, s.link, twice("Tr0ub4dor&3x")); check.Equal(check.Now(t), "status", status, 200, "%d\n%s", status, page) {
		check.Contains(check.Now(t), "the page", page, "Your password is set", "%d\n%s", status, page)
	}
	for _, over := range []string{s.link, other} {
		if status, page, _ := s.visit(t, over, nil); check.Equal(t, "status", status, 410, "after its use: %d\n%s", status, page) {
			check.Contains(t, "the page", page, "cannot be used any more", "after its use: %d\n%s", status, page)
		}
		if status, _, _ := s.visit(t, over, twice("An0ther-one!")); status != 410 {
			t.Errorf("after its use it sets a password: %d", status)
		}
	}
	if again := s.provision(t); check.True(t, "there is no set_password_url", again["set_password_url"] == nil, "a link is handed out for an account in use: %v", again) {
		check.True(t, "there is no set_password_expires_at", again["set_password_expires_at"] == nil, "a link is handed out for an account in use: %v", again)
	}
	token := strings.TrimPrefix(s.link, apitest.PublicURL+"/set-password/")
	if text := s.log.String(); check.Lacks(t, "the asset", text, token, "the log shows a secret, or no visit:\n%s", text) &&
		check.Contains(t, "the asset", text, "/set-password/{token}", "the log shows a secret, or no visit:\n%s", text) {
		check.Lacks(t, "the asset", text, "Tr0ub4dor", "the log shows a secret, or no visit:\n%s", text)
	}
}

func TestRefusedPasswordsLeaveTheLinkGood(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, c := range map[string]struct {
		form   url.Values
		status int
		text   string
		header []string
	}{
		"too short":    {twice("short"), 400, "at least 8 characters", nil},
		"common":       {twice("password1"), 400, "most common", nil},
		"like email":   {twice("ana@institute.org"), 400, "too similar", nil},
		"not the same": {url.Values{"password": {"Tr0ub4dor&3x"}, "again": {"Tr0ub4dor&3y"}}, 400, "not the same", nil},
		"empty":        {url.Values{}, 400, "at least 8 characters", nil},
		"other site":   {twice("Tr0ub4dor&3x"), 403, "", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"}},
	} {
		status, page, _ := s.visit(t, s.link, c.form, c.header...)
		if check.Equal(t, "status", status, c.status, "%s: %d\n%s", name, status, page) &&
			check.Contains(t, "the page", page, c.text, "%s: %d\n%s", name, status, page) {
			check.Lacks(t, "the page", page, "Tr0ub4dor", "%s: %d\n%s", name, status, page)
		}
	}
	if status, _, _ := s.visit(t, s.link, twice("Tr0ub4dor&3x")); status != 200 {
		t.Errorf("then a good one: %d", status)
	}
}

func TestExpiredAndUnknownLinks(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Advance(3 * 24 * time.Hour)
	for _, link := range []string{s.link, "/set-password/unknown"} {
		if status, page, _ := s.visit(t, link, nil); check.Equal(t, "status", status, 410, "%s: %d\n%s", link, status, page) {
			check.Contains(t, "the page", page, "cannot be used any more", "%s: %d\n%s", link, status, page)
		}
	}
	if status, _, _ := s.visit(t, "/set-password/%00", nil); status != 404 {
		t.Errorf("a path that is no text: %d", status)
	}
}

// A browser may keep an asset for ever: the address that pages load it from changes with it.
func TestAssetsAreServedForEver(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, mediaType := range map[string]string{"registrar.css": "text/css; charset=utf-8", "registrar.js": "text/javascript; charset=utf-8", "favicon.svg": "image/svg+xml"} {
		status, text, header := s.visit(t, pages.Asset(name), nil)
		if check.Equal(t, "status", status, 200, "%s: %d %v", pages.Asset(name), status, header) &&
			check.Equal(t, "Content-Type", header.Get("Content-Type"), mediaType, "%s: %d %v", pages.Asset(name), status, header) &&
			check.True(t, "the asset has content", len(text) != 0, "%s: %d %v", pages.Asset(name), status, header) {
			check.Contains(t, "Cache-Control", header.Get("Cache-Control"), "immutable", "%s: %d %v", pages.Asset(name), status, header)
		}
	}
	if _, page, _ := s.visit(t, "/forgot-password/", nil); check.Contains(t, "the page", page, pages.Asset("registrar.css"), "the page loads another stylesheet than %s:\n%s", pages.Asset("registrar.css"), page) {
		check.Contains(t, "the stylesheet's address", pages.Asset("registrar.css"), "?v=", "the page loads another stylesheet than %s:\n%s", pages.Asset("registrar.css"), page)
	}
	if status, _, _ := s.visit(t, "/assets/frame.html", nil); status != 404 {
		t.Errorf("what is no asset: %d", status)
	}
}
