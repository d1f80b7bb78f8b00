package obs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLogLinesCarryTheRequestAndTheTrace(t *testing.T) {
	var out bytes.Buffer
	log := Logger(&out, "warn", "api-server").With("a", 1)
	log.InfoContext(t.Context(), "not shown")
	ctx := propagator.Extract(t.Context(), propagation.MapCarrier{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	log.WarnContext(WithRequestID(ctx, "req_1"), "shown")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	check.Equal(check.Now(t), "request_id", line["request_id"], "req_1", "%v", line)
	check.Equal(check.Now(t), "trace_id", line["trace_id"], "0af7651916cd43dd8448eb211c80319c", "%v", line)
	check.Equal(check.Now(t), "span_id", line["span_id"], "b7ad6b7169203331", "%v", line)
	check.Equal(check.Now(t), "program", line["program"], "api-server", "%v", line)
	check.Equal(check.Now(t), "msg", line["msg"], "shown", "%v", line)
	check.Equal(check.Now(t), "the attribute", line["a"], 1.0, "%v", line)
}

func TestUnknownLevelLogsFromInfoOn(t *testing.T) {
	var out bytes.Buffer
	log := Logger(&out, "loud", "worker")
	check.True(check.Now(t), "INFO is logged", log.Enabled(t.Context(), slog.LevelInfo), "%s", out.String())
	check.False(check.Now(t), "DEBUG is logged", log.Enabled(t.Context(), slog.LevelDebug), "%s", out.String())
	check.Contains(check.Now(t), "the output", out.String(), "LOG_LEVEL", "%s", out.String())
}

func ready(t *testing.T, p *Private) (int, report) {
	t.Helper()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
	var rep report
	if err := json.Unmarshal(w.Body.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	return w.Code, rep
}

func TestReadyzReportsEachDependency(t *testing.T) {
	good := Check{Name: "postgresql", Probe: func(context.Context) error { return nil }}
	bad := func(context.Context) error { return errors.New("refused") }
	for _, c := range []struct {
		name   string
		checks []Check
		code   int
		status string
	}{
		{"all well", []Check{good}, 200, "ready"},
		{"optional away", []Check{good, {Name: "redis", Probe: bad, Optional: true}}, 200, "degraded"},
		{"required away", []Check{{Name: "postgresql", Probe: bad}, {Name: "redis", Probe: bad, Optional: true}}, 503, "unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, rep := ready(t, NewPrivate(NewRegistry(), c.checks...))
			check.Equal(check.Now(t), "code", code, c.code, "%d %+v", code, rep)
			check.Equal(check.Now(t), "rep.Status", rep.Status, c.status, "%d %+v", code, rep)
			check.Equal(check.Now(t), "number of checks", len(rep.Checks), len(c.checks), "%d %+v", code, rep)
			for i, got := range rep.Checks {
				check.Equal(t, "name", got.Name, c.checks[i].Name, "%+v", got)
				check.Equal(t, "it has no error", got.Error == "", got.OK, "%+v", got)
			}
		})
	}
}

func TestReadyzGivesUpOnASilentDependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		deaf := Check{Name: "deaf", Probe: func(context.Context) error { <-release; return nil }}
		began := time.Now()
		code, rep := ready(t, NewPrivate(NewRegistry(), deaf, deaf))
		check.Equal(check.Now(t), "code", code, 503, "%d %+v after %s", code, rep, time.Since(began))
		check.Equal(check.Now(t), "the second check's error", rep.Checks[1].Error, context.DeadlineExceeded.Error(), "%d %+v after %s", code, rep, time.Since(began))
		check.Equal(check.Now(t), "time that it took", time.Since(began), probeTime, "%d %+v after %s", code, rep, time.Since(began))
	})
}

func TestAGoodAnswerIsRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, answer := 0, errors.New("away")
		probe := Seldom(time.Minute, func(context.Context) error { asked++; return answer })
		for range 3 {
			if err := probe(t.Context()); !errors.Is(err, answer) {
				t.Fatalf("%v", err)
			}
		}
		answer = nil
		for range 3 {
			if err := probe(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if asked != 4 {
			t.Fatalf("asked %d times, want 3 times for bad answers and once for a good one", asked)
		}
		<-time.After(time.Minute)
		answer = errors.New("away again")
		if err := probe(t.Context()); !errors.Is(err, answer) {
			t.Fatalf("after a minute: %v", err)
		}
	})
}

func TestDrainingIsNotReady(t *testing.T) {
	p := NewPrivate(NewRegistry())
	p.Drain()
	if code, rep := ready(t, p); check.Equal(check.Now(t), "code", code, 503, "%d %+v", code, rep) {
		check.Equal(check.Now(t), "rep.Status", rep.Status, "draining", "%d %+v", code, rep)
	}
}

func TestProfilesAreOffUnlessAskedFor(t *testing.T) {
	p := NewPrivate(NewRegistry())
	p.Profiles(false)
	for _, path := range []string{"", "heap", "cmdline", "profile", "symbol", "trace"} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/debug/pprof/"+path, nil))
		check.Equal(t, "status", w.Code, 404, "/debug/pprof/%s", path)
	}
}

func TestPrivatePortServesMetricsProfilesAndMore(t *testing.T) {
	p := NewPrivate(NewRegistry())
	p.Profiles(true)
	p.Handle("/extra/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "extra") }))
	for path, want := range map[string]string{
		"/healthz": `"ok"`, "/metrics": "go_build_info", "/debug/pprof/cmdline": "obs", "/extra/x": "extra",
	} {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if check.Equal(t, "w.Code", w.Code, 200, "%s: %d %.100s", path, w.Code, w.Body) {
			check.Contains(t, "the answer", w.Body.String(), want, "%s: %d %.100s", path, w.Code, w.Body)
		}
	}
}

func TestServeFinishesTheRequestInHand(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inside, release := make(chan struct{}), make(chan struct{})
	s := NewServer(l.Addr().String(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-release
		if r.Context().Err() != nil {
			w.WriteHeader(500)
		}
		_, _ = io.WriteString(w, "done")
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveOn(ctx, []*http.Server{s}, []net.Listener{l}) }()
	answer := make(chan string, 1)
	go func() { answer <- get("http://" + l.Addr().String()) }()
	<-inside
	cancel()
	select {
	case err := <-ended:
		t.Fatalf("ended with a request in hand: %v", err)
	default:
	}
	close(release)
	if got := <-answer; got != "200 done" {
		t.Fatalf("answer = %q", got)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func get(url string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(res.Body)
	return res.Status[:4] + string(body)
}

func TestRunEndsEverythingWhenOnePieceFails(t *testing.T) {
	boom := errors.New("boom")
	p := NewPrivate(NewRegistry())
	err := Run(t.Context(), p, "127.0.0.1:0",
		func(ctx context.Context) error { <-ctx.Done(); return nil },
		func(context.Context) error { return boom })
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if code, _ := ready(t, p); code != 503 {
		t.Fatal("not draining")
	}
}

func TestListenSaysWhichAddressIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	addr := l.Addr().String()
	if _, err := Listen(t.Context(), NewServer("127.0.0.1:0", nil), NewServer(addr, nil)); check.True(check.Now(t), "there is an error", err != nil, "err = %v", err) {
		check.Contains(check.Now(t), "the error", err.Error(), addr, "err = %v", err)
	}
}
