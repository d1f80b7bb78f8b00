package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/clock"
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

// Handle attempts the deliveries that the lease still holds, at the same time but for first attempts
// of one student's events: the relay keeps to the URL's allowance. It returns when the outcomes are
// recorded.
func (h *Handler) Handle(ctx context.Context, payload []byte) error {
	lease, err := task.Decode[task.Deliver](payload)
	if err != nil {
		return err
	}
	began, read := time.Now(), h.Clock()
	target, dues, until, err := dispatch.Load(ctx, h.DB, lease)
	loaded := time.Now()
	if err != nil {
		return fmt.Errorf("loading lease %s: %w", lease.Lease, err)
	}
	if dues, err = dispatch.WithoutSuperseded(ctx, h.DB, lease, dues, h.Clock()); err != nil {
		return err
	}
	if len(dues) == 0 {
		_, err := dispatch.Release(ctx, h.DB, dispatch.Lease{Deliver: lease})
		return err
	}
	if lease.InOrder || until.Sub(h.Clock()) < startMargin {
		if held, err := dispatch.Renew(ctx, h.DB, h.Clock().Add(renewTerm), dispatch.Lease{Deliver: lease}); err != nil || held == 0 {
			return err
		}
	}
	messages, err := h.compose(ctx, target, dues)
	if err != nil {
		return err
	}
	for _, due := range dues {
		obs.Past(due.Event.Traceparent, "webhook queue", queuedSince(ctx, began), began)
		obs.Past(due.Event.Traceparent, "webhook load", began, loaded, "db.system.name", "postgresql")
	}
	outcomes, stopped := h.attempt(ctx, lease, target, read, until, messages)
	left := len(messages) - len(outcomes)
	if ctx.Err() != nil {
		// Attempts that were cut off because this process stops say nothing about the
		// receiver; their lease runs out and they are made again.
		outcomes = slices.DeleteFunc(outcomes, func(o webhook.Outcome) bool { return o.Status == 0 })
	}
	attempted := time.Now()
	if err := h.Recorder.Record(outcomes); err != nil {
		return errors.Join(fmt.Errorf("recording lease %s: %w", lease.Lease, err), stopped)
	}
	for _, due := range dues[:min(len(dues), len(outcomes))] {
		obs.Past(due.Event.Traceparent, "webhook record", attempted, time.Now(), "db.system.name", "postgresql")
	}
	h.Metrics.observe(outcomes)
	if left > 0 && ctx.Err() == nil {
		err = h.giveBack(ctx, lease)
	}
	return errors.Join(stopped, err)
}

// giveBack makes due again what was not attempted. If the URL has been switched off or removed
// meanwhile, it ends these deliveries: the task that ends pending ones may already have run.
func (h *Handler) giveBack(ctx context.Context, lease task.Deliver) error {
	if _, err := dispatch.Release(ctx, h.DB, dispatch.Lease{Deliver: lease}); err != nil {
		return err
	}
	if err := webhook.Skip(ctx, h.DB, lease.Endpoint, h.Clock()); err != nil {
		return err
	}
	return webhook.Cancel(ctx, h.DB, lease.Endpoint, h.Clock())
}

// queuedSince is when the handler's task was enqueued; otherwise when that is unknown.
func queuedSince(ctx context.Context, otherwise time.Time) time.Time {
	if at := queue.EnqueuedAt(ctx); !at.IsZero() {
		return at
	}
	return otherwise
}

func (h *Handler) secretOf(ctx context.Context, target dispatch.Target) (string, error) {
	secret, err := h.Box.Open(ctx, target.Secret, target.SecretContext)
	return string(secret), err
}

func (h *Handler) compose(ctx context.Context, target dispatch.Target, dues []dispatch.Due) ([]message, error) {
	secret, err := h.secretOf(ctx, target)
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
		messages[i] = message{url: target.URL, secret: secret, due: due, body: body}
	}
	return messages, nil
}

// attempt sends the messages to the target, which was read at the given time. An error says
// why some messages were not attempted; the others have outcomes.
func (h *Handler) attempt(ctx context.Context, lease task.Deliver, target dispatch.Target, read, until time.Time, messages []message) ([]webhook.Outcome, error) {
	if lease.InOrder {
		return h.inOrder(ctx, lease, target, read, h.Clock().Add(renewTerm), messages, false)
	}
	chains := chained(messages)
	outcomes, errs := make([][]webhook.Outcome, len(chains)), make([]error, len(chains))
	var wg sync.WaitGroup
	for i, chain := range chains {
		wg.Go(func() { outcomes[i], errs[i] = h.inOrder(ctx, lease, target, read, until, chain, true) })
	}
	wg.Wait()
	return slices.Concat(outcomes...), errors.Join(errs...)
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

// inOrder sends one message after the other, until the URL is switched off or removed, or the
// lease, which ends at until, has no time left for another, or one fails and the others do not
// follow whatever becomes of it. The caller gives back the rest. The first was just loaded.
func (h *Handler) inOrder(
	ctx context.Context, lease task.Deliver, target dispatch.Target, read, until time.Time, messages []message, whatever bool,
) (outcomes []webhook.Outcome, err error) {
	secret := messages[0].secret
	for i, m := range messages {
		now := h.Clock()
		if i > 0 && until.Sub(now) < startMargin {
			break
		}
		if now.Sub(read) > targetAge && (i > 0 || lease.InOrder) {
			if target, err = dispatch.ReadTarget(ctx, h.DB, lease.Endpoint); err != nil || !target.SwitchedOn {
				return outcomes, err
			}
			if secret, err = h.secretOf(ctx, target); err != nil {
				return outcomes, err
			}
			read = now
		}
		m.url, m.secret = target.URL, secret
		o := h.one(ctx, lease, target, m)
		outcomes = append(outcomes, o)
		if o.Verdict != webhook.Delivered && !whatever || ctx.Err() != nil {
			break
		}
	}
	return outcomes, nil //nolint:nilerr // what an ended context leaves over is given back
}

func (h *Handler) one(ctx context.Context, lease task.Deliver, target dispatch.Target, m message) webhook.Outcome {
	h.Metrics.began()
	defer h.Metrics.ended()
	o := h.Dispatcher.call(ctx, m)
	o.Endpoint, o.Organization = lease.Endpoint, target.From.ID
	return o
}
