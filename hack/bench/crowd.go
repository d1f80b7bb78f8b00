package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

var crowdCases = []benchCase{
	{"webhook-singly", "100 events/s, one at a time, to 4 URLs: what one costs", onScene(4, singly)},
	{"webhook-crowd", "200 events/s to 4 URLs, alone and beside 60,000 and 1,000,000 URLs that have nothing pending", onScene(4, crowd)},
	{"webhook-many", "10,000 URLs with 40 deliveries due each, beside as many deliveries to 4 URLs", onScene(4, many)},
	{"webhook-organizations", "1,000 organizations with one URL and 20 events each", onScene(1, manyOrganizations)},
	{"webhook-one", "one URL alone, whose receiver answers at once, and after 30, 100 and 300 ms", onScene(1, oneURL)},
	{"webhook-snapshot", "deliveries to 4 URLs, alone and while a transaction keeps every row that is deleted", onScene(4, snapshot)},
	{"webhook-workers", "2,000 URLs with 40 deliveries due each, one worker beside three", onScene(1, threeWorkers)},
}

// keptDays is how many days a server keeps partitions of: WEBHOOK_RETENTION_DAYS, and some ahead.
const keptDays = 38

// fillDays makes the database one that has been in use: each day has its partition, with rows.
func (s *scene) fillDays(ctx context.Context) error {
	first := clock.DateIn(time.Now(), time.UTC).AddDays(-keptDays + 3)
	if err := webhook.MakePartitions(ctx, s.db, first, keptDays); err != nil {
		return err
	}
	for _, sql := range []string{
		`INSERT INTO webhook_events (id, organization_id, type, created_at, data)
			SELECT uuid7_floor(at), $3, 'result.final', at, '{}'
			FROM generate_series($1::date, $1::date + $2::int, interval '1 minute') AS at WHERE at < now() - interval '1 hour'`,
		`INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, status, started_at, outcome, cause)
			SELECT $3, 1, uuid7_floor(at), 1, uuid7_floor(at), 'delivered', at, 'delivered', 'ok'
			FROM generate_series($1::date, $1::date + $2::int, interval '1 minute') AS at WHERE at < now() - interval '1 hour'`,
	} {
		if _, err := s.db.Exec(ctx, sql, first, keptDays, s.org); err != nil {
			return err
		}
	}
	return s.superuser(ctx, "registrar", `VACUUM ANALYZE`, `CHECKPOINT`)
}

// written is how much PostgreSQL has written: bytes of its log, and rows and entries of indexes of the
// tables of webhooks.
type written struct{ log, rows, entries int64 }

func (s *scene) written(ctx context.Context) (w written, err error) {
	if err := s.superuser(ctx, "registrar", `SELECT pg_stat_force_next_flush()`); err != nil {
		return w, err
	}
	// A backend reports its counts a second after its last statement.
	if err := sleep(ctx, 1500*time.Millisecond); err != nil {
		return w, err
	}
	err = s.db.QueryRow(ctx, `
		SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,
			sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint,
			sum((n_tup_ins + n_tup_upd - n_tup_hot_upd) * (
				SELECT count(*) FROM pg_index i WHERE i.indrelid = t.relid AND i.indpred IS NULL))::bigint
		FROM pg_stat_user_tables t WHERE relname LIKE 'webhook\_%'`).Scan(&w.log, &w.rows, &w.entries)
	return w, err
}

func (w written) since(before written, n int) string {
	per := func(a, b int64) float64 { return float64(a-b) / float64(n) }
	return fmt.Sprintf("%.0f B of log, %.2f rows, %.2f index entries", per(w.log, before.log), per(w.rows, before.rows), per(w.entries, before.entries))
}

