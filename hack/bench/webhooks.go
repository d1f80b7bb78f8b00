package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

var webhookCases = []benchCase{
	{"webhook-throughput", "100,000 result.final events of 1.5 KB to one organization with 4 URLs", throughput},
	{"webhook-latency", "200 events/s for 60 s to 4 URLs, alone and beside 100 hanging URLs with 100,000 deliveries waiting", onScene(4, latency)},
	{"webhook-idle", "one event at a time while nothing else happens", onScene(1, idle)},
	{"webhook-waiting", "1,000,000 deliveries that wait for their retry", onScene(4, waiting)},
	{"webhook-faults", "50,000 events while every part is killed, emptied, stopped or restarted, beside receivers that do everything wrong", faults},
}

// resultData is data of a result.final event, about 1.5 KB.
var resultData = func() json.RawMessage {
	text, err := json.Marshal(map[string]any{
		"id": "test:123456", "kind": "test", "attempt": "assigned", "score": 7.5, "max_score": 9, "percentage": 83.33, "score_label": "7.5",
		"student":    map[string]any{"user_id": 4711, "email": "asha.rao@north-institute.org", "first_name": "Asha", "last_name": "Rao"},
		"item":       map[string]any{"id": 99, "title": "IELTS Academic Mock 12", "type": "ielts", "type_label": "IELTS Academic"},
		"started_at": "2026-11-21T08:00:00+00:00", "completed_at": "2026-11-21T10:40:00+00:00", "released_at": nil,
		"sections":   map[string]any{"listening": 8, "reading": 7.5, "writing": 7, "speaking": 7.5},
		"result_url": "https://registrar.example/results/test:123456", "notes": strings.Repeat("remark ", 130),
	})
	if err != nil {
		panic(err)
	}
	return text
}()

// scene is a house with one organization and some URLs of a sink.
type scene struct {
	*house
	sink *sink
	org  id.Organization
	urls int

	students atomic.Int64 // that recordOne has made
}

func newScene(ctx context.Context, r *run, urls int) (*scene, error) {
	h, err := newHouse(ctx, r)
	if err != nil {
		return nil, err
	}
	s := &scene{house: h, urls: urls}
	if s.sink, err = startSink(ctx, h.certs); err != nil {
		return nil, err
	}
	if s.org, err = s.addOrganization(ctx, "quiet", "/in/", urls); err != nil {
		return nil, err
	}
	return s, s.fillDays(ctx)
}

func (s *scene) end() error {
	s.sink.stop()
	return s.close()
}

func (s *scene) addOrganization(ctx context.Context, slug, path string, urls int) (id.Organization, error) {
	made, err := s.organization(ctx, slug)
	if err != nil {
		return 0, err
	}
	for i := range urls {
		url := fmt.Sprintf("%s%s%s/%d", s.sink.base, path, slug, i)
		if _, _, err := s.webhooks.Add(ctx, audit.Platform, id.Organization(made), webhook.Settings{URL: &url}, time.Now()); err != nil {
			return 0, err
		}
	}
	return id.Organization(made), nil
}

// anybody is one of many students: first attempts of one student's events are made in order.
func anybody() id.User { return id.User(4711 + rand.IntN(1_000_000)) }

// record commits n events in transactions of at most a few hundred.
func (s *scene) record(ctx context.Context, org id.Organization, n int) error {
	const most = 500
	for n > 0 {
		events := make([]webhook.Event, min(n, most))
		for i := range events {
			events[i] = webhook.Event{Type: webhook.ResultFinal, User: anybody(), Data: resultData}
		}
		n -= len(events)
		err := s.db.InTx(ctx, func(tx *pg.Tx) error { return webhook.Record(ctx, tx, org, time.Now(), events...) })
		if err != nil {
			return err
		}
	}
	return nil
}

// warmEvents are sent before anything is measured.
const warmEvents = 200

