package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/hack/stack"
)

var attackCases = []benchCase{
	{"attacks", "a caller alone and beside senders that hold connections, wrong API keys, and a one-line import beside three of 1,000,000 rows", onHouse(attacks)},
}

func attacks(ctx context.Context, r *run, h *house) error {
	// Each wrong key comes from an address of its own, which only a proxy can say.
	h.api.Env = append(h.api.Env, "TRUSTED_PROXIES=127.0.0.1/32")
	if err := errors.Join(h.api.Stop(), stack.StartReady(ctx, h.api, h.settings.Ports.APIPrivate)); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *run, *house) error{besideSenders, besideGuesses, besideBombs} {
		if err := measure(ctx, r, h); err != nil {
			return err
		}
	}
	return nil
}

// besideSenders measures one caller, who is as fast as its answers come.
func besideSenders(ctx context.Context, r *run, h *house) error {
	p, err := h.partner(ctx, "calm")
	if err != nil {
		return err
	}
	if err := p.create(ctx); err != nil {
		return err
	}
	server := fmt.Sprintf("127.0.0.1:%d", h.settings.Ports.API)
	calls := func() (measured, error) { return load(ctx, 1, r.lasting(15*time.Second), p.calm) }
	if _, err := calls(); err != nil { // connections and plans
		return err
	}
	alone, err := calls()
	if err != nil {
		return err
	}
	r.step("a caller alone", alone.times, 0)
	bound := 2 * alone.times.At(.99)
	rows := []chart.Row{bar("alone", milliseconds(alone.times.At(.99)), 0, chart.Grey)}
	for _, attack := range stack.Attacks {
		for _, crowd := range []struct{ addresses, connections int }{{1, 600}, {200, 4}} {
			end := attack.Begin(ctx, server, crowd.addresses, crowd.connections)
			beside, err := calls()
			end()
			if err != nil {
				return fmt.Errorf("beside %s: %w", attack.Name, err)
			}
			name := fmt.Sprintf("beside %s, %d x %d", attack.Name, crowd.addresses, crowd.connections)
			with := beside.times.At(.99)
			r.step("a caller "+name, beside.times, 0)
			rows = append(rows, bar(name, milliseconds(with), milliseconds(bound), chart.Blue))
			r.verdict("p99 "+name, with <= bound, "at most 2 times its value alone", "%s, %s alone: %.1f times", round(with), round(alone.times.At(.99)),
				float64(with)/float64(alone.times.At(.99)))
		}
	}
	r.draw(chart.Rows{Title: "A caller's p99 beside other addresses x connections", Unit: "ms", Rows: rows})
	return nil
}

// calm is a call of the API or of a page, which has to be served.
func (p *partner) calm(ctx context.Context) error {
	if p.repeats.Load()%3 != 0 {
		return p.repeat(ctx)
	}
	p.repeats.Add(1)
	ctx, cancel := context.WithTimeout(ctx, lineTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.settings.PublicURL()+"/sign-in/", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the sign-in page: %s", res.Status)
	}
	return nil
}

// besideGuesses counts the wrong keys that are answered, before and after so many addresses sent some.
func besideGuesses(ctx context.Context, r *run, h *house) error {
	const remembered = 20_000
	server := fmt.Sprintf("127.0.0.1:%d", h.settings.Ports.API)
	var sent atomic.Int64
	var kept lines
	guess := func(ctx context.Context) error {
		n := sent.Add(1)
		from := net.IPv4(10, byte(n>>16), byte(n>>8), byte(n))
		wrong := request{http.MethodPost, server, "/api/v1/provision/student/", partnerKey(fmt.Sprintf("wrong-%d\r\nX-Forwarded-For: %s", n, from)), "{}"}
		return kept.send(ctx, wrong, func(status int, body []byte) error {
			if status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
				return fmt.Errorf("a wrong key: %d %.200s", status, body)
			}
			return nil
		})
	}
	first, err := load(ctx, clients, 2*time.Second, guess)
	if err != nil {
		return err
	}
	for sent.Load() < remembered {
		if _, err := load(ctx, clients, time.Second, guess); err != nil {
			return err
		}
	}
	known := sent.Load()
	then, err := load(ctx, clients, 2*time.Second, guess)
	if err != nil {
		return err
	}
	r.draw(chart.Rows{Title: "Wrong keys answered a second", Unit: "/s", Rows: []chart.Row{bar("the first ones", first.rate(), 0, chart.Grey),
		bar(fmt.Sprintf("after %d", known), then.rate(), 0.8*first.rate(), chart.Blue)}})
	r.verdict("wrong keys answered", then.rate() >= 0.8*first.rate(), fmt.Sprintf("with %d remembered at least 80 %% of the first", remembered),
		"%.0f/s first, %.0f/s after %d", first.rate(), then.rate(), known)
	return nil
}

// besideBombs imports a line while three other organizations import small files of many rows.
func besideBombs(ctx context.Context, r *run, h *house) error {
	rows := r.size(1_000_000)
	bomb, err := zippedPeople(strings.Repeat("s,s@bench-school.org,S,S,student\n", rows))
	if err != nil {
		return err
	}
	p, err := h.partner(ctx, "one-line")
	if err != nil {
		return err
	}
	hostile, end := context.WithCancel(ctx)
	var sending sync.WaitGroup
	defer sending.Wait()
	defer end()
	var sent atomic.Int64
	line := func(n int) (time.Duration, error) {
		file, err := zippedPeople(fmt.Sprintf("one-%d,one-%d@bench-school.org,Asha,Rao,student\n", n, n))
		if err != nil {
			return 0, err
		}
		return h.importRoster(ctx, p.key, file, `"create":1`)
	}
	alone, err := repeat(10, line)
	if err != nil {
		return err
	}
	for i := range 3 {
		other, err := h.partner(ctx, fmt.Sprintf("hostile-%d", i))
		if err != nil {
			return err
		}
		sending.Go(func() {
			for hostile.Err() == nil {
				_, _ = h.importRoster(hostile, other.key, bomb, "") // whatever comes of it
				sent.Add(1)
			}
		})
	}
	if err := sleep(ctx, time.Second); err != nil { // they are under way
		return err
	}
	beside, err := repeat(10, func(n int) (time.Duration, error) { return line(1000 + n) })
	if err != nil {
		return err
	}
	r.step("a one-line import alone", alone, 0)
	r.step("a one-line import beside three hostile ones", beside, 0)
	r.printf("  each hostile file: %d rows in %d KB; %d of them ended meanwhile", rows, len(bomb)/1024, sent.Load())
	r.verdict("a one-line import beside hostile ones", beside.Last() <= 2*time.Second, "at most 2 s", "%s at most, %s alone", round(beside.Last()), round(alone.Last()))
	return nil
}

// zippedPeople is an archive of a people.csv with the lines.
func zippedPeople(lines string) ([]byte, error) {
	return zipped(map[string]*bytes.Buffer{"people.csv": bytes.NewBufferString("person_external_id,email,first_name,last_name,role\n" + lines)})
}
