package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

// schools are the organizations with a part of their own: the first two are neighbours, students of the third come
// from files, and those of the fourth from an LMS, which wants their marks.
var schools = []string{"alpha", "beta", "gamma", "delta"}

const rosterSchool, lmsSchool = "gamma", "delta"

const (
	watched = 6  // organizations whose lists and feed are followed
	distant = 20 // organizations with a URL behind the slow network, and one that fails three times in ten
)

// load is everyone who calls.
type load struct {
	site    *site
	options options
	report  *report
	journal *journal
	orgs    []string
	keys    map[string]string
	items   []int64 // tests that can be assigned
	clients []*partner
	files   *registrar
	readers []*reader
	lms     *lms
	years   *years

	neighbours *neighbours

	gate  sync.RWMutex // held by those whose calls a restore may lose, for the length of a step
	still sync.RWMutex // by those who pause for a restore

	over, shut  atomic.Bool
	calls, read sync.WaitGroup
}

func newLoad(ctx context.Context, s *site, o options, r *report) (*load, error) {
	j, err := openJournal(filepath.Join(s.dir, "accepted.jsonl"))
	if err != nil {
		return nil, err
	}
	l := &load{site: s, options: o, report: r, journal: j, keys: map[string]string{}, orgs: slices.Clone(schools)}
	for n := len(l.orgs); n < o.organizations; n++ {
		l.orgs = append(l.orgs, fmt.Sprintf("school-%d", n+1))
	}
	return l, l.seed(ctx)
}

func (l *load) caller(n uint64) *caller {
	return &caller{site: l.site, report: l.report, keys: l.keys, rand: rand.New(rand.NewPCG(l.options.seed, 100+n))}
}

// seed makes the organizations with keys, tests and URLs, good and bad.
func (l *load) seed(ctx context.Context) error {
	c := l.caller(0)
	for n, org := range l.orgs {
		if err := l.found(ctx, c, org, n); err != nil {
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
	if err := l.crowd(ctx); err != nil {
		return err
	}
	var err error
	if l.lms, err = newLMS(ctx, l, c); err != nil {
		return err
	}
	l.years, err = newYears(ctx, l, c)
	return err
}

// found makes the n-th organization.
func (l *load) found(ctx context.Context, c *caller, org string, n int) error {
	requests := []request{
		{method: http.MethodPut, path: "organizations/" + org, body: fmt.Sprintf(`{"name": %q, "language_tests_enabled": true}`, org)},
		{method: http.MethodPost, path: "organizations/" + org + "/api-keys", body: `{"name": "Soak", "access": "full"}`},
	}
	if n < len(schools) {
		requests = append(requests,
			request{method: http.MethodPut, path: "organizations/" + org + "/staff/owner@" + org + "-school.org", body: `{"first_name": "Olive", "last_name": "Owner", "role": "owner", "password": "a long pass phrase 7"}`},
			request{method: http.MethodPut, path: "organizations/" + org + "/roster-sources/sis", body: `{"authoritative_enabled": true}`})
	}
	var key struct{ Key string }
	for _, r := range requests {
		var into any
		if r.method == http.MethodPost {
			into = &key
		}
		if _, err := c.ask(ctx, r, into); err != nil {
			return err
		}
	}
	l.keys[org] = key.Key
	return l.addURLs(ctx, c, org, n)
}

// addURLs gives the n-th organization a healthy URL, some of them one far away and one that fails now and then, the first
// ones some that are not well, and all together those that hang.
func (l *load) addURLs(ctx context.Context, c *caller, org string, n int) error {
	paths := []string{"/healthy"}
	if n < distant {
		paths = append(paths, "/flaky")
	}
	if n < len(schools) {
		paths = append(paths, "/fails", "/drips")
	}
	for i := range 3 {
		if i*len(l.orgs)+n < l.options.hanging {
			paths = append(paths, fmt.Sprintf("/%d/hangs", i))
		}
	}
	for _, path := range paths {
		if err := l.addURL(ctx, c, org, l.site.receiver.URL("/"+org+path), "/"+org+path, l.site.receiver); err != nil {
			return err
		}
	}
	if l.site.distant == nil || n >= distant {
		return nil
	}
	path := "/" + org + "/healthy"
	return l.addURL(ctx, c, org, l.site.distant.URL(path), path, l.site.distant)
}

func (l *load) addURL(ctx context.Context, c *caller, org, address, path string, receiver interface{ Trust(path, secret string) }) error {
	var made struct {
		Secret string `json:"signing_secret"`
	}
	_, err := c.ask(ctx, request{method: http.MethodPost, path: "organizations/" + org + "/webhook-endpoints", body: fmt.Sprintf(`{"url": %q}`, address)}, &made)
	receiver.Trust(path, made.Secret)
	return err
}

// crowd adds the URLs that are missing from the number, ten to an organization in which nothing happens.
func (l *load) crowd(ctx context.Context) error {
	var there int
	if err := l.site.db.QueryRow(ctx, `SELECT count(*) FROM webhook_endpoints`).Scan(&there); err != nil {
		return err
	}
	return stack.AddIdle(ctx, l.site.db, (l.options.urls-there+9)/10)
}

// start lets the clients and the readers go; stop and stopReaders let them come to an end.
func (l *load) start(ctx context.Context) {
	for n := range l.options.clients {
		p := &partner{load: l, call: l.caller(uint64(n) + 1), number: n, model: newModel(), at: map[string]string{}}
		for i, org := range l.orgs {
			if i%l.options.clients == n && org != rosterSchool && org != lmsSchool {
				p.orgs = append(p.orgs, org)
			}
		}
		if len(p.orgs) == 0 {
			p.orgs = schools[:1]
		}
		l.clients = append(l.clients, p)
		l.run(ctx, &l.gate, p.call, p.step)
	}
	l.clients = append(l.clients, l.lms.grader)
	l.run(ctx, &l.gate, l.lms.grader.call, l.lms.step)
	l.neighbours = newNeighbours(l)
	l.run(ctx, &l.still, l.neighbours.first.call, l.neighbours.step)
	l.files = &registrar{load: l, call: l.caller(filesClient), model: newModel()}
	l.run(ctx, &l.gate, l.files.call, l.files.step)
	l.years.start(ctx)
	for n, org := range l.orgs[:min(watched, len(l.orgs))] {
		for i, list := range []string{"results", "students", "assignments", "events"} {
			reader := newReader(l, l.caller(2000+uint64(4*n+i)), org, list)
			l.readers = append(l.readers, reader)
			l.read.Go(func() { reader.follow(ctx) })
		}
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

// run calls step again and again, with a pause between, each time with the lock.
func (l *load) run(ctx context.Context, lock *sync.RWMutex, c *caller, step func(ctx context.Context) error) {
	l.calls.Go(func() {
		for !l.over.Load() {
			lock.RLock()
			err := step(ctx)
			lock.RUnlock()
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				l.report.find("a call: %v", err)
			}
			if pause(ctx, time.Duration(c.rand.Int64N(2*int64(l.options.pause)+1))) != nil {
				return
			}
		}
	})
}

// accepted writes the call down, tells it to the client's own model, and holds the answer against it.
func (l *load) accepted(client int, m *model, o op, a answer) error {
	o.Client, o.At, o.FirstAnswer = client, time.Now().UTC(), a.first
	l.report.accepted(o.Kind)
	want := m.apply(o)
	if o.FirstAnswer && o.said() != want {
		l.report.find("%s of %s%s: the answer says %s, the model %s: %s", o.Kind, o.Org, o.Email, o.said(), want, a.body)
	}
	return l.journal.add(o)
}
