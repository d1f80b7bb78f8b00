package relay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Outbox claims due rows of the outbox and puts a task for each claim on the run queue.
//
// A claim lasts a few seconds, within which a worker has to begin; the worker then extends it
// for as long as its work takes. So a task that Redis lost, or whose worker died, is soon
// claimed again, and the older claim is lost. A task that still waits on its queue keeps its
// claim, however long it waits: the number of claims is the number of times that a worker
// could begin. The length of a queue is bounded, so that the backlog stays in PostgreSQL.
type Outbox struct {
	DB    *pg.DB
	Queue *queue.Client
	Clock clock.Clock
	Log   *slog.Logger
	Kinds map[task.Kind]time.Duration // what is relayed, with the handler's timeout
	Lease time.Duration               // of a claim until a worker begins; 0 is 20 s
	Depth int64                       // the most tasks that wait on one queue; 0 is 200
	Poll  time.Duration               // the longest pause between two passes; 0 is 1 s

	passes passes
}

const (
	defaultLease = 20 * time.Second
	defaultDepth = 200
	// refill is the pause before a full queue is checked again.
	refill = 50 * time.Millisecond
)

// Run relays until ctx ends.
func (o *Outbox) Run(ctx context.Context) {
	woken := make(chan struct{}, 1)
	var subscribed sync.WaitGroup
	subscribed.Go(func() {
		o.DB.Wakes.Subscribe(ctx, func(wake.Notification) {
			select {
			case woken <- struct{}{}:
			default:
			}
		}, outbox.Channel)
	})
	defer subscribed.Wait()
	away := false
	for {
		more, err := o.Pump(ctx)
		if away = o.report(ctx, away, err); ctx.Err() != nil {
			return
		}
		pause := cmp.Or(o.Poll, time.Second)
		if more {
			pause = min(refill, pause)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-woken:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// report logs the first failure and the recovery, not each failure in between.
func (o *Outbox) report(ctx context.Context, away bool, err error) bool {
	switch {
	case ctx.Err() != nil:
	case err != nil && !away:
		o.Log.WarnContext(ctx, "pending work is not relayed; it waits in PostgreSQL", "error", err)
	case err == nil && away:
		o.Log.InfoContext(ctx, "pending work is relayed again")
	}
	return err != nil
}

// Pump relays every kind once. more says that work was left because a queue is full.
func (o *Outbox) Pump(ctx context.Context) (more bool, err error) {
	queues := make([]queue.Name, 0, len(o.Kinds))
	for kind := range o.Kinds {
		queues = append(queues, queue.Of(kind))
	}
	// Redis is asked before anything is claimed: while it is away, rows stay as they are.
	depths, err := o.Queue.Depths(ctx, queues...)
	if err != nil {
		return false, err
	}
	limit := o.depth()
	room := make(map[queue.Name]int64, len(depths))
	for name, d := range depths {
		room[name] = limit - d.Pending
	}
	for kind := range o.Kinds {
		name := queue.Of(kind)
		if depths[name].Pending > 0 {
			if err := o.keep(ctx, kind); err != nil {
				return false, err
			}
		}
		n, err := o.move(ctx, kind, room[name])
		if err != nil {
			return false, err
		}
		room[name] -= n
		more = more || room[name] <= 0
	}
	o.passes.done()
	return more, nil
}

func (o *Outbox) depth() int64 { return cmp.Or(o.Depth, defaultDepth) }

// keep extends claims that have run out while their tasks still wait on the queue. It checks
// as many as can wait there, and so all that move could claim.
func (o *Outbox) keep(ctx context.Context, kind task.Kind) error {
	now := o.Clock()
	lapsed, err := outbox.Lapsed(ctx, o.DB, kind, now, int(o.depth()))
	if err != nil || len(lapsed) == 0 {
		return err
	}
	names := make([]string, len(lapsed))
	for i, ref := range lapsed {
		names[i] = taskID(ref)
	}
	states, err := o.Queue.TaskStates(ctx, queue.Of(kind), names)
	if err != nil {
		return err
	}
	var waiting []task.Outbox
	for i, ref := range lapsed {
		if states[i] == queue.Pending {
			waiting = append(waiting, ref)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	return outbox.Keep(ctx, o.DB, now, now.Add(cmp.Or(o.Lease, defaultLease)), waiting)
}

// move claims up to room tasks of a kind and enqueues them. It releases the claims at once
// when that fails.
func (o *Outbox) move(ctx context.Context, kind task.Kind, room int64) (int64, error) {
	if room <= 0 {
		return 0, nil
	}
	now, lease := o.Clock(), cmp.Or(o.Lease, defaultLease)
	claimed, err := outbox.Claim(ctx, o.DB, kind, now, lease, int(room))
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	items := make([]queue.Item, len(claimed))
	refs := make([]task.Outbox, len(claimed))
	for i, c := range claimed {
		refs[i] = task.Outbox{Task: c.ID, Claim: c.Claim}
		items[i] = queue.Item{Queue: queue.Of(kind), Kind: kind, ID: taskID(refs[i]), Payload: task.Encode(refs[i]), Timeout: o.Kinds[kind]}
	}
	if err := o.Queue.EnqueueMany(ctx, items); err != nil {
		o.giveBack(ctx, now, lease, refs)
		return 0, err
	}
	return int64(len(items)), nil
}

// giveBack makes the tasks due again; without it they are due when their lease has run out.
func (o *Outbox) giveBack(ctx context.Context, now time.Time, lease time.Duration, refs []task.Outbox) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := outbox.Release(ctx, o.DB, now, lease, refs); err != nil {
		o.Log.WarnContext(ctx, "claims not given back; they run out by themselves", "error", err)
	}
}

// taskID names a claim on the run queue: a claim that is enqueued twice is still one task.
func taskID(ref task.Outbox) string { return fmt.Sprintf("outbox:%d:%d", ref.Task, ref.Claim) }
