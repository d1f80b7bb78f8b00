package relay_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lead"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/worker/internal/relay"
)

// fixture is a running webhook relay, and a sender that answers as the test says.
type fixture struct {
	db  *pg.DB
	rdb redis.UniversalClient
	org id.Organization
}

// newFixture starts a relay with short terms over one organization with one URL.
func newFixture(t *testing.T, change func(*fixture, *relay.Webhooks)) *fixture {
	t.Helper()
	d := &fixture{db: pgtest.New(t), rdb: queuetest.New(t)}
	d.org = flowtest.On(t, d.db).Organization("demo").ID
	box := sealtest.New(t)
	url := "https://hooks.north-institute.org/"
	service := webhook.Service{DB: d.db, Box: box, Policy: egress.New(egress.Config{})}
	if _, _, err := service.Add(t.Context(), audit.Platform, d.org, webhook.Settings{URL: &url}, time.Now()); err != nil {
		t.Fatal(err)
	}
	r := &relay.Webhooks{DB: pgtest.OpenAs(t, d.db, "worker"), Queue: queue.NewClient(d.rdb), Clock: time.Now, Log: slog.New(slog.DiscardHandler),
		Term: 20 * time.Second, Poll: 50 * time.Millisecond}
	if change != nil {
		change(d, r)
	}
	d.relay(t, r)
	return d
}

// relay runs r as a worker does, until the test ends or stop is called.
func (d *fixture) relay(t *testing.T, r *relay.Webhooks) (stop func()) {
	t.Helper()
	stopRun := d.inBackground(t, r.Run)
	stopLead := d.inBackground(t, func(ctx context.Context) {
		if err := lead.Share(ctx, r.DB, "relay-webhooks", relay.ShardNames(), r.Lead); err != nil {
			t.Error(err)
		}
	})
	return func() { stopLead(); stopRun() }
}

func (d *fixture) inBackground(t *testing.T, run func(context.Context)) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { run(ctx) })
	end = func() { stop(); wg.Wait() }
	t.Cleanup(end)
	return end
}

// serve runs tasks with deliver until the test ends.
func (d *fixture) serve(t *testing.T, deliver func(context.Context, task.Deliver) error) {
	t.Helper()
	d.inBackground(t, func(ctx context.Context) {
		err := queue.Serve(ctx, d.rdb, queue.Options{Queue: queue.Webhook, Concurrency: 8, Log: slog.New(slog.DiscardHandler),
			Handlers: map[task.Kind]queue.Handler{task.WebhookDeliver: func(ctx context.Context, payload []byte) error {
				leases, err := task.Decode[[]task.Deliver](payload)
				for _, lease := range leases {
					err = errors.Join(err, deliver(ctx, lease))
				}
				return err
			}}})
		if err != nil {
			t.Error(err)
		}
	})
}

// accept records every delivery of a lease as accepted, and sends their number to got.
func (d *fixture) accept(got chan<- int) func(context.Context, task.Deliver) error {
	return func(ctx context.Context, lease task.Deliver) error {
		held, err := dispatch.Load(ctx, d.db, lease)
		if err != nil {
			return err
		}
		var outcomes []webhook.Outcome
		for _, due := range held[0].Dues {
			outcomes = append(outcomes, webhook.Outcome{Delivery: due.Delivery, Endpoint: lease.Endpoint, Organization: lease.Organization, Lease: due.Lease, More: due.More, Number: due.Number,
				Tries: due.Tries, StartedAt: time.Now(), Duration: time.Millisecond, Verdict: webhook.Delivered, Cause: "ok", Status: 200})
		}
		if err := d.db.InTx(ctx, func(tx *pg.Tx) error { return webhook.Settle(ctx, tx, outcomes) }); err != nil {
			return err
		}
		got <- len(held[0].Dues)
		return nil
	}
}

func (d *fixture) record(t *testing.T, n int) {
	t.Helper()
	d.recordFor(t, d.org, 0, n)
}

