package sandbox

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// attempt attempts the deliveries of a lease, one after the other in the order of their events.
func (d *Driver) attempt(ctx context.Context, l dispatch.Lease) error {
	held, err := dispatch.Load(ctx, d.db, l.Deliver)
	if err != nil {
		return err
	}
	dues, err := dispatch.WithoutSuperseded(ctx, d.db, l.Deliver, held[0].Dues, d.now)
	if err != nil {
		return err
	}
	if len(dues) == 0 {
		_, err := dispatch.Release(ctx, d.db, l)
		return err
	}
	if d.receiver == sandbox.Real {
		return d.Send(ctx, l.Deliver)
	}
	if !l.InOrder {
		slices.SortStableFunc(dues, func(a, b dispatch.Due) int { return cmp.Compare(a.Event.Sequence, b.Event.Sequence) })
	} else if d.receiver == sandbox.Fails {
		dues = dues[:1] // the others are to follow a success
	}
	outcomes := make([]webhook.Outcome, len(dues))
	for i, due := range dues {
		outcomes[i] = d.answer(due)
		o := &outcomes[i]
		o.Delivery, o.Endpoint, o.Organization, o.Lease = due.Delivery, l.Endpoint, l.Organization, due.Lease
		o.Run, o.More, o.Number, o.Tries = due.Run, due.More, due.Number, due.Tries
		o.Ping, o.EventAt, o.StartedAt = due.Event.Type == webhook.Ping, due.Event.CreatedAt, d.now
	}
	return d.db.InTx(ctx, func(tx *pg.Tx) error { return webhook.Settle(ctx, tx, outcomes) })
}

// answer is what the receiver is taken to answer.
func (d *Driver) answer(due dispatch.Due) (o webhook.Outcome) {
	o.Status = http.StatusOK
	if d.receiver == sandbox.Fails {
		o.Status = http.StatusServiceUnavailable
	}
	o.Verdict, o.Cause = webhook.Judge(o.Status, false)
	o.RequestHeaders = webhook.CommonHeaders(due.Event.Type, due.Event.ID, due.Event.Sequence)
	o.Duration = time.Microsecond // the least that is recorded
	return o
}