// logOfDeliveries measures what is written for n events after their commit: the worker is held until then.
func (s *scene) logOfDeliveries(ctx context.Context, r *run, n int) error {
	if err := s.worker.Stop(); err != nil {
		return err
	}
	s.sink.reset()
	if err := s.record(ctx, s.org, n); err != nil {
		return err
	}
	if err := s.superuser(ctx, "registrar", `CHECKPOINT`); err != nil { // whole pages are part of it, as in production
		return err
	}
	before, err := s.written(ctx)
	if err != nil {
		return err
	}
	if err := stack.StartReady(ctx, s.worker, s.settings.Ports.WorkerPrivate); err != nil {
		return err
	}
	if err := errors.Join(s.sink.await(ctx, n*s.urls), s.settled(ctx)); err != nil {
		return err
	}
	after, err := s.written(ctx)
	if err != nil {
		return err
	}
	bytes := float64(after.log-before.log) / float64(n*s.urls)
	r.printf("  written a delivery after its commit: %s", after.since(before, n*s.urls))
	r.verdict("log a delivery after commit", bytes <= 700, "at most 700 B", "%.0f B", bytes)
	return nil
}

// warmAt sends singly for a while before that is measured: each connection reads the catalog's rows about 38 partitions once,
// and lives for minutes.
func (s *scene) warmAt(ctx context.Context, r *run, rate int) error {
	if _, err := s.offer(ctx, rate, r.lasting(10*time.Second)); err != nil {
		return err
	}
	if err := s.settled(ctx); err != nil {
		return err
	}
	s.sink.reset()
	return nil
}

func singly(ctx context.Context, r *run, s *scene) error {
	if err := s.warmAt(ctx, r, 100); err != nil {
		return err
	}
	// What the programs need while nothing happens is a part of what an event costs at this rate.
	idle := r.lasting(10 * time.Second)
	cpu := s.cpu()
	if err := sleep(ctx, idle); err != nil {
		return err
	}
	r.printf("  CPU a second without events: %s", s.cpu().since(cpu, max(1, int(idle.Seconds()))))
	profiled := s.profiles(ctx, r, r.lasting(30*time.Second))
	cpu = s.cpu()
	committed, err := s.offer(ctx, 100, r.lasting(30*time.Second))
	profiled()
	if err != nil {
		return err
	}
	if err := errors.Join(s.sink.await(ctx, len(committed)*s.urls), s.settled(ctx)); err != nil {
		return err
	}
	used := s.cpu()
	r.printf("  CPU an event with 4 deliveries: %s", used.since(cpu, len(committed)))
	delays, err := s.delays(ctx, committed)
	if err != nil {
		return err
	}
	r.step("commit to receipt", delays, 0)
	r.verdictsOfCPU("an event", used, cpu, len(committed), cpuTimes{"postgres": time.Millisecond, "sender": 500 * time.Microsecond,
		"worker": 200 * time.Microsecond, "redis": 100 * time.Microsecond})
	return s.printStatements(ctx, r)
}

// addIdle adds URLs that never have anything pending, ten to an organization.
func (s *scene) addIdle(ctx context.Context, n int) error {
	if err := stack.AddIdle(ctx, s.db, n/10); err != nil {
		return err
	}
	return s.superuser(ctx, "registrar", `VACUUM ANALYZE`, `CHECKPOINT`)
}

func crowd(ctx context.Context, r *run, s *scene) error {
	measure := func(name string) (times, float64, error) {
		// Each time: the statistics of the URLs that were added have connections plan anew.
		if err := s.warmAt(ctx, r, 200); err != nil {
			return nil, 0, err
		}
		committed, err := s.offer(ctx, 200, r.lasting(30*time.Second))
		if err != nil {
			return nil, 0, err
		}
		if err := errors.Join(s.sink.await(ctx, len(committed)*s.urls), s.settled(ctx)); err != nil {
			return nil, 0, err
		}
		delays, err := s.delays(ctx, committed)
		if err != nil {
			return nil, 0, err
		}
		r.step("commit to receipt, "+name, delays, 0)
		cpu, began := s.cpu(), time.Now()
		if err := sleep(ctx, r.lasting(10*time.Second)); err != nil {
			return nil, 0, err
		}
		used := s.cpu()
		return delays, (used["postgres"] + used["worker"] - cpu["postgres"] - cpu["worker"]).Seconds() / time.Since(began).Seconds(), nil
	}
	alone, idleAlone, err := measure("alone")
	if err != nil {
		return err
	}
	added := 0
	for _, c := range []struct {
		urls  int
		most  float64 // of the p99 alone
		idles bool    // is its idle CPU judged
	}{{r.size(60_000) / 10 * 10, 1.2, true}, {r.size(1_000_000) / 10 * 10, 1.5, false}} {
		if err := s.addIdle(ctx, c.urls-added); err != nil {
			return err
		}
		added = c.urls
		name := fmt.Sprintf("beside %d idle URLs", c.urls)
		beside, idle, err := measure(name)
		if err != nil {
			return err
		}
		ratio := beside.At(.99).Seconds() / alone.At(.99).Seconds()
		r.verdict("p99 "+name, ratio <= c.most, fmt.Sprintf("at most %.1f times its value alone", c.most), "%s: %.2f times", round(beside.At(.99)), ratio)
		if c.idles {
			r.verdict("idle CPU of PostgreSQL and worker", idle <= .02, "at most 2 % of a core", "%.1f %% of a core, %.1f %% alone", 100*idle, 100*idleAlone)
		} else {
			r.printf("  idle CPU of PostgreSQL and worker %s: %.1f %% of a core", name, 100*idle)
		}
	}
	return s.printStatements(ctx, r)
}

