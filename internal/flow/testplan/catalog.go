package testplan

import (
	"context"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// PutItem is catalog.Put. Plans that lack a paper are decided by the next pass if the item is a test that
// they may use (reference: plans#test-kinds).
func (o *Service) PutItem(ctx context.Context, by audit.Actor, owner id.Organization, key catalog.Key, p catalog.Patch) (i catalog.Item, created bool, err error) {
	now := o.Clock()
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		if i, created, err = catalog.Put(ctx, tx, by, owner, key, p, now); err != nil || i.Kind != catalog.Test || !i.Active {
			return err
		}
		return plan.TouchUnfilled(ctx, tx, owner, i.Type, now)
	})
	return i, created, err
}
