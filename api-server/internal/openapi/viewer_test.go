package openapi_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/apicheck"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// operations are the calls of a document as a reader sees them: "GET /api/v1/ping/".
func operations(t *testing.T, document []byte) []string {
	t.Helper()
	checker, err := apicheck.New(document)
	if err != nil {
		t.Fatal(err)
	}
	return checker.Operations()
}

// shown are the calls that the page lists.
const shown = `[...document.querySelectorAll(".opblock-summary")].map(row =>
	row.querySelector(".opblock-summary-method").textContent.trim() + " " +
	row.querySelector("[data-path]").dataset.path).join("\n")`

func TestThePageShowsEveryCallAndAsksNobodyElse(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	key := e.Key(t, "north", org.ReadOnly)
	b := browsertest.Open(t) // which fails the test for requests to other hosts and for whatever the browser complains of
	b.Size(1280, 900)
	b.Visit(e.URL() + "/api/v1/docs")
	b.Await(".opblock-summary")
	listed := strings.Split(b.Value(shown), "\n")
	for _, want := range operations(t, openapi.Partner()) {
		if !slices.Contains(listed, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	b.Screenshot("docs-light")

	// A reader tries a call with a key of their own.
	b.Press("Authorize")
	b.Type(".auth-container input", key)
	b.Click(".auth-btn-wrapper .authorize")
	b.Click(".close-modal")
	b.Click(`[data-path="/api/v1/ping/"]`)
	b.Click(".opblock-body .execute")
	b.Await(".live-responses-table .response-col_status")
	if answer := b.Value(`document.querySelector(".live-responses-table").innerText`); check.Contains(t, "the answer", answer, "200", "the tried call is answered:\n%s", answer) {
		check.Contains(t, "the answer", answer, `"north"`, "the tried call is answered:\n%s", answer)
	}
	b.Screenshot("docs-tried")

	b.Size(390, 844)
	if wide := b.Value(`document.documentElement.scrollWidth > innerWidth ? "wide" : ""`); wide != "" {
		t.Error("the page is wider than a telephone")
	}
	b.Screenshot("docs-telephone")
	b.Dark(true)
	b.Await("html.dark-mode")
	b.Screenshot("docs-telephone-dark")
}

// axe finds nothing wrong with the page and its dialog.
func TestThePageIsAccessible(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	key := e.Key(t, "north", org.ReadOnly)
	b := browsertest.Open(t)
	b.Size(1280, 900)
	b.Visit(e.URL() + "/api/v1/docs")
	b.Await(".opblock-summary")
	b.Accessible("the calls")
	b.Press("Authorize")
	b.Type(".auth-container input", key)
	b.Accessible("the dialog for a key")
	b.Click(".auth-btn-wrapper .authorize")
	b.Await(".auth-container h6")
	b.Accessible("the dialog with a key")
}

func router() http.Handler {
	r := chi.NewRouter()
	r.Route("/platform/v1", func(r chi.Router) { openapi.Routes(r, "/platform/v1", openapi.Platform, "") })
	return r
}

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	router().ServeHTTP(w, r)
	return w
}

func TestThePolicyLetsNothingElseIn(t *testing.T) {
	t.Parallel()
	w := get(t, "/platform/v1/docs")
	policy := w.Header().Get("Content-Security-Policy")
	for _, word := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, word) {
			t.Errorf("the policy lacks %s: %s", word, policy)
		}
	}
	for _, word := range []string{"unsafe-eval", "http:", "https:", "*"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy has %s: %s", word, policy)
		}
	}
	if page := w.Body.String(); check.Equal(t, "w.Code", w.Code, http.StatusOK, "%d %s", w.Code, page) &&
		check.Contains(t, "the page", page, "Registrar platform API", "%d %s", w.Code, page) {
		check.Contains(t, "the page", page, "/platform/v1/docs/swagger-ui-bundle.js?v=", "%d %s", w.Code, page)
	}
}

func TestAssetsAreServedPackedAndUnpacked(t *testing.T) {
	t.Parallel()
	const path = "/platform/v1/docs/swagger-ui-bundle.js"
	packed, plain := get(t, path, "Accept-Encoding", "gzip"), get(t, path)
	check.Equal(check.Now(t), "Content-Encoding", packed.Header().Get("Content-Encoding"), "gzip", "encodings: %v, %v", packed.Header(), plain.Header())
	check.Equal(check.Now(t), "Content-Encoding", plain.Header().Get("Content-Encoding"), "", "encodings: %v, %v", packed.Header(), plain.Header())
	if check.True(t, "the packed answer is shorter", packed.Body.Len() < plain.Body.Len(), "%d bytes packed, %d plain", packed.Body.Len(), plain.Body.Len()) {
		check.Contains(t, "the answer", plain.Body.String(), "SwaggerUIBundle", "%d bytes packed, %d plain", packed.Body.Len(), plain.Body.Len())
	}
}