// warm lets connections, plans and the allowance reach their working state.
func (s *scene) warm(ctx context.Context) error {
	if err := s.record(ctx, s.org, warmEvents); err != nil {
		return err
	}
	if err := s.sink.await(ctx, warmEvents*s.urls); err != nil {
		return err
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	s.sink.reset()
	return nil
}

// settled waits until nothing is on its way.
func (s *scene) settled(ctx context.Context) error {
	for {
		var busy bool
		err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM webhook_queue WHERE organization_id = $1)`, s.org).Scan(&busy)
		if err != nil || !busy {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// onScene makes a case that runs on a warm scene with so many URLs.
func onScene(urls int, do func(context.Context, *run, *scene) error) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) (err error) {
		s, err := newScene(ctx, r, urls)
		if err != nil {
			return err
		}
		defer func() { err = joinEnd(err, s.end()) }()
		if err := s.warm(ctx); err != nil {
			return err
		}
		return do(ctx, r, s)
	}
}

// mustDeliver is how many deliveries a second are asked.
const mustDeliver = 8000

func throughput(ctx context.Context, r *run) error {
	bare, err := bareAsynq(ctx, r)
	if err != nil {
		return err
	}
	return onScene(4, func(ctx context.Context, r *run, s *scene) error { return s.throughput(ctx, r, bare) })(ctx, r)
}

func (s *scene) throughput(ctx context.Context, r *run, bare float64) error {
	n := r.size(100_000)
	wait := s.profiles(ctx, r, r.lasting(8*time.Second))
	before, err := s.written(ctx)
	if err != nil {
		return err
	}
	cpu, began := s.cpu(), time.Now()
	if err := s.record(ctx, s.org, n); err != nil {
		return err
	}
	recorded := time.Since(began)
	if err := s.sink.await(ctx, n*s.urls); err != nil {
		return err
	}
	took := time.Since(began)
	wait()
	if err := s.settled(ctx); err != nil {
		return err
	}
	settled := time.Since(began)
	used := s.cpu()
	r.printf("  CPU a delivery: %s", used.since(cpu, n*s.urls))
	after, err := s.written(ctx)
	if err != nil {
		return err
	}
	r.printf("  written a delivery, its quarter of an event included: %s", after.since(before, n*s.urls))
	var written int
	err = s.db.QueryRow(ctx, `SELECT count(*) FROM webhook_journal WHERE status = 'delivered' AND organization_id = $1 AND delivery_id >= uuid7_floor(now() - interval '1 hour')`, s.org).Scan(&written)
	if err != nil {
		return err
	}
	_, twice := s.sink.arrivals()
	rate := float64(n*s.urls) / took.Seconds()
	r.printf("  events committed in %s; last receipt %s, last outcome recorded %s after the first commit; %d arrived twice", round(recorded), round(took), round(settled), twice)
	r.draw(chart.Rows{Title: "Deliveries a second, commit to last receipt", Unit: "/s", Rows: []chart.Row{
		bar("Registrar", rate, mustDeliver, chart.Blue), bar("bare Asynq, one POST a task", bare, 0, chart.Grey)}})
	r.verdictsOfCPU("a delivery", used, cpu, n*s.urls, cpuTimes{"postgres": 50 * time.Microsecond, "sender": 75 * time.Microsecond, "worker": 15 * time.Microsecond})
	r.verdict("deliveries/s", rate >= mustDeliver, "at least 8,000; the aim is bare Asynq", "%.0f; bare Asynq, one POST a task: %.0f; ratio %.2f", rate, bare, rate/bare)
	if err := s.printStatements(ctx, r); err != nil {
		return err
	}
	written -= warmEvents * s.urls
	r.verdict("recorded", written >= n*s.urls, "every one", "%d of %d", written, n*s.urls)
	return s.logOfDeliveries(ctx, r, r.size(20_000))
}

func joinEnd(err, end error) error {
	if err != nil {
		return err
	}
	return end
}

// offer commits events at a rate, each in a transaction of its own, and returns when each was
// committed.
func (s *scene) offer(ctx context.Context, rate int, during time.Duration) (committed commits, err error) {
	committed = commits{}
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		failed error
	)
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for end := time.Now().Add(during); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		wg.Go(func() {
			student, err := s.recordOne(ctx)
			at := time.Now()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			committed[student] = at
		})
	}
	wg.Wait()
	return committed, failed
}

// commits are when events were committed, each about a student of its own.
type commits map[id.User]time.Time

// recordOne commits an event about a student whom no other is about.
func (s *scene) recordOne(ctx context.Context) (student id.User, err error) {
	student = firstStudent + id.User(s.students.Add(1))
	return student, s.db.InTx(ctx, func(tx *pg.Tx) error {
		return webhook.Record(ctx, tx, s.org, time.Now(), webhook.Event{Type: webhook.ResultFinal, User: student, Data: resultData})
	})
}

// firstStudent is greater than whatever anybody returns.
const firstStudent = 10_000_000

// events are the times of commits by the events' ids. What is measured must have ended: it looks into every partition.
func (s *scene) events(ctx context.Context, committed commits) (map[string]time.Time, error) {
	rows, err := s.db.Query(ctx, `SELECT id, user_id FROM webhook_events WHERE organization_id = $1 AND user_id > $2`, s.org, firstStudent)
	if err != nil {
		return nil, err
	}
	events := make(map[string]time.Time, len(committed))
	var event id.Event
	var student id.User
	_, err = pgx.ForEachRow(rows, []any{&event, &student}, func() error {
		if at, known := committed[student]; known {
			events[event.String()] = at
		}
		return nil
	})
	return events, err
}

// delays is how long each delivery took from its event's commit to its receipt, sorted.
func (s *scene) delays(ctx context.Context, committed commits) (times, error) {
	events, err := s.events(ctx, committed)
	if err != nil {
		return nil, err
	}
	first, _ := s.sink.arrivals()
	var delays []time.Duration
	for key, at := range first {
		if since, ok := events[key[strings.LastIndex(key, "evt_"):]]; ok {
			delays = append(delays, max(0, at.Sub(since)))
		}
	}
	return sorted(delays), nil
}

func latency(ctx context.Context, r *run, s *scene) error {
	if err := s.warmAt(ctx, r, 200); err != nil {
		return err
	}
	alone, err := s.latency(ctx, r, "alone")
	if err != nil {
		return err
	}
	r.step("commit to receipt, alone", alone, 0)
	p50, p99 := alone.At(.50), alone.At(.99)
	r.verdict("commit to receipt, alone", p50 <= 8*time.Millisecond && p99 <= 20*time.Millisecond,
		"p50 at most 8 ms, p99 at most 20 ms", "p50 %s, p99 %s", round(p50), round(p99))
	loud, err := s.crowdOf(ctx, "loud", "/hang/", 10, 10)
	if err != nil {
		return err
	}
	for _, org := range loud {
		if err := s.record(ctx, org, r.size(1000)); err != nil {
			return err
		}
	}
	beside, err := s.latency(ctx, r, "beside")
	if err != nil {
		return err
	}
	if err := s.printStatements(ctx, r); err != nil {
		return err
	}
	r.step("commit to receipt, beside hanging URLs", beside, 0)
	r.draw(chart.Chart{Title: "From commit to receipt, by the share of deliveries", XLabel: "percentile", YLabel: "ms", Lines: []chart.Line{
		{Name: "alone", Color: chart.Blue, Y: curve(alone)}, {Name: "beside 100 hanging URLs", Color: chart.Amber, Y: curve(beside)}}})
	b99 := beside.At(.99)
	ratio := b99.Seconds() / p99.Seconds()
	r.verdict("p99 beside hanging URLs", ratio <= 1.2, "at most 1.2 times its value alone", "%s: %.2f times", round(b99), ratio)
	return nil
}

// curve is each percentile from 0 to 99, in ms.
func curve(t times) []float64 {
	y := make([]float64, 100)
	for i := range y {
		y[i] = milliseconds(t.At(float64(i) / 100))
	}
	return y
}

func (s *scene) latency(ctx context.Context, r *run, name string) (times, error) {
	s.sink.reset()
	wait := func() {}
	if name == "alone" {
		wait = s.profiles(ctx, r, r.lasting(30*time.Second))
	}
	committed, err := s.offer(ctx, 200, r.lasting(time.Minute))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.sink.await(ctx, len(committed)*s.urls); err != nil {
		return nil, err
	}
	wait()
	delays, err := s.delays(ctx, committed)
	return delays, errors.Join(err, s.slowest(ctx, r, committed))
}

func idle(ctx context.Context, r *run, s *scene) error {
	committed := commits{}
	for range max(20, r.size(40)) {
		// Long enough for every part to be idle, and never in step with a poll.
		if err := sleep(ctx, 730*time.Millisecond); err != nil {
			return err
		}
		student, err := s.recordOne(ctx)
		if err != nil {
			return err
		}
		committed[student] = time.Now()
		if err := s.sink.await(ctx, len(committed)); err != nil {
			return err
		}
	}
	delays, err := s.delays(ctx, committed)
	if err != nil {
		return err
	}
	r.step("commit to receipt when idle", delays, 0)
	worst := delays.Last()
	r.verdict("commit to receipt when idle", worst <= 50*time.Millisecond, "every one within 50 ms", "the longest of %d: %s", len(delays), round(worst))
	return nil
}
