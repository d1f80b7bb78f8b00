package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// judge checks that a failure's page says what is wrong, leads on, and is one that everybody
// can use.
func judge(t *testing.T, b *browsertest.Browser, name, heading, text string) {
	t.Helper()
	b.AwaitHeading(heading)
	if got := b.TextOf("main"); !strings.Contains(got, text) {
		t.Errorf("%s: the page says %q, want %q", name, got, text)
	}
	b.Size(1200, 900)
	b.Accessible(name)
	b.Screenshot(name)
	b.Size(390, 844)
	b.Accessible(name + ", on a telephone")
	if b.WiderThanWindow() {
		t.Errorf("%s scrolls sideways on a telephone", name)
	}
	if b.Count("main a[href^='/']") == 0 {
		t.Errorf("%s leads nowhere", name)
	}
	b.Size(1200, 900)
}

func (s *site) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := s.DB.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestFailuresHavePagesForEverybody(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t)
	target := s.furnish(t)
	s.enter(b, "olive")
	for name, path := range map[string]string{"404-stray": "/console/north/nothing/of/the/kind", "404-foreign": "/console/south/",
		"404-posted-to": target("/console/{slug}/webhooks/{id}/rotate-secret"), "404-no-text": "/console/%00"} {
		b.Visit(s.URL() + path)
		judge(t, b, name, "There is nothing here", "not yours to see")
	}

	b.Visit(s.URL() + target("/console/{slug}/webhooks/{id}/deliveries"))
	b.Fill("#since", "2026-11-21T10:00")
	b.Fill("#until", "2026-11-21T09:00")
	b.Press("Recover")
	b.Await("[role=alert]")
	judge(t, b, "400-form", "Deliveries", "it must be after since")

	b.Visit(s.URL() + target("/console/{slug}/webhooks/{id}"))
	s.exec(t, `UPDATE webhook_endpoints SET managed_by = 'kubernetes/demo/main'`)
	b.Press("Delete…")
	b.Press("Delete the URL")
	judge(t, b, "409-kept-elsewhere", "This was not done", "kept by kubernetes/demo/main")

	s.exec(t, `ALTER TABLE audit_log RENAME TO audit_log_away`)
	b.Visit(s.URL() + "/console/north/audit-log/")
	judge(t, b, "500", "Something went wrong", "try again in a moment")
	s.exec(t, `ALTER TABLE audit_log_away RENAME TO audit_log`)

	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Win</title><link rel="icon" href="data:,"><form method="post" action="%s/console/north/api-keys/"><button>Win</button></form>`, s.URL())
	}))
	t.Cleanup(evil.Close)
	b.Visit(evil.URL)
	b.Press("Win")
	judge(t, b, "403-from-another-site", "This was not accepted", "did not come from this site")

	b.Visit(s.URL() + "/console/")
	b.Press("Sign out")
	b.Await("#password")
	s.enter(b, "tariq")
	b.Visit(s.URL() + "/console/north/api-keys/")
	judge(t, b, "403-wrong-role", "Your role does not open this page", "is for owners and admins")
}

// Whoever is no browser gets JSON for what has no route, as before.
func TestOnlyABrowserGetsAPageForAStrayPath(t *testing.T) {
	t.Parallel()
	s := open(t)
	for path, page := range map[string]bool{"/console/north/nothing/here": true, "/nothing": true, "/sign-out/": true, "/api/v1/nothing/": false} {
		for accept, browser := range map[string]bool{"text/html,application/xhtml+xml": true, "*/*": false, "": false} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			html := strings.HasPrefix(res.Header.Get("Content-Type"), "text/html")
			check.Equal(t, "the answer is HTML", html, page && browser, "%s for %q: %d %s", path, accept, res.StatusCode, res.Header.Get("Content-Type"))
			check.OneOf(t, "status", res.StatusCode, []int{404, 405}, "%s for %q", path, accept)
			if html {
				checkHeaders(t, path, res.Header)
			}
		}
	}
}
