package finalize

import (
	"context"

	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// maxReturned bounds how many students one look of Sweep takes.
const maxReturned = 200

// Sweep gives new positions to the results of students who have come back into scope,
// however they did: by hand, by an import, or because a course began.
func (d *Desk) Sweep(ctx context.Context) error {
	for {
		students, err := result.Returned(ctx, d.DB, clock.DateIn(d.Clock(), d.Zone), maxReturned)
		if err != nil {
			return err
		}
		for _, s := range students {
			err := d.DB.InTx(ctx, func(tx *pg.Tx) error { return result.Rejoin(ctx, tx, s.Organization, s.User) })
			if err != nil {
				return err
			}
		}
		if len(students) < maxReturned {
			return nil
		}
	}
}
