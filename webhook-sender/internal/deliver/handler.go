package deliver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Handler runs task.WebhookDeliver.
type Handler struct {
	DB       *pg.DB
	Box      *seal.Box
	Caller   *Caller
	Recorder *Recorder
	Clock    clock.Clock
	Metrics  *Metrics
}

// startMargin is what a lease must have left when its attempts begin: their deadline and
// time to record them. A lease with less is renewed first, so that it cannot run out,
// and be handed to another sender, under an attempt.
const (
	startMargin = attemptLimit + 2*time.Second
	renewTerm   = 20 * time.Second
)

// Handle attempts what the lease still holds, all of it at once: the relay gave no more
// than the URL's allowance. It returns when the outcomes are recorded.
func (h *Handler) Handle(ctx context.Context, payload []byte) error {
	lease, err := task.Decode[task.Deliver](payload)
	if err != nil {
		return err
	}
	began := time.Now()
	target, dues, until, err := dispatch.Load(ctx, h.DB, lease)
	loaded := time.Now()
	if err != nil {
		return fmt.Errorf("loading lease %s: %w", lease.Lease, err)
	}
	if len(dues) == 0 {
		return nil
	}
	if lease.InOrder || until.Sub(h.Clock()) < startMargin {
		if held, err := dispatch.Renew(ctx, h.DB, []string{lease.Lease}, h.Clock().Add(renewTerm)); err != nil || held == 0 {
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
	outcomes := h.attempt(ctx, lease, target, messages)
	left := len(messages) - len(outcomes)
	if ctx.Err() != nil {
		// Attempts that our own end cut off say nothing about the receiver; their lease
		// runs out and they are made again.
		outcomes = slices.DeleteFunc(outcomes, func(o webhook.Outcome) bool { return o.Status == 0 })
	}
	attempted := time.Now()
	if err := h.Recorder.Record(outcomes); err != nil {
		return fmt.Errorf("recording lease %s: %w", lease.Lease, err)
	}
	for _, due := range dues[:min(len(dues), len(outcomes))] {
		obs.Past(due.Event.Traceparent, "webhook record", attempted, time.Now(), "db.system.name", "postgresql")
	}
	h.Metrics.observe(outcomes)
	if left > 0 {
		_, err = dispatch.Release(ctx, h.DB, []string{lease.Lease})
	}
	return err
}

// queuedSince is when the handler's task was put in, or otherwise where that is not known.
func queuedSince(ctx context.Context, otherwise time.Time) time.Time {
	if at := queue.EnqueuedAt(ctx); !at.IsZero() {
		return at
	}
	return otherwise
}

func (h *Handler) compose(ctx context.Context, target dispatch.Target, dues []dispatch.Due) ([]message, error) {
	secret, err := h.Box.Open(ctx, target.Secret, target.Place)
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
		messages[i] = message{url: target.URL, secret: string(secret), due: due, body: body}
	}
	return messages, nil
}

func (h *Handler) attempt(ctx context.Context, lease task.Deliver, target dispatch.Target, messages []message) []webhook.Outcome {
	if lease.InOrder {
		return h.inOrder(ctx, lease, target, messages)
	}
	outcomes := make([]webhook.Outcome, len(messages))
	var wg sync.WaitGroup
	for i, m := range messages {
		wg.Go(func() { outcomes[i] = h.one(ctx, lease, target, m) })
	}
	wg.Wait()
	return outcomes
}

// inOrder attempts one after the other until one fails or the lease, which was just
// renewed, has no time left for another; what follows is given back.
func (h *Handler) inOrder(ctx context.Context, lease task.Deliver, target dispatch.Target, messages []message) []webhook.Outcome {
	var outcomes []webhook.Outcome
	began := h.Clock()
	for _, m := range messages {
		if h.Clock().Sub(began) > renewTerm-startMargin {
			break
		}
		o := h.one(ctx, lease, target, m)
		outcomes = append(outcomes, o)
		if o.Verdict != webhook.Delivered {
			break
		}
	}
	return outcomes
}

func (h *Handler) one(ctx context.Context, lease task.Deliver, target dispatch.Target, m message) webhook.Outcome {
	h.Metrics.began()
	defer h.Metrics.ended()
	o := h.Caller.call(ctx, m)
	o.Endpoint, o.Organization = lease.Endpoint, target.From.ID
	return o
}
