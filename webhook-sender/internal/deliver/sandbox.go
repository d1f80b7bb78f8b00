package deliver

import (
	"context"
	"sync"

	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Sandboxes runs task.WebhookSandbox: it attempts what a lease in the database of a sandbox holds, at once, and
// records that at the sandbox's time. Its worker waits for it.
type Sandboxes struct {
	Service    *simulate.Service
	Box        *seal.Box
	Dispatcher *Dispatcher
}

// Handle returns when the outcomes are recorded.
func (s *Sandboxes) Handle(ctx context.Context, payload []byte) error {
	l, err := task.Decode[task.SandboxLease](payload)
	if err != nil {
		return err
	}
	db, err := s.Service.Open(ctx, sandbox.Sandbox{Organization: l.Organization, Generation: l.Generation})
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := sandbox.Read(ctx, db, l.Organization)
	if err != nil {
		return err
	}
	held, err := dispatch.Load(ctx, db, l.Deliver)
	if err != nil || len(held[0].Dues) == 0 {
		return err
	}
	messages, err := (&Handler{Box: s.Box}).compose(ctx, held[0].Target, held[0].Dues)
	if err != nil {
		return err
	}
	outcomes := s.attempt(ctx, messages)
	if err := ctx.Err(); err != nil { // the worker gives the lease to another sender
		return err
	}
	for i := range outcomes {
		outcomes[i].Endpoint, outcomes[i].Organization, outcomes[i].StartedAt = l.Endpoint, l.Organization, c.Now
	}
	return db.InTx(ctx, func(tx *pg.Tx) error { return webhook.Settle(ctx, tx, outcomes) })
}

// attempt makes the attempts, those of one student's events one after the other.
func (s *Sandboxes) attempt(ctx context.Context, messages []message) []webhook.Outcome {
	chains := chained(messages)
	of := make([][]webhook.Outcome, len(chains))
	var all sync.WaitGroup
	for i, chain := range chains {
		all.Go(func() {
			for _, m := range chain {
				o := s.Dispatcher.call(ctx, m)
				o.Lease = m.due.Lease
				of[i] = append(of[i], o)
			}
		})
	}
	all.Wait()
	var outcomes []webhook.Outcome
	for _, o := range of {
		outcomes = append(outcomes, o...)
	}
	return outcomes
}
