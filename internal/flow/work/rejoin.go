package work

import (
	"context"

	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// maxReturns limits how many students one transaction of Sweep takes. Engines that report work of the
// organization wait for it.
const maxReturns = 50

// Sweep gives new positions to the results of students who have come back into scope, as
// result.QueueRejoin asked for.
func (d *Service) Sweep(ctx context.Context) error {
	for {
		pending, err := result.PendingRejoins(ctx, d.DB, d.Clock(), maxReturns)
		if err != nil {
			return err
		}
		byOrg := map[id.Organization][]result.Return{}
		for _, r := range pending {
			byOrg[r.Organization] = append(byOrg[r.Organization], r)
		}
		for org, returns := range byOrg {
			err := d.DB.InTx(ctx, func(tx *pg.Tx) error { return result.Rejoin(ctx, tx, org, returns) })
			if err != nil {
				return err
			}
		}
		if len(pending) < maxReturns {
			return nil
		}
	}
}
