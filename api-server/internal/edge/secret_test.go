package edge

import (
	"bytes"
	"log/slog"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// What is secret in a path is in no log line, whatever becomes of the request.
func TestASecretInAPathIsNotLogged(t *testing.T) {
	const token = "Zm9vYmFyYmF6"
	b := &bench{reg: prometheus.NewRegistry()}
	b.Mux = NewRouter(Options{API: "test", Metrics: NewMetrics(b.reg), Log: slog.New(slog.NewJSONHandler(&b.log, nil)), InFlight: 1,
		Secret: []string{"/set-password/"}})
	inside, release := make(chan struct{}), make(chan struct{})
	b.Get("/slow", func(http.ResponseWriter, *http.Request) { close(inside); <-release })
	b.Get("/set-password/{token}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/set-password/" + token, 200},
		{"GET", "/set-password/" + token + "/", 200},
		{"OPTIONS", "/set-password/" + token, 405},
		{"PUT", "/set-password/" + token, 405},
		{"GET", "/set-password/" + token + "//", 404},
		{"GET", "/set-password//" + token, 404},
		{"GET", "//set-password/" + token, 404},
		{"GET", "/Set-Password/" + token, 404},
		{"GET", "/set-password%2F" + token, 404},
		{"GET", "/set%2Dpassword/x/" + token, 404},
		{"GET", "/set-password/" + token + "%00", 404},
	} {
		b.log.Reset()
		if w := b.call(t, c.method, c.target, ""); check.Equal(t, "w.Code", w.Code, c.status, "%s %s: %d %s, want %d", c.method, c.target, w.Code, w.Body, c.status) {
			check.Lacks(t, "the answer", w.Body.String(), token, "%s %s: %d %s, want %d", c.method, c.target, w.Code, w.Body, c.status)
		}
		b.wantNoSecret(t, c.method+" "+c.target, token)
	}
	done := make(chan struct{})
	go func() { defer close(done); b.call(t, "GET", "/slow", "") }()
	<-inside
	b.log.Reset()
	if w := b.call(t, "GET", "/set-password/"+token, ""); w.Code != 503 {
		t.Errorf("%d, want a refusal", w.Code)
	}
	b.wantNoSecret(t, "a refusal", token)
	close(release)
	<-done
	b.log.Reset()
	b.call(t, "GET", "/elsewhere/"+token, "")
	if !bytes.Contains(b.log.Bytes(), []byte("/elsewhere/"+token)) {
		t.Errorf("other paths are not logged: %s", b.log.String())
	}
}

func (b *bench) wantNoSecret(t *testing.T, what, token string) {
	t.Helper()
	if line := b.logLine(t); check.Lacks(t, "the log", b.log.String(), token, "%s: %s", what, b.log.String()) {
		check.Equal(t, "path", line["path"], "/set-password/{secret}", "%s: %s", what, b.log.String())
	}
}