// recordFor commits events about the student; 0 is nobody.
func (d *fixture) recordFor(t *testing.T, org id.Organization, student id.User, n int) {
	t.Helper()
	err := d.db.InTx(t.Context(), func(tx *pg.Tx) error {
		for range n {
			e := webhook.Event{Type: webhook.StudentJoined, User: student, Data: struct{}{}}
			if err := webhook.Record(t.Context(), tx, org, time.Now(), e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// await sums what arrives on got until it reaches n.
func await(t *testing.T, got <-chan int, n int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for sum := 0; sum < n; {
		select {
		case more := <-got:
			sum += more
			if sum > n {
				t.Fatalf("%d deliveries, want %d", sum, n)
			}
		case <-deadline:
			t.Fatalf("%d of %d deliveries have arrived", sum, n)
		}
	}
}

func TestABacklogLargerThanTheAllowanceDrains(t *testing.T) {
	t.Parallel()
	d := newFixture(t, nil)
	got := make(chan int, 1000)
	d.serve(t, d.accept(got))
	d.record(t, 700)
	await(t, got, 700)
}

// Each lease of a student's first attempts waits for the one before, and nothing wakes the relay for it.
func TestAStudentsBacklogDrains(t *testing.T) {
	t.Parallel()
	d := newFixture(t, nil)
	got := make(chan int, 1000)
	d.serve(t, d.accept(got))
	d.recordFor(t, d.org, 7, 200)
	await(t, got, 200)
}

func TestTasksThatRedisLosesAreMadeAgain(t *testing.T) {
	t.Parallel()
	// No sender runs yet, so the tasks wait in Redis, where they are lost. The term is long enough to settle them within.
	d := newFixture(t, func(_ *fixture, r *relay.Webhooks) { r.Term = 3 * time.Second })
	d.record(t, 5)
	waitLeased(t, d)
	if err := d.rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	got := make(chan int, 10)
	d.serve(t, d.accept(got))
	await(t, got, 5)
}

// deaf is a connection whose first script runs, and whose answer to it gets lost.
type deaf struct {
	once sync.Once
	lost chan struct{}
}

func (*deaf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*deaf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *deaf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") { // evalsha, or eval where Redis does not have the script yet
			d.once.Do(func() {
				close(d.lost)
				err = errors.New("the answer was lost")
			})
		}
		return err
	}
}

func TestTasksThatRedisTookBeforeItFailedAreNotMadeTwice(t *testing.T) {
	t.Parallel()
	// A lease that is given up under a sender's attempt would be attempted twice.
	answer := &deaf{lost: make(chan struct{})}
	d := newFixture(t, func(d *fixture, r *relay.Webhooks) {
		rdb := queue.Beside(d.rdb)
		t.Cleanup(func() { _ = rdb.Close() })
		rdb.AddHook(answer)
		r.Queue = queue.NewClient(rdb)
	})
	attempts := make(chan id.Delivery, 10)
	goOn := make(chan struct{})
	got := make(chan int, 10)
	accept := d.accept(got)
	d.serve(t, func(ctx context.Context, lease task.Deliver) error {
		for _, delivery := range lease.Deliveries {
			attempts <- delivery
		}
		<-goOn
		return accept(ctx, lease)
	})
	d.record(t, 1)
	first := <-attempts
	<-answer.lost
	// What the relay makes of the failure, it has made when it leases something new.
	d.record(t, 1)
	second := <-attempts
	close(goOn)
	await(t, got, 2)
	if first == second {
		t.Errorf("delivery %s was attempted again while an attempt was under way", first)
	}
}

func TestATaskThatStillWaitsKeepsItsLease(t *testing.T) {
	t.Parallel()
	d := newFixture(t, func(_ *fixture, r *relay.Webhooks) { r.Term = 200 * time.Millisecond })
	d.record(t, 1)
	first := waitLeased(t, d)
	deadline := time.Now().Add(time.Minute)
	for renewed := false; !renewed; {
		if time.Now().After(deadline) {
			t.Fatal("the lease is not renewed")
		}
		var lease string
		var left bool
		if err := d.db.QueryRow(t.Context(), `SELECT id::text, until > $1 FROM webhook_leases`, first.until).Scan(&lease, &left); err != nil {
			t.Fatal(err)
		}
		if lease != first.lease {
			t.Fatalf("the waiting task's lease %s became %s", first.lease, lease)
		}
		renewed = left
	}
	got := make(chan int, 2)
	d.serve(t, d.accept(got))
	await(t, got, 1)
}

type leased struct {
	lease string
	until time.Time
}

// waitLeased polls until a delivery is leased and its task is in Redis.
func waitLeased(t *testing.T, d *fixture) leased {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	client := queue.NewClient(d.rdb)
	for time.Now().Before(deadline) {
		var l leased
		err := d.db.QueryRow(t.Context(), `SELECT id::text, until FROM webhook_leases LIMIT 1`).Scan(&l.lease, &l.until)
		if err == nil {
			if state, err := client.TaskState(t.Context(), queue.Webhook, l.lease); err == nil && state == queue.Pending {
				return l
			}
		}
	}
	t.Fatal("nothing is leased")
	return leased{}
}

// Workers share the URLs. While they come and go, everything is delivered once.
func TestShardsMoveWithoutADeliveryMadeTwice(t *testing.T) {
	t.Parallel()
	d := newFixture(t, nil)
	const orgs, events = 6, 40
	for i := range orgs {
		org := flowtest.On(t, d.db).Organization(fmt.Sprintf("org-%d", i)).ID
		d.addURLs(t, org, 3)
	}
	var mu sync.Mutex
	made := map[id.Delivery]int{}
	got := make(chan int, 10_000)
	accept := d.accept(got)
	d.serve(t, func(ctx context.Context, lease task.Deliver) error {
		mu.Lock()
		for _, delivery := range lease.Deliveries {
			made[delivery]++
		}
		mu.Unlock()
		return accept(ctx, lease)
	})
	worker := func() (stop func()) {
		return d.relay(t, &relay.Webhooks{DB: pgtest.OpenAs(t, d.db, "worker"), Queue: queue.NewClient(d.rdb), Clock: time.Now, Log: slog.New(slog.DiscardHandler),
			Poll: 50 * time.Millisecond})
	}
	total := 0
	for round := range 3 {
		stop := worker()
		for i := range orgs {
			d.recordFor(t, id.Organization(i+2), 0, events)
		}
		total += orgs * events * 3
		if round == 1 {
			await(t, got, orgs*events*3) // with both, and then it ends while nothing is due
			stop()
			continue
		}
		stop() // in the middle
		await(t, got, orgs*events*3)
	}
	mu.Lock()
	defer mu.Unlock()
	check.Equal(t, "deliveries", len(made), total, "different ones")
	for delivery, n := range made {
		if n > 1 {
			t.Errorf("delivery %s was handed out %d times", delivery, n)
		}
	}
}

// A worker that was frozen leases nothing more once another one leads, whatever it has read before.
func TestAWorkerThatWasFrozenLeasesNothing(t *testing.T) {
	t.Parallel()
	d := &fixture{db: pgtest.New(t)}
	d.org = flowtest.On(t, d.db).Organization("demo").ID
	d.addURLs(t, d.org, 4)
	shards, stop := d.leadAll(t)
	frozen := dispatch.NewPicker(d.db, time.Minute)
	frozen.Lead(shards)
	d.record(t, 8)
	if err := frozen.Scan(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	stop() // its leases are another's to take
	if _, err := d.db.Exec(t.Context(), `UPDATE leaders SET holder = 'another', token = token + 1, expires = now() + interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	leases, _, err := frozen.Pass(t.Context(), time.Now(), nil)
	check.True(t, "the lead is lost", lead.Lost(err), "%v, %+v", err, leases)
	var n int
	if err := d.db.QueryRow(t.Context(), `SELECT count(*) FROM webhook_leases`).Scan(&n); check.NoError(t, err, "%v", err) {
		check.Equal(t, "leases", n, 0, "of a worker that leads no more")
	}
}

// What a person asked for goes to a failing URL at once, and while it is under way no probe does.
func TestWhatAPersonAskedForCountsBesideAProbe(t *testing.T) {
	t.Parallel()
	d := &fixture{db: pgtest.New(t)}
	d.org = flowtest.On(t, d.db).Organization("demo").ID
	d.addURLs(t, d.org, 1)
	shards, _ := d.leadAll(t)
	p := dispatch.NewPicker(d.db, time.Minute)
	p.Lead(shards)
	d.record(t, 3)
	if _, err := d.db.Exec(t.Context(), `UPDATE webhook_health SET consecutive_failures = $1, runs = 1`, webhook.ProbeAfter); err != nil {
		t.Fatal(err)
	}
	if _, err := d.db.Exec(t.Context(), `UPDATE webhook_queue SET asked = true WHERE id = (SELECT id FROM webhook_queue ORDER BY id DESC LIMIT 1)`); err != nil {
		t.Fatal(err)
	}
	var got []int
	for range 3 {
		if err := p.Scan(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		leases, _, err := p.Pass(t.Context(), time.Now(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, len(leases))
	}
	check.Equal(t, "leases of three passes", fmt.Sprint(got), "[1 0 0]", "one delivery is asked for, and two wait for a probe")
}

// leadAll leads every shard until stop is called or the test ends.
func (d *fixture) leadAll(t *testing.T) (shards map[int]lead.Lease, stop func()) {
	t.Helper()
	leads := make(chan map[int]lead.Lease, 1)
	stop = d.inBackground(t, func(ctx context.Context) {
		held := map[int]lead.Lease{}
		var mu sync.Mutex
		err := lead.Share(ctx, d.db, "relay-webhooks", relay.ShardNames(), func(ctx context.Context, l lead.Lease) {
			mu.Lock()
			var shard int
			_, _ = fmt.Sscanf(l.Name, "relay-webhooks-%d", &shard)
			if held[shard] = l; len(held) == dispatch.Shards {
				leads <- maps.Clone(held)
			}
			mu.Unlock()
			<-ctx.Done()
		})
		if err != nil {
			t.Error(err)
		}
	})
	return <-leads, stop
}

// addURLs gives the organization n URLs.
func (d *fixture) addURLs(t *testing.T, org id.Organization, n int) {
	t.Helper()
	service := webhook.Service{DB: d.db, Box: sealtest.New(t), Policy: egress.New(egress.Config{})}
	for i := range n {
		url := fmt.Sprintf("https://hooks.north-institute.org/%d/%d", org, i)
		if _, _, err := service.Add(t.Context(), audit.Platform, org, webhook.Settings{URL: &url}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
}

// A relay that cannot look at what is due says for how long, and that it is well again.
func TestARelayTellsWhenItLastPassed(t *testing.T) {
	t.Parallel()
	var r *relay.Webhooks
	d := newFixture(t, func(_ *fixture, w *relay.Webhooks) { r = w })
	if problems, err := testutil.CollectAndLint(r); check.NoError(check.Now(t), err, "%v %v", problems, err) {
		check.Equal(check.Now(t), "number of problems", len(problems), 0, "%v %v", problems, err)
	}
	until := func(what string, reached func(seconds float64) bool) {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(time.Minute); ; <-tick.C {
			last := testutil.ToFloat64(r)
			if reached(last) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the last pass was %v s ago", what, last)
			}
		}
	}
	running := testutil.ToFloat64(r)
	until("with nothing to do", func(s float64) bool { return s < running })

	tx, err := d.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE webhook_queue, webhook_endpoints IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	until("behind a lock", func(s float64) bool { return s > 2 })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	until("after the lock", func(s float64) bool { return s < 1 })
}

// What a sender had in hand that died is not kept for ever when its URL is off by then.
func TestWhatALostLeaseHeldIsSkippedWhenItsURLIsOff(t *testing.T) {
	t.Parallel()
	d := newFixture(t, func(_ *fixture, r *relay.Webhooks) { r.Term = 200 * time.Millisecond })
	d.record(t, 1)
	waitLeased(t, d)
	_, err := d.db.Exec(t.Context(), `UPDATE webhook_endpoints SET switched_on = false, switched_off_at = now()`)
	check.NoError(check.Now(t), err, "%v", err)
	check.NoError(check.Now(t), d.rdb.FlushDB(t.Context()).Err(), "emptying Redis")
	deadline := time.Now().Add(time.Minute)
	for status := ""; status != "skipped"; {
		check.True(check.Now(t), "it is skipped in time", time.Now().Before(deadline), "it is %s", status)
		err := d.db.QueryRow(t.Context(), `SELECT status FROM webhook_states`).Scan(&status)
		check.NoError(check.Now(t), err, "%v", err)
	}
}
