package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// The organizations: students of the first two are onboarded one by one, those of the third come
// from files.
var schools = []string{"alpha", "beta", "gamma"}

const rosterSchool = "gamma"

// load is everyone who calls.
type load struct {
	site    *site
	options options
	report  *report
	journal *journal
	keys    map[string]string
	items   []int64 // tests that can be assigned
	readers []*reader

	neighbours *neighbours

	over, shut  atomic.Bool
	calls, read sync.WaitGroup
}

func newLoad(ctx context.Context, s *site, o options, r *report) (*load, error) {
	j, err := openJournal(filepath.Join(s.dir, "accepted.jsonl"))
	if err != nil {
		return nil, err
	}
	l := &load{site: s, options: o, report: r, journal: j, keys: map[string]string{}}
	return l, l.seed(ctx)
}

func (l *load) caller(n uint64) *caller {
	return &caller{site: l.site, report: l.report, keys: l.keys, rand: rand.New(rand.NewPCG(l.options.seed, 100+n))}
}

// seed makes the organizations with keys, tests and URLs, good and bad.
func (l *load) seed(ctx context.Context) error {
	c := l.caller(0)
	for _, org := range schools {
		var key struct{ Key string }
		for _, r := range []request{
			{method: http.MethodPut, path: "organizations/" + org, body: fmt.Sprintf(`{"name": %q, "language_tests_enabled": true}`, org)},
			{method: http.MethodPost, path: "organizations/" + org + "/api-keys", body: `{"name": "Soak", "access": "full"}`},
			{method: http.MethodPut, path: "organizations/" + org + "/staff/owner@" + org + "-school.org", body: `{"first_name": "Olive", "last_name": "Owner", "role": "owner", "password": "a long pass phrase 7"}`},
			{method: http.MethodPut, path: "organizations/" + org + "/roster-sources/sis", body: `{"authoritative_enabled": true}`},
		} {
			var into any
			if r.method == http.MethodPost {
				into = &key
			}
			if _, err := c.ask(ctx, r, into); err != nil {
				return err
			}
		}
		l.keys[org] = key.Key
		if err := l.addURLs(ctx, c, org); err != nil {
			return err
		}
	}
	for n := range 12 {
		var item struct {
			ID int64 `json:"item_id"`
		}
		if _, err := c.ask(ctx, request{method: http.MethodPut, path: fmt.Sprintf("catalog/tests/ielts-%d", n), body: fmt.Sprintf(`{"title": "IELTS %d", "type": "ielts"}`, n)}, &item); err != nil {
			return err
		}
		l.items = append(l.items, item.ID)
	}
	return nil
}

// addURLs gives an organization a healthy URL on each receiver, and some that are not well.
func (l *load) addURLs(ctx context.Context, c *caller, org string) error {
	bases := map[string]interface{ Trust(path, secret string) }{}
	for _, name := range []string{"healthy", "fails", "hangs", "drips"} {
		bases[l.site.receiver.URL("/"+org+"/"+name)] = l.site.receiver
	}
	if l.site.distant != nil {
		bases[l.site.distant.URL("/"+org+"/healthy")] = l.site.distant
	}
	for address, receiver := range bases {
		var made struct {
			Secret string `json:"signing_secret"`
		}
		if _, err := c.ask(ctx, request{method: http.MethodPost, path: "organizations/" + org + "/webhook-endpoints", body: fmt.Sprintf(`{"url": %q}`, address)}, &made); err != nil {
			return err
		}
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		receiver.Trust(u.Path, made.Secret)
	}
	return nil
}

// start lets the clients and the readers go; stop and stopReaders let them come to an end.
func (l *load) start(ctx context.Context) {
	for n := range l.options.clients {
		p := &partner{load: l, call: l.caller(uint64(n) + 1), number: n, org: schools[n%2], model: newModel()}
		l.calls.Go(func() { l.loop(ctx, p.call, p.step) })
	}
	l.neighbours = newNeighbours(l)
	l.calls.Go(func() { l.loop(ctx, l.neighbours.first.call, l.neighbours.step) })
	r := &registrar{load: l, call: l.caller(1000), model: newModel()}
	l.calls.Go(func() { l.loop(ctx, r.call, r.step) })
	for n, org := range schools {
		reader := &reader{load: l, call: l.caller(2000 + uint64(n)), org: org, last: map[string]float64{}}
		l.readers = append(l.readers, reader)
		l.read.Go(func() { reader.follow(ctx) })
	}
}

func (l *load) stop() {
	l.over.Store(true)
	l.calls.Wait()
}

func (l *load) stopReaders() {
	l.shut.Store(true)
	l.read.Wait()
}

func (l *load) loop(ctx context.Context, c *caller, step func(ctx context.Context) error) {
	for !l.over.Load() {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			l.report.find("a call: %v", err)
		}
		if pause(ctx, time.Duration(c.rand.Int64N(2*int64(l.options.pause)+1))) != nil {
			return
		}
	}
}

// accepted writes the call down, tells it to the client's own model, and holds the answer against it.
func (l *load) accepted(m *model, o op, a answer) error {
	o.At, o.FirstAnswer = time.Now().UTC(), a.first
	l.report.accepted(o.Kind)
	want := m.apply(o)
	if o.FirstAnswer && o.said() != want {
		l.report.find("%s of %s%s: the answer says %s, the model %s: %s", o.Kind, o.Org, o.Email, o.said(), want, a.body)
	}
	return l.journal.add(o)
}
