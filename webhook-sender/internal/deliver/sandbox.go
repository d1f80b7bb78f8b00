package deliver

import (
	"context"
	"errors"
	"slices"
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
	Opened     *simulate.Opened
	Box        *seal.Box
	Dispatcher *Dispatcher
}

// Handle returns when the outcomes are recorded.
func (s *Sandboxes) Handle(ctx context.Context, payload []byte) error {
	l, err := task.Decode[task.SandboxLease](payload)
	if err != nil {
		return err
	}
	return s.Opened.Use(ctx, sandbox.Sandbox{Organization: l.Organization, Generation: l.Generation}, func(db *pg.DB) error {
		return s.lease(ctx, db, l.Deliver)
	})
}

func (s *Sandboxes) lease(ctx context.Context, db *pg.DB, l task.Deliver) error {
	c, err := sandbox.Read(ctx, db, l.Organization)
	if err != nil {
		return err
	}
	held, err := dispatch.Load(ctx, db, l)
	if err != nil || len(held[0].Dues) == 0 {
		return err
	}
	messages, err := compose(ctx, s.Box, held[0].Target, held[0].Dues, c.Now)
	if err != nil {
		return err
	}
	chains := [][]message{messages}
	if !l.InOrder {
		chains = chained(messages)
	}
	outcomes, err := s.attempt(ctx, chains, l.InOrder)
	if err := errors.Join(err, ctx.Err()); err != nil { // the worker gives up the lease, and makes another
		return err
	}
	for i := range outcomes {
		outcomes[i].Endpoint, outcomes[i].Organization, outcomes[i].StartedAt = l.Endpoint, l.Organization, c.Now
	}
	return db.InTx(ctx, func(tx *pg.Tx) error { return webhook.Settle(ctx, tx, outcomes) })
}

// attempt makes the attempts, those of a chain one after the other. One that failed ends its chain where the others
// are to follow a success: their lease ends with it, and they are due again.
func (s *Sandboxes) attempt(ctx context.Context, chains [][]message, inOrder bool) ([]webhook.Outcome, error) {
	of, errs := make([][]webhook.Outcome, len(chains)), make([]error, len(chains))
	var all sync.WaitGroup
	for i, chain := range chains {
		all.Go(func() {
			errs[i] = contained(func() error {
				for _, m := range chain {
					o := s.Dispatcher.call(ctx, m)
					o.Lease = m.due.Lease
					of[i] = append(of[i], o)
					if inOrder && o.Verdict != webhook.Delivered {
						break
					}
				}
				return nil
			})
		})
	}
	all.Wait()
	return slices.Concat(of...), errors.Join(errs...)
}
