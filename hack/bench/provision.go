package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var provisionCases = []benchCase{
	{"provision", "16 clients that provision new students, one course each, beside pgbench with the same SQL", provisioning},
}

// clients are as many as call at once.
const clients = 16

// provisioning measures the api-server by itself: the mails and webhooks that the calls owe
// wait in PostgreSQL until the end, because pgbench has nobody to send them either.
func provisioning(ctx context.Context, r *run) (err error) {
	h, err := newHouse(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	if _, err := h.organization(ctx, "bench"); err != nil {
		return err
	}
	var key struct{ Key string }
	if err := h.platform(ctx, http.MethodPost, "organizations/bench/api-keys", `{"name": "Bench", "access": "full"}`, &key); err != nil {
		return err
	}
	if err := errors.Join(h.worker.Stop(), h.sender.Stop()); err != nil {
		return err
	}
	p := &partner{house: h, key: key.Key}
	lasting := r.lasting(12 * time.Second)
	if _, err := p.load(ctx, lasting/6, p.create); err != nil { // connections, plans and the default course
		return err
	}
	profile := h.apiProfile(ctx, r, int(lasting.Seconds()))
	before := h.cpu()
	created, err := p.load(ctx, lasting, p.create)
	if err != nil {
		return err
	}
	profile()
	r.printf("  %-34s %s", "CPU time of a creation", h.cpu().since(before, created.calls))
	before = h.cpu()
	repeated, err := p.load(ctx, lasting, p.repeat)
	if err != nil {
		return err
	}
	r.printf("  %-34s %s", "CPU time of a repeat", h.cpu().since(before, repeated.calls))
	rss := peakRSS(h.api.Identity().PID)
	if err := h.printStatements(ctx, r); err != nil {
		return err
	}
	bare, err := h.pgbench(ctx, p.key, lasting)
	if err != nil {
		return err
	}
	again, err := p.load(ctx, lasting, p.create)
	if err != nil {
		return err
	}
	rate := (created.rate() + again.rate()) / 2 // around pgbench, as the data grows
	r.verdict("creations", rate >= 0.6*bare, "%.0f/s (p99 %s), pgbench with the same SQL %.0f/s: %.0f %% (at least 60 %%)",
		rate, created.p99().Round(100*time.Microsecond), bare, 100*rate/bare)
	r.verdict("repeats", repeated.rate() >= 2*rate, "%.0f/s: %.1f times the creations (at least 2)", repeated.rate(), repeated.rate()/rate)
	r.verdict("peak memory of api-server", rss < 150<<20, "%d MiB (less than 150)", rss>>20)
	return nil
}

// partner calls the partner API.
type partner struct {
	*house
	key     string
	lines   lines
	made    atomic.Int64
	repeats atomic.Int64
}

func (p *partner) create(ctx context.Context) error {
	return p.call(ctx, p.made.Add(1), http.StatusCreated)
}

func (p *partner) repeat(ctx context.Context) error {
	return p.call(ctx, 1+p.repeats.Add(1)%p.made.Load(), http.StatusOK)
}

func studentBody(name string) string {
	return fmt.Sprintf(`{"email": "student-%s@bench-school.org", "first_name": "Asha", "last_name": "Rao", "courses": ["ielts"]}`, name)
}

func (p *partner) call(ctx context.Context, n int64, want int) error {
	address := "127.0.0.1:" + strconv.Itoa(p.settings.Ports.API)
	return p.lines.post(ctx, address, "/api/v1/provision/student/", p.key, studentBody(strconv.FormatInt(n, 10)), func(status int, body []byte) error {
		if status != want {
			return fmt.Errorf("student %d: %d %s", n, status, body)
		}
		return nil
	})
}

// measured is what a load came to.
type measured struct {
	calls int
	took  time.Duration
	times []time.Duration
}

func (m measured) rate() float64 { return float64(m.calls) / m.took.Seconds() }

func (m measured) p99() time.Duration { return percentile(slices.Sorted(slices.Values(m.times)), .99) }

// load lets every client call again as soon as it was answered.
func (p *partner) load(ctx context.Context, lasting time.Duration, call func(context.Context) error) (measured, error) {
	began := time.Now()
	var mu sync.Mutex
	var m measured
	var failed error
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			var times []time.Duration
			var err error
			for err == nil && time.Since(began) < lasting {
				at := time.Now()
				err = call(ctx)
				times = append(times, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			m.times = append(m.times, times...)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	m.calls, m.took = len(m.times), time.Since(began)
	return m, failed
}

// peakRSS is the most memory that a process has held, in bytes; 0 where /proc does not say.
func peakRSS(pid int) int64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	return kib << 10
}

// apiProfile takes a CPU profile of the api-server into the run's folder, when it has one.
func (h *house) apiProfile(ctx context.Context, r *run, seconds int) (wait func()) {
	if r.keep == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if text, err := private(ctx, h.settings.Ports.APIPrivate, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds)); err == nil {
			_ = os.WriteFile(filepath.Join(r.keep, "api-server.cpu"), text, 0o600) // a profile is a by-product
		}
	}()
	return func() { <-done }
}
