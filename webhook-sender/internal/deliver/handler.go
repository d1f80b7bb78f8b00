package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/gather"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Handler runs task.WebhookDeliver.
type Handler struct {
	DB         *pg.DB
	Loads      *gather.Group[string, []task.Deliver, []dispatch.Held]
	Box        *seal.Box
	Dispatcher *Dispatcher
	Recorder   *Recorder
	Clock      clock.Clock
	Metrics    *Metrics
}

// startMargin is how long a lease must still last when its attempts begin: their deadline, and
// time to record them. A lease with less is renewed first, so that it cannot run out during
// an attempt and be given to another sender.
const (
	startMargin = attemptLimit + 2*time.Second
	renewTerm   = 20 * time.Second
)

// loadSize is how many leases one statement reads at most.
const loadSize = 16

// NewLoads makes Handler.Loads.
func NewLoads(db *pg.DB) *gather.Group[string, []task.Deliver, []dispatch.Held] {
	g := gather.New[string](func(ctx context.Context, of [][]task.Deliver) ([][]dispatch.Held, error) {
		held, err := dispatch.Load(ctx, db, slices.Concat(of...)...)
		if err != nil {
			return nil, err
		}
		parts := make([][]dispatch.Held, len(of))
		for i, leases := range of {
			parts[i], held = held[:len(leases)], held[len(leases):]
		}
		return parts, nil
	})
	g.Size = loadSize
	return g
}

