// Package relay moves pending work from PostgreSQL to the run queue. One worker at a time does
// it (kit/lead), woken over Redis after commits, and by a short poll in case a wake-up is lost.
package relay

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lead"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Webhooks leases due deliveries and puts tasks on the run queue, for the shards of URLs
// that this worker leads: Run works all the time, and Lead adds a shard for as long as it runs.
type Webhooks struct {
	DB    *pg.DB
	Queue *queue.Client
	Clock clock.Clock
	Log   *slog.Logger
	Term  time.Duration // of a lease; 0 is 20 s
	Poll  time.Duration // the longest pause between two passes; 0 is 1 s

	mu     sync.Mutex
	shards map[int]lead.Lease // that are led
	change chan struct{}      // they are others now
	once   sync.Once

	passes   passes
	picker   *dispatch.Picker
	scan     time.Time        // when the next look at all URLs with pending deliveries may be
	swept    time.Time        // leases that ran out until then were examined
	doubtful []dispatch.Lease // whose tasks Redis may or may not have taken
}

// defaultTerm leaves room for one attempt of 10 s, its recording and a wait on the queue.
const defaultTerm = 20 * time.Second

// ShardNames are the names of the shards, of which workers lead some each.
func ShardNames() []string {
	names := make([]string, dispatch.Shards)
	for i := range names {
		names[i] = shardPrefix + strconv.Itoa(i)
	}
	return names
}

const shardPrefix = "relay-webhooks-"

// Lead has Run relay one shard until ctx ends.
func (w *Webhooks) Lead(ctx context.Context, l lead.Lease) {
	shard, err := strconv.Atoi(strings.TrimPrefix(l.Name, shardPrefix))
	if err != nil {
		w.Log.ErrorContext(ctx, "there is no such shard", "name", l.Name)
		return
	}
	w.set(func(shards map[int]lead.Lease) { shards[shard] = l })
	<-ctx.Done()
	w.set(func(shards map[int]lead.Lease) { delete(shards, shard) })
}

func (w *Webhooks) set(change func(map[int]lead.Lease)) {
	w.init()
	w.mu.Lock()
	change(w.shards)
	w.mu.Unlock()
	select {
	case w.change <- struct{}{}:
	default:
	}
}

func (w *Webhooks) init() {
	w.once.Do(func() { w.shards, w.change = map[int]lead.Lease{}, make(chan struct{}, 1) })
}

// led are the shards that are led now.
func (w *Webhooks) led() map[int]lead.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.shards)
}

// Run relays until ctx ends.
func (w *Webhooks) Run(ctx context.Context) {
	w.init()
	due := newDueSet()
	w.picker, w.swept, w.doubtful = dispatch.NewPicker(w.DB, w.term()), time.Time{}, nil
	var subscribed sync.WaitGroup
	subscribed.Go(func() { w.DB.Wakes.Subscribe(ctx, due.note, webhook.Channel) })
	defer subscribed.Wait()
	pause := cmp.Or(w.Poll, time.Second)
	poll := time.NewTicker(pause)
	defer poll.Stop()
	next := time.NewTimer(pause) // when the picker wants to look
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.signal:
		case <-w.change:
		case <-next.C:
		case <-poll.C:
			w.try(ctx, "sweeping leases", w.sweep)
			if time.Now().After(w.scan) {
				due.addAll()
			}
		}
		if w.picker.Lead(w.led()) {
			w.swept = time.Time{}
			due.addAll()
		}
		if w.try(ctx, "leasing deliveries", func(ctx context.Context) error { return w.drain(ctx, due) }) {
			next.Reset(w.picker.Next(w.Clock(), pause))
		}
	}
}

// try logs a failed step. The relay goes on when PostgreSQL or Redis is back: the rows wait.
func (w *Webhooks) try(ctx context.Context, what string, step func(context.Context) error) (done bool) {
	err := step(ctx)
	if err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, what+" failed; trying again", "error", err)
	}
	return err == nil
}

// drain leases until nothing more may run now. It leases nothing while Redis is away.
func (w *Webhooks) drain(ctx context.Context, due *dueSet) error {
	if err := w.resolve(ctx); err != nil {
		return err
	}
	orgs, all := due.take()
	if all {
		began := time.Now()
		if err := w.picker.Scan(ctx, w.Clock()); err != nil {
			due.addAll()
			return err
		}
		// However many URLs have pending deliveries, looking for them all is a small part of the time.
		w.scan = time.Now().Add(min(50*time.Since(began), time.Minute))
	}
	for {
		began := time.Now()
		leases, more, err := w.picker.Pass(ctx, w.Clock(), orgs)
		if err != nil {
			due.addAll() // the picker may not know all of these organizations' URLs
			return err
		}
		if err := w.enqueue(ctx, leases); err != nil {
			return err
		}
		w.passes.done()
		if obs.Tracing() {
			w.trace(ctx, leases, began)
		}
		if !more {
			return nil
		}
		orgs = nil
	}
}

