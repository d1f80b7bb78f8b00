package sandbox

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Runner works on all sandboxes that have something to do, a few at a time.
type Runner struct {
	Sandboxes *simulate.Service
	Queue     *queue.Client // of what senders are to send
	Config    Config

	opened simulate.Opened

	mu     sync.Mutex
	busy   map[id.Organization]bool
	failed map[id.Organization]time.Time // when work on them failed
	woken  chan struct{}
	works  sync.WaitGroup
}

const (
	// poll is how soon work is found whose wake-up was lost.
	poll = 2 * time.Second
	// failurePause is the pause after work that failed.
	failurePause = 5 * time.Second
	// atOnce is how many sandboxes are worked on at a time: real organizations come first.
	atOnce = 2
	// sweepEvery is how often databases are looked for that no sandbox uses.
	sweepEvery = time.Hour
)

// Run works until ctx ends. One process at a time runs it.
func (r *Runner) Run(ctx context.Context) {
	r.busy, r.failed, r.woken = map[id.Organization]bool{}, map[id.Organization]time.Time{}, make(chan struct{}, 1)
	r.opened.Service = r.Sandboxes
	defer r.opened.Close()
	r.works.Go(func() {
		r.Sandboxes.DB.Wakes.Subscribe(ctx, func(wake.Notification) { r.wake() }, sandbox.Channel)
	})
	r.works.Go(func() {
		r.sweep(ctx)
		for range clock.Ticks(ctx, sweepEvery) {
			r.sweep(ctx)
		}
	})
	defer r.works.Wait()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.look(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-r.woken:
		}
	}
}

func (r *Runner) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// look begins work on sandboxes that nobody works on.
func (r *Runner) look(ctx context.Context) {
	pending, err := sandbox.Pending(ctx, r.Sandboxes.DB)
	if err != nil {
		if ctx.Err() == nil {
			r.Config.Log.WarnContext(ctx, "sandboxes are not read; trying again", "error", err)
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range pending {
		if r.busy[s.Organization] || len(r.busy) >= atOnce || r.Sandboxes.Clock().Before(r.failed[s.Organization].Add(failurePause)) {
			continue
		}
		r.busy[s.Organization] = true
		r.works.Go(func() {
			err := contained(func() error { return r.move(ctx, s) })
			if err != nil && ctx.Err() == nil {
				r.Config.Log.WarnContext(ctx, "a sandbox is not moved; trying again", "organization_id", int64(s.Organization), "error", err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.busy, s.Organization)
			delete(r.failed, s.Organization)
			if err != nil {
				r.failed[s.Organization] = r.Sandboxes.Clock()
			}
			r.wake()
		})
	}
}

// contained gives a panic as an error: what is wrong in one sandbox ends nothing else.
func contained(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

func (r *Runner) move(ctx context.Context, s sandbox.Sandbox) error {
	return r.opened.Use(ctx, s, func(db *pg.DB) error {
		config := r.Config
		config.Send = func(ctx context.Context, l task.Deliver) error { return r.send(ctx, db, s, l) }
		if err := New(db, s.Organization, config).Move(ctx); err != nil {
			return err
		}
		return sandbox.Finish(ctx, r.Sandboxes.DB, s)
	})
}

// How long a sender may take for a lease, and the pauses after which the lease is looked at again: each is longer than the
// one before.
const (
	sendTime   = 2 * time.Minute
	firstPause = 2 * time.Millisecond
	lastPause  = 20 * time.Millisecond
)

// send gives a lease to a sender and waits until nothing is left of it.
func (r *Runner) send(ctx context.Context, db *pg.DB, s sandbox.Sandbox, l task.Deliver) error {
	// Leases of several URLs may have one id.
	which := fmt.Sprintf("%s/%d", l.Lease, l.Endpoint)
	err := r.Queue.Enqueue(ctx, queue.Item{Queue: queue.Webhook, Kind: task.WebhookSandbox, ID: which,
		Payload: task.Encode(task.SandboxLease{Generation: s.Generation, Deliver: l}), Timeout: sendTime})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*sendTime)
	defer cancel()
	for pause := firstPause; ; pause = min(pause*5/4, lastPause) {
		held, err := dispatch.Load(ctx, db, l)
		if err != nil || len(held[0].Dues) == 0 {
			return err
		}
		if err := clock.Pause(ctx, pause); err != nil {
			return fmt.Errorf("no sender took lease %s: %w", l.Lease, err)
		}
	}
}

func (r *Runner) sweep(ctx context.Context) {
	if err := r.Sandboxes.Sweep(ctx); err != nil && ctx.Err() == nil {
		r.Config.Log.WarnContext(ctx, "old databases of sandboxes are not dropped; trying again", "error", err)
	}
}
