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

// Plan makes the handler that decides the test plan of a task. It tries again when the claim
// of a failed task has run out; when the claim was lost, another worker has the task.
func Plan(o *testplan.Service) queue.Handler {
	return Outbox(func(ctx context.Context, ref task.Outbox) error {
		if err := o.Step(ctx, ref); !errors.Is(err, outbox.ErrLost) {
			return err
		}
		return nil
	})
}

// Maintenance updates the deliveries of a URL after the URL was changed. Its work can be
// repeated, so a claim that is lost half-way does no harm.
type Maintenance struct {
	DB    *pg.DB
	Clock clock.Clock
}

// patience is how long one task may take, and the pause before it is tried again.
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
