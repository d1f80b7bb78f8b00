package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

var singlyCases = []benchCase{
	{"results-singly", "finished tests, a PUT /test-sessions/{id} each: in one and in 16 organizations, with 4 URLs, and where a commit takes 20 ms", onEngine(4, resultsSingly)},
	{"calls-singly", "routes that are called one by one: one client, 16 clients in one organization, and where a commit takes 20 ms", onEngine(0, callsSingly)},
}

// engine reports finished tests, a call each.
type engine struct {
	*scene
	lines lines
	item  int64
	at    string
	calls atomic.Int64
}

// school is an organization whose students do tests.
type school struct {
	slug  string
	first int64 // the lowest of the students' ids
}

// studentsOfSchool is how many students each school has.
const studentsOfSchool = 2000

func (e *engine) addSchool(ctx context.Context, slug string) (school, error) {
	org, err := e.addOrganization(ctx, slug, "/in/", 0)
	if err != nil {
		return school{}, err
	}
	return e.fill(ctx, org, slug)
}

// fill gives an organization students, and results as one has that is in use: with next to none, the planner
// would not look for a result by its index.
func (e *engine) fill(ctx context.Context, org id.Organization, slug string) (s school, err error) {
	s.slug = slug
	if s.first, err = e.addStudents(ctx, org, studentsOfSchool); err != nil {
		return s, err
	}
	return s, e.settings.Platform(ctx, http.MethodPost, "work", workBody(1000, "before", slug, e.item, e.at, s.user), nil)
}

// user is a random student of the school.
func (s school) user() int64 { return s.first + rand.Int64N(studentsOfSchool) }

// report reports a finished test of a random student of one of the schools.
func (e *engine) report(schools []school) func(context.Context) error {
	address := "127.0.0.1:" + strconv.Itoa(e.settings.Ports.Platform)
	auth := platformKey(e.settings.PlatformKey)
	return func(ctx context.Context) error {
		n := e.calls.Add(1)
		s := schools[rand.IntN(len(schools))]
		body := fmt.Sprintf(`{"organization":%q,"user_id":%d,"item_id":%d,"attempt":"practice","state":"finished","started_at":%q,"completed_at":%q,
			"sections":{"listening":6.5,"reading":7,"writing":6,"speaking":6.5}}`, s.slug, s.user(), e.item, e.at, e.at)
		r := request{http.MethodPut, address, "/platform/v1/test-sessions/one-" + strconv.FormatInt(n, 10), auth, body}
		return e.lines.send(ctx, r, func(status int, body []byte) error {
			if status != http.StatusCreated {
				return fmt.Errorf("session %d: %d %s", n, status, body)
			}
			return nil
		})
	}
}

// slowCommits makes each commit wait, before its log is written, as long as a slow disk or a distant standby
// would take. Commits that wait meanwhile are written with it, as they are there.
func (e *engine) slowCommits(ctx context.Context, d time.Duration) error {
	err := e.superuser(ctx, "postgres", fmt.Sprintf(`ALTER SYSTEM SET commit_delay = %d`, d.Microseconds()),
		`ALTER SYSTEM SET commit_siblings = 0`, `SELECT pg_reload_conf()`)
	if err != nil {
		return err
	}
	return sleep(ctx, time.Second) // until every server process has read it
}

// manyClients are as many as 20 ms a commit need: 16 could not make 2,000 calls a second.
const manyClients = 200

// newEngine makes an engine with one test to report.
func newEngine(ctx context.Context, s *scene) (*engine, error) {
	var test struct {
		ID int64 `json:"item_id"`
	}
	err := s.settings.Platform(ctx, http.MethodPut, "catalog/tests/ielts", `{"title": "IELTS 1", "type": "ielts"}`, &test)
	return &engine{scene: s, item: test.ID, at: time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)}, err
}

// onEngine runs a case on an engine of its own, whose first organization has so many URLs.
func onEngine(urls int, measure func(context.Context, *run, *engine) error) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) (err error) {
		s, err := newScene(ctx, r, urls)
		if err != nil {
			return err
		}
		defer func() { err = joinEnd(err, s.end()) }()
		e, err := newEngine(ctx, s)
		if err != nil {
			return err
		}
		return measure(ctx, r, e)
	}
}

func resultsSingly(ctx context.Context, r *run, e *engine) (err error) {
	if err := e.warm(ctx); err != nil {
		return err
	}
	const neighbours = 16
	schools := make([]school, neighbours)
	for i := range schools {
		if schools[i], err = e.addSchool(ctx, fmt.Sprintf("school-%d", i)); err != nil {
			return err
		}
	}
	connected, err := e.fill(ctx, e.org, "quiet")
	if err != nil {
		return err
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	if err := e.superuser(ctx, "registrar", `VACUUM ANALYZE`, `CHECKPOINT`); err != nil {
		return err
	}
	if _, err := load(ctx, clients, time.Second, e.report(schools)); err != nil { // connections and plans
		return err
	}
	var bars []chart.Row
	measure := func(name string, clients int, schools []school, asked float64, mostCPU time.Duration) error {
		cpu := e.cpu()
		done, err := load(ctx, clients, r.lasting(10*time.Second), e.report(schools))
		if err != nil {
			return err
		}
		used := e.cpu()
		n := max(1, len(done.times))
		r.step(name, done.times, done.rate())
		r.printf("  CPU a call: %s", used.since(cpu, n))
		bars = append(bars, bar(name, done.rate(), asked, chart.Blue))
		if asked > 0 {
			r.verdict(name, done.rate() >= asked, fmt.Sprintf("at least %.0f/s", asked), "%.0f/s", done.rate())
		}
		if mostCPU > 0 {
			each := (used["postgres"] - cpu["postgres"]) / time.Duration(n)
			r.verdict("CPU of PostgreSQL, "+name, each <= mostCPU, "at most "+mostCPU.String(), "%s", round(each))
		}
		return nil
	}
	const most = 400 * time.Microsecond
	one := schools[:1]
	profiled := e.profiles(ctx, r, 3*r.lasting(10*time.Second))
	err = errors.Join(
		measure("one client", 1, one, 0, 0),
		measure("16 clients, one organization", clients, one, 2000, most),
		measure("16 clients, 16 organizations", clients, schools, 2500, most),
	)
	profiled()
	if err != nil {
		return err
	}
	if err := measure("16 clients, 4 URLs delivered beside", clients, []school{connected}, 1000, 0); err != nil {
		return err
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	if err := e.slowCommits(ctx, 20*time.Millisecond); err != nil {
		return err
	}
	err = errors.Join(
		measure("16 clients, 20 ms a commit", clients, one, 0, 0),
		measure("200 clients, 20 ms a commit", manyClients, one, 2000, 0),
	)
	if err != nil {
		return err
	}
	r.draw(chart.Rows{Title: "Finished tests a second, a call each", Unit: "/s", Rows: bars})
	return e.printStatements(ctx, r)
}
