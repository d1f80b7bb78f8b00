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
	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/flow/launch"
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
func openWith(t *testing.T, rdb *redis.Client) *site {
	t.Helper()
	s := &site{Env: apitest.New(t), log: &apitest.LogBuffer{}, registry: prometheus.NewRegistry()}
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	routes := edge.NewRouter(edge.Options{API: "pages", Metrics: edge.NewMetrics(s.registry), Log: log, InFlight: 10, Secret: pages.SecretPaths})
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	s.url = server.URL
	sessions := signin.New(s.DB, s.url, pages.Fail)
	routes.Group(func(r chi.Router) {
		(&pages.Server{DB: s.DB, Clock: s.Now, Zone: time.UTC, PublicURL: s.url, Sessions: sessions,
			Limits: limit.New(rdb, time.Minute, s.registry, log), Proxies: limit.Proxies{netip.MustParsePrefix("127.0.0.0/8")}, LTI: lti.Service{DB: s.DB, Box: s.Box},
			Launches: &launch.Service{DB: s.DB, Clock: s.Now, Zone: time.UTC}}).Routes(r)
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
		if status != 200 || !strings.Contains(page, "ana@institute.org") || !strings.Contains(page, "<form") {
			t.Fatalf("%d\n%s", status, page)
		}
		if csp := header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") ||
			header.Get("Referrer-Policy") != "no-referrer" || header.Get("Cache-Control") != "no-store" {
			t.Fatalf("header = %v", header)
		}
		if strings.Contains(page, "<script") || strings.Contains(page, "<style") || strings.Contains(page, "style=") {
			t.Fatalf("the policy forbids what is inline:\n%s", page)
		}
	}
	other := s.provision(t)["set_password_url"].(string)
	if status, page, _ := s.visit(t, s.link, twice("Tr0ub4dor&3x")); status != 200 || !strings.Contains(page, "Your password is set") {
		t.Fatalf("%d\n%s", status, page)
	}
	for _, over := range []string{s.link, other} {
		if status, page, _ := s.visit(t, over, nil); status != 410 || !strings.Contains(page, "cannot be used any more") {
			t.Errorf("after its use: %d\n%s", status, page)
		}
		if status, _, _ := s.visit(t, over, twice("An0ther-one!")); status != 410 {
			t.Errorf("after its use it sets a password: %d", status)
		}
	}
	if again := s.provision(t); again["set_password_url"] != nil || again["set_password_expires_at"] != nil {
		t.Errorf("a link is handed out for an account in use: %v", again)
	}
	token := strings.TrimPrefix(s.link, apitest.PublicURL+"/set-password/")
	if text := s.log.String(); strings.Contains(text, token) || !strings.Contains(text, "/set-password/{token}") || strings.Contains(text, "Tr0ub4dor") {
		t.Errorf("the log shows a secret, or no visit:\n%s", text)
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
		if status != c.status || !strings.Contains(page, c.text) || strings.Contains(page, "Tr0ub4dor") {
			t.Errorf("%s: %d\n%s", name, status, page)
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
		if status, page, _ := s.visit(t, link, nil); status != 410 || !strings.Contains(page, "cannot be used any more") {
			t.Errorf("%s: %d\n%s", link, status, page)
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
	for name, mediaType := range map[string]string{"registrar.css": "text/css; charset=utf-8", "registrar.js": "text/javascript; charset=utf-8"} {
		status, text, header := s.visit(t, pages.Asset(name), nil)
		if status != 200 || header.Get("Content-Type") != mediaType || len(text) == 0 || !strings.Contains(header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", pages.Asset(name), status, header)
		}
	}
	if _, page, _ := s.visit(t, "/forgot-password/", nil); !strings.Contains(page, pages.Asset("registrar.css")) || !strings.Contains(pages.Asset("registrar.css"), "?v=") {
		t.Errorf("the page loads another stylesheet than %s:\n%s", pages.Asset("registrar.css"), page)
	}
	if status, _, _ := s.visit(t, "/assets/frame.html", nil); status != 404 {
		t.Errorf("what is no asset: %d", status)
	}
}
