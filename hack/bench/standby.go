package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

var standbyCases = []benchCase{
	{"reading-standby", "pages of 100 students and look-ups, read from the primary and from a standby, alone and beside calls that write", onHouse(readingStandby)},
}

// readingStandby measures what a standby takes from the primary. Both share the machine's cores, so it is no faster.
func readingStandby(ctx context.Context, r *run, h *house) error {
	standby, err := h.startStandby(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = standby.Stop() }()
	p, err := h.partner(ctx, "bench")
	if err != nil {
		return err
	}
	if err := errors.Join(h.worker.Stop(), h.sender.Stop()); err != nil {
		return err
	}
	lasting := r.lasting(10 * time.Second)
	if _, err := load(ctx, clients, lasting, p.create); err != nil {
		return err
	}
	c, err := h.reader(ctx, "bench")
	if err != nil {
		return err
	}
	cost := map[bool]time.Duration{} // of the primary, for a page
	for _, led := range []bool{false, true} {
		if led {
			if err := h.readFrom(ctx, standby); err != nil {
				return err
			}
			p.lines.idle = nil // they led to the program that was stopped
		}
		where := map[bool]string{false: "the primary", true: "the standby"}[led]
		for _, path := range []string{"students/?limit=100", "students/?email=student-1@bench-school.org"} {
			read := func(ctx context.Context) error {
				_, _, err := c.get(ctx, path)
				return err
			}
			if _, err := load(ctx, clients, lasting/4, read); err != nil { // connections and plans
				return err
			}
			before, beforeStandby := h.cpu(), familyTime(standby.Identity().PID)
			m, err := load(ctx, clients, lasting, read)
			if err != nil {
				return err
			}
			after, n := h.cpu(), len(m.times)
			r.step(path+", "+where, m.times, m.rate())
			r.printf("  CPU a call: %s; standby %d µs", after.since(before, n), ((familyTime(standby.Identity().PID) - beforeStandby) / time.Duration(n)).Microseconds())
			if path == "students/?limit=100" {
				cost[led] = (after["postgres"] - before["postgres"]) / time.Duration(n)
			}
		}
		writers := make(chan error, 1)
		go func() {
			_, err := load(ctx, clients/2, lasting, p.create)
			writers <- err
		}()
		m, err := load(ctx, clients/2, lasting, func(ctx context.Context) error {
			_, _, err := c.get(ctx, "students/?limit=100")
			return err
		})
		if err := errors.Join(err, <-writers); err != nil {
			return err
		}
		r.step("a page beside 8 clients that write, "+where, m.times, m.rate())
	}
	share := float64(cost[true]) / float64(cost[false])
	r.verdict("a page's cost to the primary", share <= 0.5, "at most half of what it costs there without a standby", "%s of %s: %.2f", round(cost[true]), round(cost[false]), share)
	return nil
}

// startStandby has the house's server replicate to another one.
func (h *house) startStandby(ctx context.Context) (*stack.Postgres, error) {
	err := h.superuser(ctx, "postgres", `ALTER SYSTEM SET wal_level = replica`, `ALTER SYSTEM SET max_wal_senders = 10`)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(h.Postgres.Stop(), h.Postgres.Start(ctx)); err != nil {
		return nil, err
	}
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	user, err := stack.ServiceUser()
	if err != nil {
		return nil, err
	}
	port, err := stack.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	return stack.StartStandby(ctx, h.Postgres, stack.PostgresOptions{Bin: tools.PostgresBin, User: user, Port: port, Durable: true, Settings: logSettings,
		Dir: filepath.Join(h.Dir, "standby"), LogFile: filepath.Join(h.Dir, "standby.log")})
}

// readFrom starts api-server again, which reads from the standby from then on.
func (h *house) readFrom(ctx context.Context, standby *stack.Postgres) error {
	if err := h.api.Stop(); err != nil {
		return err
	}
	address, err := url.Parse(h.settings.ProgramURL("api-server"))
	if err != nil {
		return err
	}
	address.Host = standby.Address()
	h.settings.Extra = append(h.settings.Extra, "DATABASE_READ_URL="+address.String())
	h.api = h.settings.APIServer()
	return stack.StartReady(ctx, h.api, h.settings.Ports.APIPrivate)
}
