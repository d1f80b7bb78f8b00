// Package relay moves work from PostgreSQL, where it is owed, to the run queue, where it
// is run. One worker at a time does it (pg.Lead), woken by notifications, with a short
// poll as the net.
package relay

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Webhooks leases due deliveries and puts one task a lease on the run queue.
type Webhooks struct {
	DB    *pg.DB
	Queue *queue.Client
	Clock clock.Clock
	Log   *slog.Logger
	Term  time.Duration // of a lease; 0 is 20 s
	Poll  time.Duration // the longest pause between two looks; 0 is 1 s

	passes   passes
	doubtful []string // leases whose tasks Redis may or may not have taken
}

// defaultTerm leaves room for one attempt of 10 s, its recording and a wait on the queue.
const defaultTerm = 20 * time.Second

// Run relays until ctx ends.
func (w *Webhooks) Run(ctx context.Context) {
	due := newDueSet()
	var listening sync.WaitGroup
	listening.Go(func() { pg.Listen(ctx, w.DB, due.note, webhook.Channel) })
	defer listening.Wait()
	poll := time.NewTicker(cmp.Or(w.Poll, time.Second))
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.signal:
		case <-poll.C:
			due.addAll()
			w.try(ctx, "sweeping leases", w.sweep)
		}
		w.try(ctx, "leasing deliveries", func(ctx context.Context) error { return w.drain(ctx, due) })
	}
}

// try keeps the relay alive through the loss of PostgreSQL or Redis: the rows wait.
func (w *Webhooks) try(ctx context.Context, what string, step func(context.Context) error) {
	if err := step(ctx); err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, what+" failed; trying again", "error", err)
	}
}

// drain leases until nothing more may run now; nothing while Redis is away.
func (w *Webhooks) drain(ctx context.Context, due *dueSet) error {
	if err := w.resolve(ctx); err != nil {
		return err
	}
	orgs, any := due.take()
	for any {
		began := time.Now()
		leases, more, err := dispatch.LeaseDue(ctx, w.DB, w.Clock(), w.term(), orgs)
		if err != nil {
			return err
		}
		if err := w.enqueue(ctx, leases); err != nil {
			return err
		}
		w.passes.done()
		if obs.Tracing() {
			w.trace(ctx, leases, began)
		}
		any = more
	}
	return nil
}

// enqueue puts in a task a lease. When Redis fails in the middle of it, some tasks may have
// been taken, and a sender may be at them by now: the leases are kept until resolve can ask.
func (w *Webhooks) enqueue(ctx context.Context, leases []dispatch.Lease) error {
	if len(leases) == 0 {
		return nil
	}
	items := make([]queue.Item, len(leases))
	keys := make([]string, len(leases))
	for i, l := range leases {
		keys[i] = l.Lease
		items[i] = queue.Item{Queue: queue.Webhook, Kind: task.WebhookDeliver, ID: l.Lease,
			Payload: task.Encode(l.Deliver), Timeout: time.Minute}
	}
	err := w.Queue.EnqueueMany(ctx, items)
	if err != nil {
		w.doubtful = keys
	}
	return err
}

// trace records, in each event's trace, what the relay did from began until now.
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

// resolve asks Redis, once it answers again, for the tasks that it may not have taken, and
// makes the deliveries of those that it does not know due at once.
func (w *Webhooks) resolve(ctx context.Context) error {
	if len(w.doubtful) == 0 {
		return nil
	}
	states, err := w.Queue.TaskStates(ctx, queue.Webhook, w.doubtful)
	if err != nil {
		return err
	}
	var lost []string
	for i, lease := range w.doubtful {
		if states[i] == queue.Absent {
			lost = append(lost, lease)
		}
	}
	if _, err := dispatch.Release(ctx, w.DB, lost); err != nil {
		return err
	}
	w.doubtful = nil
	return nil
}

// sweepBatch bounds how many leases one look examines.
const sweepBatch = 500

// sweep looks at leases that ran out. Where the task still waits on the run queue, the
// lease goes on; where it is gone (Redis lost it) or was begun and never settled (its
// process died), the deliveries are due again.
func (w *Webhooks) sweep(ctx context.Context) error {
	now := w.Clock()
	leases, err := dispatch.Expired(ctx, w.DB, now, sweepBatch)
	if err != nil || len(leases) == 0 {
		return err
	}
	states, err := w.Queue.TaskStates(ctx, queue.Webhook, leases)
	if err != nil {
		return err // Redis is away: nothing is known, nothing is lost
	}
	var keep, lost []string
	for i, lease := range leases {
		if states[i] == queue.Pending {
			keep = append(keep, lease)
		} else {
			lost = append(lost, lease)
		}
	}
	if _, err := dispatch.Renew(ctx, w.DB, keep, now.Add(w.term())); err != nil {
		return err
	}
	n, err := dispatch.Release(ctx, w.DB, lost)
	if n > 0 {
		w.Log.InfoContext(ctx, "deliveries put back after their task was lost", "deliveries", n, "leases", len(lost))
	}
	return err
}

func (w *Webhooks) term() time.Duration { return cmp.Or(w.Term, defaultTerm) }

// dueSet is which organizations may have something to lease.
type dueSet struct {
	mu     sync.Mutex
	orgs   map[id.Organization]struct{}
	all    bool
	signal chan struct{}
}

// maxDueOrgs bounds the set; past it, all are looked at.
const maxDueOrgs = 200

func newDueSet() *dueSet {
	return &dueSet{orgs: map[id.Organization]struct{}{}, signal: make(chan struct{}, 1)}
}

func (s *dueSet) note(n pg.Notification) {
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

// take empties the set; no organizations with any set means all of them.
func (s *dueSet) take() (orgs []id.Organization, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	any = s.all || len(s.orgs) > 0
	if !s.all {
		for org := range s.orgs {
			orgs = append(orgs, org)
		}
	}
	clear(s.orgs)
	s.all = false
	return orgs, any
}
