package server_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/apicheck"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
)

// Every route is documented, and everything documented is there.
// Reference: conventions#versions.
func TestDocumentsHaveEveryRoute(t *testing.T) {
	apis := server.New(server.Deps{Clock: clock.System, Zone: time.UTC, Log: slog.New(slog.DiscardHandler),
		Registry: prometheus.NewRegistry(), Egress: egress.New(egress.Config{}), InFlight: 1})
	for name, c := range map[string]struct {
		routes   *chi.Mux
		document []byte
	}{"partner": {apis.Public, openapi.Partner()}, "platform": {apis.Platform, openapi.Platform()}} {
		t.Run(name, func(t *testing.T) {
			checker, err := apicheck.New(c.document)
			if err != nil {
				t.Fatal(err)
			}
			documented := checker.Operations()
			for i := range documented {
				documented[i] = strings.TrimSuffix(documented[i], "/")
			}
			var registered []string
			err = chi.Walk(c.routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
				if strings.Contains(route, "/v1/") && !strings.Contains(route, "/openapi.") && !strings.Contains(route, "/docs") { // pages are for browsers
					registered = append(registered, method+" "+route)
				}
				return nil
			})
			check.NoError(check.Now(t), err, "%v %v", registered, err)
			check.True(check.Now(t), "there are routes", len(registered) != 0, "%v %v", registered, err)
			for _, r := range registered {
				if !slices.Contains(documented, r) {
					t.Errorf("%s is not documented", r)
				}
			}
			for _, d := range documented {
				if !slices.Contains(registered, d) {
					t.Errorf("%s is documented and has no route", d)
				}
			}
		})
	}
}

func TestDocumentsAreServedWithoutAKey(t *testing.T) {
	apis := server.New(server.Deps{Clock: clock.System, Zone: time.UTC, Log: slog.New(slog.DiscardHandler),
		Registry: prometheus.NewRegistry(), Egress: egress.New(egress.Config{}), InFlight: 1})
	for path, routes := range map[string]*chi.Mux{"/api/v1/openapi": apis.Public, "/platform/v1/openapi": apis.Platform} {
		for ending, mediaType := range map[string]string{".yaml": "application/yaml", ".json": "application/json"} {
			w := httptest.NewRecorder()
			routes.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path+ending, nil))
			check.Equal(check.Now(t), "w.Code", w.Code, http.StatusOK, "%s%s: %d %s", path, ending, w.Code, w.Header())
			check.Equal(check.Now(t), "Content-Type", w.Header().Get("Content-Type"), mediaType, "%s%s: %d %s", path, ending, w.Code, w.Header())
			checker, err := apicheck.New(w.Body.Bytes())
			if check.NoError(t, err, "%s%s: %v", path, ending, err) {
				check.True(t, "there are operations", len(checker.Operations()) != 0, "%s%s: %v", path, ending, err)
			}
		}
	}
}

// Browsers come back over https alone, whatever the first answer was, where the site is there.
func TestBrowsersAreKeptOnHTTPS(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{"https://registrar.example": "max-age=31536000", "http://registrar.example": ""} {
		apis := server.New(server.Deps{Clock: clock.System, Zone: time.UTC, Log: slog.New(slog.DiscardHandler),
			Registry: prometheus.NewRegistry(), Egress: egress.New(egress.Config{}), InFlight: 1, PublicURL: url})
		header := func(routes *chi.Mux, path string) string {
			w := httptest.NewRecorder()
			routes.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			return w.Header().Get("Strict-Transport-Security")
		}
		for _, path := range []string{"/forgot-password/", "/api/v1/openapi.yaml", "/api/v1/nothing", "/nothing", "/%00"} {
			check.Equal(t, "the header", header(apis.Public, path), want, "%s at %s", path, url)
		}
		check.Equal(t, "the header", header(apis.Platform, "/platform/v1/openapi.yaml"), "", "of the private port, which has no https, at %s", url)
	}
}
