package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
)

// Neither port logs what stands behind a secret path, and every route with a token has one.
func TestSecretPathsAreOnBothPorts(t *testing.T) {
	var log bytes.Buffer
	apis := server.New(server.Deps{Clock: clock.System, Zone: time.UTC, Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Registry: prometheus.NewRegistry(), Egress: egress.New(egress.Config{}), InFlight: 1})
	for _, port := range []*chi.Mux{apis.Public, apis.Platform} {
		for _, prefix := range pages.SecretPaths {
			port.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodOptions, prefix+"c2VjcmV0//", nil))
		}
		err := chi.Walk(port, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			before, _, has := strings.Cut(route, "{token}")
			if has {
				secret := slices.ContainsFunc(pages.SecretPaths, func(path string) bool { return strings.Contains(before, path) }) // which hides all that follows
				check.True(t, "the token is behind a secret path", secret, "%s %s, want %s", method, route, pages.SecretPaths)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if text := log.String(); check.True(t, "both ports hide the secret", strings.Count(text, "{secret}") >= 2, "%s", text) {
		check.Lacks(t, "the text", text, "c2VjcmV0", "%s", text)
	}
}
