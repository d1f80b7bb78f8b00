package page

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// restoreBatch is how many organizations one transaction of AfterRestore has.
const restoreBatch = 500

// AfterRestore has no number be given again that was given before the database came back with an earlier
// state. It begins epochs of all lists and moves the sequences of ids, and returns how many organizations
// and sequences there were. It needs the rights of the schema's owner, and can be repeated.
func AfterRestore(ctx context.Context, db *pg.DB) (organizations, ids int, err error) {
	if ids, err = moveIDs(ctx, db); err != nil {
		return 0, ids, err
	}
	for after := id.Organization(0); ; {
		batch, err := selectOrganizations(ctx, db, after, restoreBatch)
		if err != nil || len(batch) == 0 {
			return organizations, ids, err
		}
		if err := beginEpochs(ctx, db, batch); err != nil {
			return organizations, ids, err
		}
		organizations, after = organizations+len(batch), batch[len(batch)-1]
	}
}