// enqueue enqueues one task for leases of one id. When Redis fails half-way, it may have taken some tasks,
// which a sender may have begun: the leases are kept until resolve can ask.
func (w *Webhooks) enqueue(ctx context.Context, leases []dispatch.Lease) error {
	if len(leases) == 0 {
		return nil
	}
	var ids []string
	of := map[string][]task.Deliver{} // by id
	for _, l := range leases {
		if of[l.Lease] == nil {
			ids = append(ids, l.Lease)
		}
		of[l.Lease] = append(of[l.Lease], l.Deliver)
	}
	items := make([]queue.Item, len(ids))
	for i, id := range ids {
		items[i] = queue.Item{Queue: queue.Webhook, Kind: task.WebhookDeliver, ID: id, Payload: task.Encode(of[id]), Timeout: time.Minute}
	}
	err := w.Queue.EnqueueMany(ctx, items)
	if err != nil {
		w.doubtful = leases
	}
	return err
}

// trace adds a span from began until now to each event's trace.
func (w *Webhooks) trace(ctx context.Context, leases []dispatch.Lease, began time.Time) {
	ended := time.Now()
	traceparents, err := dispatch.Traces(ctx, w.DB, leases)
	if err != nil {
		w.Log.WarnContext(ctx, "the relay is missing in traces", "error", err)
	}
	for _, t := range traceparents {
		obs.Past(t, "webhook relay", began, ended)
	}
}

// resolve asks Redis, once it answers again, which tasks it has taken, and makes the deliveries
// of the others due at once.
func (w *Webhooks) resolve(ctx context.Context) error {
	if len(w.doubtful) == 0 {
		return nil
	}
	states, err := w.states(ctx, w.doubtful)
	if err != nil {
		return err
	}
	var lost []dispatch.Lease
	for i, lease := range w.doubtful {
		if states[i] == queue.Absent {
			lost = append(lost, lease)
		}
	}
	if _, err := w.giveBack(ctx, lost); err != nil {
		return err
	}
	w.doubtful = nil
	return nil
}

func (w *Webhooks) states(ctx context.Context, leases []dispatch.Lease) ([]queue.State, error) {
	tasks := make([]string, len(leases))
	for i, l := range leases {
		tasks[i] = l.Lease
	}
	return w.Queue.TaskStates(ctx, queue.Webhook, tasks)
}

// sweepBatch bounds how many leases one sweep examines.
const sweepBatch = 500

// sweep examines leases that have run out. If the task still waits on the run queue, the lease
// is renewed; if it is gone (Redis lost it) or was begun and never settled (its process
// died), the deliveries are due again.
func (w *Webhooks) sweep(ctx context.Context) error {
	now := w.Clock()
	leases, until, err := w.picker.Expired(ctx, w.swept, now, sweepBatch)
	if err != nil {
		return err
	}
	if len(leases) < sweepBatch {
		// None can run out before it any more, but for those of a clock that is behind.
		until = now.Add(-w.term())
	}
	if len(leases) == 0 {
		w.swept = until
		return nil
	}
	states, err := w.states(ctx, leases)
	if err != nil {
		return err // Redis is away: nothing is known, nothing is lost
	}
	var keep, lost []dispatch.Lease
	for i, lease := range leases {
		if states[i] == queue.Pending {
			keep = append(keep, lease)
		} else {
			lost = append(lost, lease)
		}
	}
	if _, err := dispatch.Renew(ctx, w.DB, now.Add(w.term()), keep...); err != nil {
		return err
	}
	n, err := w.giveBack(ctx, lost)
	if err != nil {
		return err
	}
	w.swept = until
	if n > 0 {
		w.Log.InfoContext(ctx, "deliveries put back after their task was lost", "deliveries", n, "leases", len(lost))
	}
	return nil
}

// giveBack makes due again what lost leases held, and counts it.
func (w *Webhooks) giveBack(ctx context.Context, lost []dispatch.Lease) (n int, err error) {
	if n, err = dispatch.Release(ctx, w.DB, lost...); err != nil {
		return n, err
	}
	seen := map[id.Endpoint]bool{}
	for _, l := range lost {
		if !seen[l.Endpoint] {
			seen[l.Endpoint] = true
			if err := webhook.EndGivenBack(ctx, w.DB, l.Endpoint, w.Clock()); err != nil {
				return n, err
			}
		}
	}
	w.picker.Returned(lost)
	return n, nil
}

func (w *Webhooks) term() time.Duration { return cmp.Or(w.Term, defaultTerm) }

// dueSet holds the organizations that may have due deliveries.
type dueSet struct {
	mu     sync.Mutex
	orgs   map[id.Organization]struct{}
	all    bool
	signal chan struct{}
}

// maxDueOrgs bounds the set; beyond it, all organizations count as due.
const maxDueOrgs = 200

func newDueSet() *dueSet {
	return &dueSet{orgs: map[id.Organization]struct{}{}, signal: make(chan struct{}, 1)}
}

func (s *dueSet) note(n wake.Notification) {
	if n.Lost {
		return // the poll goes on
	}
	org, err := strconv.ParseInt(n.Payload, 10, 64)
	s.mu.Lock()
	if n.Reset || err != nil || len(s.orgs) >= maxDueOrgs {
		s.all = true
	} else {
		s.orgs[id.Organization(org)] = struct{}{}
	}
	s.mu.Unlock()
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

func (s *dueSet) addAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = true
}

// take empties the set. With all, any organization may be due, and orgs is empty.
func (s *dueSet) take() (orgs []id.Organization, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all = s.all; !all {
		orgs = slices.Collect(maps.Keys(s.orgs))
	}
	clear(s.orgs)
	s.all = false
	return orgs, all
}