// Handle attempts the deliveries that the leases still hold, at the same time but for first attempts
// of one student's events: the relay keeps to the URLs' allowances. It returns when the outcomes are
// recorded.
func (h *Handler) Handle(ctx context.Context, payload []byte) error {
	leases, err := task.Decode[[]task.Deliver](payload)
	if err != nil || len(leases) == 0 {
		return err
	}
	began, read := time.Now(), h.Clock()
	held, err := h.Loads.Do(ctx, leases[0].Lease, leases)
	if err != nil {
		return fmt.Errorf("loading lease %s: %w", leases[0].Lease, err)
	}
	loaded := time.Now()
	errs := make([]error, len(held))
	var wg sync.WaitGroup
	for i, l := range held {
		for _, due := range l.Dues {
			obs.Past(due.Event.Traceparent, "webhook queue", queuedSince(ctx, began), began)
			obs.Past(due.Event.Traceparent, "webhook load", began, loaded, "db.system.name", "postgresql")
		}
		wg.Go(func() { errs[i] = contained(func() error { return h.lease(ctx, l, read) }) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// contained gives a panic as an error: what is wrong with one delivery must not end those of others. Its
// lease runs out, and it is attempted again.
func contained(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// lease attempts what one lease holds, which was read at the given time.
func (h *Handler) lease(ctx context.Context, l dispatch.Held, read time.Time) error {
	dues, err := dispatch.WithoutSuperseded(ctx, h.DB, l.Lease, l.Dues, h.Clock())
	if err != nil {
		return err
	}
	if len(dues) == 0 {
		_, err := dispatch.Release(ctx, h.DB, dispatch.Lease{Deliver: l.Lease})
		return err
	}
	if l.Lease.InOrder || l.Until.Sub(h.Clock()) < startMargin {
		l.Until = h.Clock().Add(renewTerm)
		if held, err := dispatch.Renew(ctx, h.DB, l.Until, dispatch.Lease{Deliver: l.Lease}); err != nil || held == 0 {
			return err
		}
	}
	messages, err := compose(ctx, h.Box, l.Target, dues, h.Clock())
	if err != nil {
		return err
	}
	chains := [][]message{messages}
	if !l.Lease.InOrder {
		chains = chained(messages)
	}
	a := &attempts{Handler: h, Held: l, read: read, left: len(messages)}
	errs := make([]error, len(chains))
	var wg sync.WaitGroup
	for i, chain := range chains {
		wg.Go(func() { errs[i] = contained(func() error { return a.chain(ctx, chain) }) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil || ctx.Err() != nil || a.left == 0 {
		return err
	}
	return dispatch.Return(ctx, h.DB, h.Clock(), dispatch.Lease{Deliver: l.Lease})
}

// queuedSince is when the handler's task was enqueued; otherwise when that is unknown.
func queuedSince(ctx context.Context, otherwise time.Time) time.Time {
	if at := queue.EnqueuedAt(ctx); !at.IsZero() {
		return at
	}
	return otherwise
}

// compose makes the messages of deliveries; now decides which secrets sign.
func compose(ctx context.Context, box *seal.Box, target dispatch.Target, dues []dispatch.Due, now time.Time) ([]message, error) {
	secrets, err := target.Open(ctx, box, now)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(target.Zone)
	if err != nil {
		return nil, err
	}
	messages := make([]message, len(dues))
	for i, due := range dues {
		body, err := webhook.Envelope(due.Event, target.From, zone)
		if err != nil {
			return nil, err
		}
		messages[i] = message{url: target.URL, secrets: secrets, due: due, body: body}
	}
	return messages, nil
}

// chained puts the messages of one student's events behind each other, in the events' order.
func chained(messages []message) (chains [][]message) {
	of := map[id.User]int{} // index of the student's chain
	for _, m := range messages {
		i, known := of[m.due.Student]
		if m.due.Student == 0 || !known {
			i = len(chains)
			of[m.due.Student], chains = i, append(chains, nil)
		}
		chains[i] = append(chains[i], m)
	}
	for _, chain := range chains {
		slices.SortStableFunc(chain, func(a, b message) int { return cmp.Compare(a.due.Event.Sequence, b.due.Event.Sequence) })
	}
	return chains
}

// targetAge is how old a target may be when an attempt begins. A new secret or address is used
// from the next attempt on, and attempts to quick receivers do not cost a statement each.
const targetAge = 50 * time.Millisecond

// attempts are those under one lease.
type attempts struct {
	*Handler
	dispatch.Held
	read time.Time // when the target was

	mu   sync.Mutex
	left int // to be recorded
}

// attempt is one that was made.
type attempt struct {
	message
	outcome webhook.Outcome
}

// chain sends messages one after the other, and records the attempts.
func (a *attempts) chain(ctx context.Context, messages []message) error {
	made, err := a.inOrder(ctx, messages)
	return errors.Join(err, a.record(ctx, made))
}

// inOrder sends one message after the other, until the URL is switched off or removed, or the
// lease has no time left for another, or one fails and the others are to follow a success only. It
// records attempts when targetAge is over, so that those of a process that is killed are few, and
// returns the last ones.
func (a *attempts) inOrder(ctx context.Context, messages []message) (made []attempt, err error) {
	target, read, secrets := a.Target, a.read, messages[0].secrets
	for i, m := range messages {
		now := a.Clock()
		if i > 0 && a.Until.Sub(now) < startMargin {
			break
		}
		if now.Sub(read) > targetAge && (i > 0 || a.Lease.InOrder) {
			if err := a.record(ctx, made); err != nil {
				return nil, err
			}
			made = nil
			if target, err = dispatch.ReadTarget(ctx, a.DB, a.Lease.Endpoint); err != nil || !target.SwitchedOn {
				return nil, err
			}
			if secrets, err = target.Open(ctx, a.Box, now); err != nil {
				return nil, err
			}
			read = now
		}
		m.url, m.secrets = target.URL, secrets
		o := a.one(ctx, m)
		made = append(made, attempt{m, o})
		if o.Verdict != webhook.Delivered && a.Lease.InOrder || ctx.Err() != nil {
			break
		}
	}
	return made, nil //nolint:nilerr // what an ended context leaves over is given back
}

// record records attempts. The lease ends with the last ones of what it held, as the recorder keeps to the order in which
// it gets them. One that holds more is the relay's to end.
func (a *attempts) record(ctx context.Context, made []attempt) error {
	began := time.Now()
	var outcomes []webhook.Outcome
	for _, m := range made {
		// Attempts that were cut off because this process stops say nothing about the
		// receiver; their lease runs out and they are made again.
		if ctx.Err() == nil || m.outcome.Status != 0 {
			outcomes = append(outcomes, m.outcome)
		}
	}
	a.mu.Lock()
	a.left -= len(outcomes)
	if n := len(outcomes); n > 0 && a.left == 0 {
		outcomes[n-1].Lease = made[0].due.Lease
	}
	wait := a.Recorder.Add(outcomes)
	a.mu.Unlock()
	if err := wait(); err != nil {
		return fmt.Errorf("recording lease %s: %w", a.Lease.Lease, err)
	}
	for _, m := range made {
		obs.Past(m.due.Event.Traceparent, "webhook record", began, time.Now(), "db.system.name", "postgresql")
	}
	a.Metrics.observe(outcomes)
	return nil
}

func (a *attempts) one(ctx context.Context, m message) webhook.Outcome {
	a.Metrics.began()
	defer a.Metrics.ended()
	o := a.Dispatcher.call(ctx, m)
	o.Endpoint, o.Organization = a.Lease.Endpoint, a.Target.From.ID
	return o
}
