package page

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

func selectKey(ctx context.Context, q pg.Querier) (sealed []byte, err error) {
	err = q.QueryRow(ctx, `SELECT sealed FROM page_keys WHERE version = $1`, version).Scan(&sealed)
	return sealed, err
}

func insertKey(ctx context.Context, q pg.Querier, sealed []byte) error {
	_, err := q.Exec(ctx, `
		INSERT INTO page_keys (version, sealed)
		VALUES ($1, $2)
		ON CONFLICT DO NOTHING`, version, sealed)
	return err
}

func selectSettled(ctx context.Context, q pg.Querier, org id.Organization) (until, drawn int64, err error) {
	err = q.QueryRow(ctx, `SELECT settled, drawn FROM settled_position($1)`, org).Scan(&until, &drawn)
	return until, drawn, err
}

// Sealed is where the keys of cursors are; a value is bound to keyContext.
var Sealed = seal.Column{Table: "page_keys", Context: `'page_keys/' || version`}
