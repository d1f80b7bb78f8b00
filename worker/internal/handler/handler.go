// Package handler runs the tasks that the outbox hands out.
package handler

import (
	"context"
	"errors"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Outbox makes a handler of a function that works on a claim.
func Outbox(work func(context.Context, task.Outbox) error) queue.Handler {
	return func(ctx context.Context, payload []byte) error {
		ref, err := task.Decode[task.Outbox](payload)
		if err != nil {
			return err
		}
		return work(ctx, ref)
	}
}

// Plan decides the test plan that a task is about. A plan that cannot be decided now is
// tried again when the claim has run out; one whose claim was lost is somebody else's.
func Plan(o *testplan.Service) queue.Handler {
	return Outbox(func(ctx context.Context, ref task.Outbox) error {
		if err := o.Step(ctx, ref); !errors.Is(err, outbox.ErrLost) {
			return err
		}
		return nil
	})
}

// Maintenance does the work on many webhook deliveries that a change to one URL leaves
// behind. Each piece may be repeated, so a claim that is lost half-way harms nothing.
type Maintenance struct {
	DB    *pg.DB
	Clock clock.Clock
}

// patience is how long one piece may take, and the pause before it is tried again.
const patience = 5 * time.Minute

// Handlers are the handlers of the maintenance queue.
func (m Maintenance) Handlers() map[task.Kind]queue.Handler {
	return map[task.Kind]queue.Handler{
		task.WebhookCancel: m.on(webhook.Cancel),
		task.WebhookSkip:   m.on(webhook.Skip),
		task.WebhookRecover: Outbox(func(ctx context.Context, ref task.Outbox) error {
			return journal.Step(ctx, m.DB, ref, m.Clock())
		}),
	}
}

func (m Maintenance) on(work func(context.Context, pg.Querier, id.Endpoint, time.Time) error) queue.Handler {
	return Outbox(func(ctx context.Context, ref task.Outbox) error {
		claimed, err := outbox.Hold(ctx, m.DB, ref, m.Clock().Add(patience))
		if err == nil {
			err = work(ctx, m.DB, id.Endpoint(claimed.Subject), m.Clock())
		}
		if err == nil {
			err = outbox.Done(ctx, m.DB, ref)
		}
		if errors.Is(err, outbox.ErrLost) {
			return nil
		}
		return err
	})
}
