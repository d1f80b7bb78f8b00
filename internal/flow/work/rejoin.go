package work

import (
	"context"

	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// maxReturns limits how many students one transaction of Sweep takes. Engines that report work of the
// organization wait for it.
const maxReturns = 50

// Sweep gives new positions to the work of students whom programs of an earlier version, which are still
// running, have brought back into scope (result.TakeReturns).
func (d *Service) Sweep(ctx context.Context) error {
	for taken := maxReturns; taken >= maxReturns; {
		err := d.DB.InTx(ctx, func(tx *pg.Tx) error {
			taken = 0
			users, err := result.TakeReturns(ctx, tx, maxReturns)
			if err != nil {
				return err
			}
			for _, u := range users {
				taken += len(u)
			}
			var b pg.Batch
			notify.RelistAll(&b, users)
			return b.Send(ctx, tx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
