package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
)

var provisionCases = []benchCase{
	{"provision", "16 clients that provision new students, one course each, beside pgbench with the same SQL", onHouse(provisioning)},
}

// clients are as many as call at once.
const clients = 16

// provisioning measures the api-server by itself: the mails and webhooks that the calls owe
// wait in PostgreSQL until the end, because pgbench has nobody to send them either.
func provisioning(ctx context.Context, r *run, h *house) error {
	p, err := h.partner(ctx, "bench")
	if err != nil {
		return err
	}
	if err := errors.Join(h.worker.Stop(), h.sender.Stop()); err != nil {
		return err
	}
	lasting := r.lasting(12 * time.Second)
	if _, err := load(ctx, clients, lasting/6, p.create); err != nil { // connections, plans and the default course
		return err
	}
	profile := h.profiles(ctx, r, lasting)
	before := h.cpu()
	created, err := load(ctx, clients, lasting, p.create)
	if err != nil {
		return err
	}
	profile()
	r.printf("  %-34s %s", "CPU time of a creation", h.cpu().since(before, len(created.times)))
	before = h.cpu()
	repeated, err := load(ctx, clients, lasting, p.repeat)
	if err != nil {
		return err
	}
	r.printf("  %-34s %s", "CPU time of a repeat", h.cpu().since(before, len(repeated.times)))
	rss := peakRSS(h.api.Identity().PID)
	if err := h.printStatements(ctx, r); err != nil {
		return err
	}
	bare, err := h.pgbench(ctx, p.key, lasting)
	if err != nil {
		return err
	}
	again, err := load(ctx, clients, lasting, p.create)
	if err != nil {
		return err
	}
	rate := (created.rate() + again.rate()) / 2 // around pgbench, as the data grows
	r.step("creation of a student", created.times, created.rate())
	r.step("creation of a student, after pgbench", again.times, again.rate())
	r.step("repeat: already provisioned", repeated.times, repeated.rate())
	r.draw(chart.Rows{Title: "Calls a second of 16 clients", Unit: "/s", Rows: []chart.Row{bar("creations", rate, 0.6*bare, chart.Blue),
		bar("pgbench with the same SQL", bare, 0, chart.Grey), bar("repeats", repeated.rate(), 2*rate, chart.Blue)}})
	r.verdict("creations", rate >= 0.6*bare, "at least 60 % of pgbench's with the same SQL", "%.0f/s, pgbench %.0f/s: %.0f %%", rate, bare, 100*rate/bare)
	r.verdict("repeats", repeated.rate() >= 2*rate, "at least twice the creations", "%.0f/s: %.1f times", repeated.rate(), repeated.rate()/rate)
	r.verdict("peak memory of api-server", rss < 150<<20, "below 150 MiB", "%d MiB", rss>>20)
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

// partner makes an organization with a key.
func (h *house) partner(ctx context.Context, slug string) (*partner, error) {
	if _, err := h.organization(ctx, slug); err != nil {
		return nil, err
	}
	var made struct{ Key string }
	err := h.settings.Platform(ctx, http.MethodPost, "organizations/"+slug+"/api-keys", `{"name": "Bench", "access": "full"}`, &made)
	return &partner{house: h, key: made.Key}, err
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
	r := request{http.MethodPost, address, "/api/v1/provision/student/", partnerKey(p.key), studentBody(strconv.FormatInt(n, 10))}
	return p.lines.send(ctx, r, func(status int, body []byte) error {
		if status != want {
			return fmt.Errorf("student %d: %d %s", n, status, body)
		}
		return nil
	})
}

// load lets each of so many clients call again as soon as it was answered, until the time is over.
func load(ctx context.Context, clients int, lasting time.Duration, call func(context.Context) error) (measured, error) {
	began := time.Now()
	var mu sync.Mutex
	var m measured
	var failed error
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			var own times
			var err error
			for err == nil && time.Since(began) < lasting {
				at := time.Now()
				if err = call(ctx); err == nil {
					own = append(own, time.Since(at))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			m.times = append(m.times, own...)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	m.took, m.times = time.Since(began), sorted(m.times)
	return m, failed
}