// crowdOf adds organizations with URLs at a path of the sink.
func (s *scene) crowdOf(ctx context.Context, name, path string, orgs, urls int) (ids []id.Organization, err error) {
	ids = make([]id.Organization, orgs)
	for i := range ids {
		if ids[i], err = s.addOrganization(ctx, fmt.Sprintf("%s-%d", name, i), path, urls); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// drain records n events for each organization while no worker runs, and measures how long the
// workers then need until all of it has arrived and is recorded.
func (s *scene) drain(ctx context.Context, orgs []id.Organization, n, urls int, workers ...*stack.Program) (rate float64, cpu string, err error) {
	if err := s.worker.Stop(); err != nil {
		return 0, "", err
	}
	s.sink.reset()
	for _, org := range orgs {
		if err := s.record(ctx, org, n); err != nil {
			return 0, "", err
		}
	}
	before := s.cpu()
	if err := stack.StartReady(ctx, s.worker, s.settings.Ports.WorkerPrivate); err != nil {
		return 0, "", err
	}
	for _, w := range workers {
		if err := w.Start(); err != nil {
			return 0, "", err
		}
	}
	began := time.Now()
	all := len(orgs) * n * urls
	if err := s.sink.await(ctx, all); err != nil {
		return 0, "", err
	}
	rate = float64(all) / time.Since(began).Seconds()
	if err := s.settledAll(ctx); err != nil {
		return 0, "", err
	}
	return rate, s.cpu().since(before, all), nil
}

// settledAll waits until nothing is pending to anybody.
func (s *scene) settledAll(ctx context.Context) error {
	for {
		var busy bool
		err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM webhook_queue)`).Scan(&busy)
		if err != nil || !busy {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func many(ctx context.Context, r *run, s *scene) error {
	orgs, err := s.crowdOf(ctx, "many", "/in/", max(2, r.size(1000)), 10)
	if err != nil {
		return err
	}
	plain, cpu, err := s.drain(ctx, []id.Organization{s.org}, len(orgs)*10*40/4, 4)
	if err != nil {
		return err
	}
	r.printf("  4 URLs: %.0f/s; CPU a delivery: %s", plain, cpu)
	rate, cpu, err := s.drain(ctx, orgs, 40, 10)
	if err != nil {
		return err
	}
	r.printf("  %d URLs: %.0f/s; CPU a delivery: %s", len(orgs)*10, rate, cpu)
	r.draw(chart.Rows{Title: "Deliveries a second", Unit: "/s", Rows: []chart.Row{
		bar("4 URLs", plain, 0, chart.Grey), bar(fmt.Sprintf("%d URLs with 40 due each", len(orgs)*10), rate, 0, chart.Blue)}})
	r.verdict("many URLs beside few", rate >= .8*plain, "at least 0.8 of the rate to 4 URLs", "%.0f/s of %.0f/s: %.2f", rate, plain, rate/plain)
	return s.printStatements(ctx, r)
}

func manyOrganizations(ctx context.Context, r *run, s *scene) error {
	orgs, err := s.crowdOf(ctx, "org", "/in/", r.size(1000), 1)
	if err != nil {
		return err
	}
	rate, cpu, err := s.drain(ctx, orgs, 20, 1)
	if err != nil {
		return err
	}
	r.verdict("deliveries/s", rate >= 2000, "at least 2,000", "%.0f; CPU a delivery: %s", rate, cpu)
	return s.printStatements(ctx, r)
}

func oneURL(ctx context.Context, r *run, s *scene) error {
	asked := map[int]float64{0: 2000, 30: 2000, 100: 2000, 300: 700}
	rows := chart.Rows{Title: "Deliveries a second to one URL, by how long its receiver takes", Unit: "/s"}
	for _, pause := range []int{0, 30, 100, 300} {
		org, err := s.addOrganization(ctx, fmt.Sprintf("slow-%d", pause), fmt.Sprintf("/slow/%d/", pause), 1)
		if err != nil {
			return err
		}
		// The allowance grows with what was accepted.
		if _, _, err := s.drain(ctx, []id.Organization{org}, 2*webhook.MaxAllowance, 1); err != nil {
			return err
		}
		rate, cpu, err := s.drain(ctx, []id.Organization{org}, r.size(20_000), 1)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("after %d ms", pause)
		rows.Rows = append(rows.Rows, bar(name, rate, asked[pause], chart.Blue))
		r.verdict("deliveries/s to one URL, "+name, rate >= asked[pause], fmt.Sprintf("at least %.0f", asked[pause]), "%.0f; CPU a delivery: %s", rate, cpu)
	}
	r.draw(rows)
	return s.printStatements(ctx, r)
}

// snapshot compares the plain rate with the one beside a transaction that is open for so long that
// nothing of what is deleted can be cleaned away.
func snapshot(ctx context.Context, r *run, s *scene) error {
	n := r.size(50_000)
	alone, cpuAlone, err := s.drain(ctx, []id.Organization{s.org}, n, s.urls)
	if err != nil {
		return err
	}
	tx, err := s.db.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SELECT count(*) FROM webhook_queue`); err != nil {
		return err
	}
	beside, cpuBeside, err := s.drain(ctx, []id.Organization{s.org}, n, s.urls)
	if err != nil {
		return err
	}
	r.printf("  CPU a delivery alone: %s", cpuAlone)
	r.printf("  CPU a delivery beside an old snapshot: %s", cpuBeside)
	r.verdict("beside an old snapshot", beside >= .7*alone, "at least 0.7 of the rate alone", "%.0f/s of %.0f/s: %.2f", beside, alone, beside/alone)
	return s.printStatements(ctx, r)
}

func threeWorkers(ctx context.Context, r *run, s *scene) (err error) {
	orgs, err := s.crowdOf(ctx, "many", "/in/", max(2, r.size(200)), 10)
	if err != nil {
		return err
	}
	one, cpuOne, err := s.drain(ctx, orgs, 40, 10)
	if err != nil {
		return err
	}
	others := make([]*stack.Program, 2)
	for i := range others {
		ports, err := stack.FreeProgramPorts(ctx)
		if err != nil {
			return err
		}
		settings := s.settings
		settings.Ports.WorkerPrivate = ports.WorkerPrivate
		others[i] = settings.Worker()
		defer func() { err = errors.Join(err, others[i].Stop()) }()
	}
	three, cpuThree, err := s.drain(ctx, orgs, 40, 10, others...)
	if err != nil {
		return err
	}
	_, twice := s.sink.arrivals()
	r.printf("  one worker: %.0f/s; CPU a delivery: %s", one, cpuOne)
	r.printf("  three workers (the first one's CPU is shown): %.0f/s; CPU a delivery: %s", three, cpuThree)
	r.draw(chart.Rows{Title: "Deliveries a second", Unit: "/s", Rows: []chart.Row{bar("one worker", one, 0, chart.Grey), bar("three workers", three, 0, chart.Blue)}})
	r.verdict("done twice by three workers", twice == 0, "nothing", "%d", twice)
	return s.printStatements(ctx, r)
}

// pauses is how long /slow/<milliseconds>/ waits before it answers.
var pauses sync.Map

func pauseOf(path string) time.Duration {
	if d, ok := pauses.Load(path); ok {
		return d.(time.Duration)
	}
	ms, _ := strconv.Atoi(strings.SplitN(strings.TrimPrefix(path, "/slow/"), "/", 2)[0])
	d := time.Duration(ms) * time.Millisecond
	pauses.Store(path, d)
	return d
}
