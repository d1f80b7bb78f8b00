package obs

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check asks a dependency whether it answers.
type Check struct {
	Name  string
	Probe func(context.Context) error
	// Optional dependencies are reported, but the program is ready without them.
	Optional bool
}

// Seldom is a probe that does not ask again for a while after a good answer.
func Seldom(rest time.Duration, probe func(context.Context) error) func(context.Context) error {
	var mu sync.Mutex
	var good time.Time
	return func(ctx context.Context) error {
		mu.Lock()
		known := !good.IsZero() && time.Since(good) < rest
		mu.Unlock()
		if known {
			return nil
		}
		err := probe(ctx)
		if err == nil {
			mu.Lock()
			good = time.Now()
			mu.Unlock()
		}
		return err
	}
}

// probeTime is how long a dependency may take to answer a check.
const probeTime = 2 * time.Second

// Private is the HTTP handler of a program's private port: /healthz, /readyz and /metrics.
// The port must not be reachable from outside.
type Private struct {
	mux      *http.ServeMux
	checks   []Check
	draining atomic.Bool
}

// NewPrivate makes the handler. Anything else that belongs on the private port is added
// with Handle.
func NewPrivate(reg *prometheus.Registry, checks ...Check) *Private {
	p := &Private{mux: http.NewServeMux(), checks: checks}
	p.mux.HandleFunc("GET /healthz", p.healthz)
	p.mux.HandleFunc("GET /readyz", p.readyz)
	p.mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	return p
}

// Profiles adds /debug/pprof/, if it is on. Profiles show how the program works and cost CPU while they
// are taken.
func (p *Private) Profiles(on bool) {
	if !on {
		return
	}
	p.mux.HandleFunc("/debug/pprof/", pprof.Index)
	p.mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	p.mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	p.mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	p.mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}

// Handle adds a handler, with a pattern of http.ServeMux.
func (p *Private) Handle(pattern string, h http.Handler) { p.mux.Handle(pattern, h) }

// Drain makes /readyz answer 503 from now on, so that no new work is sent here.
func (p *Private) Drain() { p.draining.Store(true) }

// ServeHTTP implements http.Handler.
func (p *Private) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// healthz says that the process runs; it asks nobody, so that a dependency's outage
// never restarts the programs.
func (p *Private) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// report is the body of /readyz. Status is ready, degraded (an optional dependency is
// away), unavailable or draining.
type report struct {
	Status string        `json:"status"`
	Checks []checkReport `json:"checks"`
}

type checkReport struct {
	Name         string  `json:"name"`
	OK           bool    `json:"ok"`
	Optional     bool    `json:"optional,omitempty"`
	Error        string  `json:"error,omitempty"`
	Milliseconds float64 `json:"ms"`
}

func (p *Private) readyz(w http.ResponseWriter, r *http.Request) {
	rep := report{Status: "ready", Checks: probe(r.Context(), p.checks)}
	status := http.StatusOK
	for _, c := range rep.Checks {
		switch {
		case c.OK || rep.Status == "unavailable":
		case c.Optional:
			rep.Status = "degraded"
		default:
			rep.Status, status = "unavailable", http.StatusServiceUnavailable
		}
	}
	if p.draining.Load() {
		rep.Status, status = "draining", http.StatusServiceUnavailable
	}
	writeJSON(w, status, rep)
}

// probe runs all checks side by side. One that ignores its context is reported failed
// all the same.
func probe(ctx context.Context, checks []Check) []checkReport {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	out := make([]checkReport, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			began := time.Now()
			err := ask(ctx, c)
			out[i] = checkReport{Name: c.Name, OK: err == nil, Optional: c.Optional,
				Milliseconds: float64(time.Since(began).Microseconds()) / 1000}
			if err != nil {
				out[i].Error = err.Error()
			}
		})
	}
	wg.Wait()
	return out
}

func ask(ctx context.Context, c Check) error {
	answer := make(chan error, 1)
	go func() { answer <- c.Probe(ctx) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
