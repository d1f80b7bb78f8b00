package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// bench is a router with its log and metrics.
type bench struct {
	*chi.Mux
	log bytes.Buffer
	reg *prometheus.Registry
}

func newBench(inFlight int) *bench {
	b := &bench{reg: prometheus.NewRegistry()}
	b.Mux = NewRouter(Options{API: "test", Metrics: NewMetrics(b.reg), Log: slog.New(slog.NewJSONHandler(&b.log, nil)), InFlight: inFlight})
	return b
}

func (b *bench) call(t *testing.T, method, target, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func (b *bench) logLine(t *testing.T) map[string]any {
	t.Helper()
	var line map[string]any
	if err := json.Unmarshal(b.log.Bytes(), &line); err != nil {
		t.Fatalf("%v in %s", err, b.log.String())
	}
	return line
}

// Reference: errors#statuses.
func TestEveryKindHasItsStatus(t *testing.T) {
	want := map[fault.Kind]int{
		fault.Internal: 500, fault.Invalid: 400, fault.Unauthenticated: 401, fault.Forbidden: 403,
		fault.NotFound: 404, fault.Conflict: 409, fault.TooLarge: 413, fault.Unavailable: 503,
	}
	for _, kind := range fault.Kinds() {
		b := newBench(1)
		b.Get("/x", Handle(func(http.ResponseWriter, *http.Request) error {
			return fmt.Errorf("outer: %w", fault.New(kind, "the_code", "the text").Because(errors.New("the cause")))
		}))
		w := b.call(t, "GET", "/x", "")
		if w.Code != want[kind] {
			t.Errorf("%v: %d, want %d", kind, w.Code, want[kind])
		}
		body := w.Body.String()
		check.Lacks(t, "the answer", body, "the cause", "%v", kind)
		shown := `{"status":"error","error":"the text","code":"the_code"}` + "\n"
		if kind == fault.Invalid { // lists its faults, also a single one
			shown = `{"status":"error","error":"the text","code":"the_code","errors":[{"error":"the text","code":"the_code"}]}` + "\n"
		}
		if kind == fault.Internal { // shows nothing of itself
			check.Lacks(t, "the answer", body, "the_code", "%v", kind)
		} else {
			check.Equal(t, "the answer", body, shown, "%v", kind)
		}
		if got, is := w.Header().Get("Retry-After") != "", kind == fault.Unavailable; got != is {
			t.Errorf("%v: Retry-After %q", kind, w.Header().Get("Retry-After"))
		}
		if line := b.logLine(t); check.Equal(t, "kind", line["kind"], any(kind.String()), "%v: log %v", kind, line) {
			check.Contains(t, "error", fmt.Sprint(line["error"]), "the cause", "%v: log %v", kind, line)
		}
	}
}

// Reference: errors#error-body.
func TestAllFaultsOfARequestAreShown(t *testing.T) {
	b := newBench(1)
	b.Get("/x", Handle(func(http.ResponseWriter, *http.Request) error {
		var l fault.List
		_ = l.Add(fault.Field("a", "one", "a: first"))
		_ = l.Add(fault.Field("b", "two", "b: second"))
		return l.Err()
	}))
	want := `{"status":"error","error":"a: first","code":"one","field":"a","errors":[` +
		`{"error":"a: first","code":"one","field":"a"},{"error":"b: second","code":"two","field":"b"}]}` + "\n"
	if got := b.call(t, "GET", "/x", "").Body.String(); got != want {
		t.Fatalf("%s", got)
	}
}

func TestErrorsThatAreNoFaults(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"a plain error":                 {errors.New("boom"), 500, "internal"},
		"PostgreSQL cannot read a text": {&pgconn.PgError{Code: "22021"}, 400, "invalid"},
		"PostgreSQL shuts down":         {&pgconn.PgError{Code: "57P01"}, 503, "unavailable"},
		"a broken constraint":           {&pgconn.PgError{Code: "23505"}, 500, "internal"},
	} {
		b := newBench(1)
		b.Get("/x", Handle(func(http.ResponseWriter, *http.Request) error { return c.err }))
		w := b.call(t, "GET", "/x", "")
		var body errorBody
		if err := json.Unmarshal(w.Body.Bytes(), &body); check.NoError(t, err, "%s: %d %s", name, w.Code, w.Body) &&
			check.Equal(t, "w.Code", w.Code, c.status, "%s: %d %s", name, w.Code, w.Body) {
			check.Equal(t, "body.Code", body.Code, c.code, "%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestAClientThatLeftIsNoFailure(t *testing.T) {
	b := newBench(1)
	ctx, cancel := context.WithCancel(t.Context())
	b.Get("/x", Handle(func(_ http.ResponseWriter, r *http.Request) error { cancel(); return r.Context().Err() }))
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/x", nil))
	if line := b.logLine(t); check.Equal(check.Now(t), "status", line["status"], 499.0, "%v", line) {
		check.Equal(check.Now(t), "level", line["level"], "INFO", "%v", line)
	}
}

func TestAPanicIsAnAnswerAndALogLine(t *testing.T) {
	b := newBench(1)
	b.Get("/x", func(http.ResponseWriter, *http.Request) { panic("secret detail") })
	for range 2 { // the second shows that the first gave its place back
		b.log.Reset()
		w := b.call(t, "GET", "/x", "")
		check.Equal(check.Now(t), "w.Code", w.Code, 500, "%d %s", w.Code, w.Body)
		check.Lacks(check.Now(t), "the answer", w.Body.String(), "secret", "%d %s", w.Code, w.Body)
	}
	if line := b.logLine(t); check.Equal(check.Now(t), "level", line["level"], "ERROR", "%v", line) &&
		check.Equal(check.Now(t), "error", line["error"], "panic: secret detail", "%v", line) {
		check.Contains(check.Now(t), "stack", line["stack"].(string), "edge_test.go", "%v", line)
	}
}

func TestRequestIDs(t *testing.T) {
	b := newBench(1)
	b.Get("/x", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
	for sent, kept := range map[string]bool{"abc-1:2.3_4": true, "": false, "with space": false, strings.Repeat("x", 129): false, "a\tb": false} {
		got := b.call(t, "GET", "/x", "", "X-Request-Id", sent).Header().Get("X-Request-Id")
		check.True(t, "the answer has an id", got != "", "sent %q", sent)
		check.Equal(t, "the id is the one that was sent", got == sent, kept, "sent %q, got %q", sent, got)
	}
	if b.call(t, "GET", "/nowhere", "").Header().Get("X-Request-Id") == "" {
		t.Error("a 404 has no id")
	}
}

func TestOverloadIsRefusedAndCounted(t *testing.T) {
	b := newBench(1)
	inside, release := make(chan struct{}), make(chan struct{})
	b.Get("/slow", func(http.ResponseWriter, *http.Request) { close(inside); <-release })
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/slow", nil))
	}()
	<-inside
	w := b.call(t, "GET", "/slow", "")
	check.Equal(check.Now(t), "w.Code", w.Code, 503, "%d %v %s", w.Code, w.Header(), w.Body)
	check.True(check.Now(t), "there is a Retry-After", w.Header().Get("Retry-After") != "", "%d %v %s", w.Code, w.Header(), w.Body)
	check.Contains(check.Now(t), "the answer", w.Body.String(), "overloaded", "%d %v %s", w.Code, w.Header(), w.Body)
	close(release)
	<-done
	b.wantRefusals(t, map[string]float64{"replica": 1})
}

func TestMetricsNameTheRouteAndNotThePath(t *testing.T) {
	b := newBench(1)
	b.Route("/v1", func(r chi.Router) {
		r.Get("/things/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	})
	for _, target := range []string{"/v1/things/1", "/v1/things/2/", "/v1/nothing", "/nothing"} {
		b.call(t, "GET", target, "")
	}
	b.call(t, "BREW", "/v1/things/1", "")
	expected := `# HELP registrar_http_requests_total HTTP requests answered, by the route's pattern.
# TYPE registrar_http_requests_total counter
registrar_http_requests_total{api="test",method="GET",route="/v1/things/{id}",status="204"} 2
registrar_http_requests_total{api="test",method="GET",route="unmatched",status="404"} 2
registrar_http_requests_total{api="test",method="other",route="unmatched",status="405"} 1
`
	if err := testutil.GatherAndCompare(b.reg, strings.NewReader(expected), "registrar_http_requests_total"); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(b.reg, "registrar_http_request_duration_seconds"); check.NoError(check.Now(t), err, "%d histograms, %v", n, err) {
		check.Equal(check.Now(t), "n", n, 3, "%d histograms, %v", n, err)
	}
}

func TestPathsAndParameters(t *testing.T) {
	b := newBench(1)
	b.Route("/v1", func(r chi.Router) {
		r.Get("/people/{email}", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, Param(r, "email")) })
		r.Put("/people/{email}", func(http.ResponseWriter, *http.Request) {})
	})
	for target, want := range map[string]string{
		"/v1/people/a@b.c":      "a@b.c",
		"/v1/people/a@b.c/":     "a@b.c",
		"/v1/people/a%40b.c":    "a@b.c",
		"/v1/people/a%2Fb%25.c": "a/b%.c",
		"/v1/people/a%2540b.c":  "a%40b.c",
	} {
		if w := b.call(t, "GET", target, ""); check.Equal(t, "w.Code", w.Code, 200, "%s: %d %s, want %s", target, w.Code, w.Body, want) {
			check.Equal(t, "the answer", w.Body.String(), want, "%s: %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
	w := b.call(t, "DELETE", "/v1/people/x/", "")
	if got := w.Header().Get("Allow"); check.Equal(t, "w.Code", w.Code, 405, "%d Allow %q", w.Code, got) {
		check.Equal(t, "got", got, "GET, HEAD, PUT", "%d Allow %q", w.Code, got)
	}
}

func TestIDParamIsAPositiveNumber(t *testing.T) {
	b := newBench(1)
	b.Get("/{id}", Handle(func(w http.ResponseWriter, r *http.Request) error {
		n, err := IDParam[int64](r, "id")
		if err != nil {
			return err
		}
		return JSON(w, 200, n)
	}))
	for target, want := range map[string]int{"/7": 200, "/0": 404, "/-1": 404, "/x": 404, "/99999999999999999999": 404} {
		if w := b.call(t, "GET", target, ""); w.Code != want {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{"Bearer x": "x", "bearer  x ": "x", "Basic x": "", "": "", "Bearer": "", "x": ""} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header.Set("Authorization", header)
		if got := Bearer(r); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}
