package page

import (
	"context"
	"time"

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

// Loss is what a list lost when its database came back with an earlier state.
type Loss struct {
	At   time.Time
	Kept int64 // the last position that it still has of those before
}

// selectLoss returns no row if nothing is lost that was listed up to the position.
func selectLoss(ctx context.Context, q pg.Querier, org id.Organization, epochs string, position int64) (Loss, error) {
	return pg.One[Loss](ctx, q, `
		SELECT began_at AS at, kept FROM list_epochs
		WHERE organization_id = $1 AND list = $2 AND kept < $3 AND begins > $3
		ORDER BY kept LIMIT 1`, org, epochs, position)
}

// EpochsSince counts the epochs that lists have begun since a time: the database came back with an earlier state, or a
// standby took over.
func EpochsSince(ctx context.Context, q pg.Querier, since time.Time) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM list_epochs WHERE began_at >= $1 AND begins > 0`, since).Scan(&n)
	return n, err
}

// idGap is more ids of a kind than are given between a backup and the loss of what came after it.
const idGap = 1_000_000

// moveIDs moves the sequences of ids, without those of positions, and counts them.
func moveIDs(ctx context.Context, q pg.Querier) (n int, err error) {
	err = q.QueryRow(ctx, `
		SELECT count(setval(format('%I.%I', schemaname, sequencename)::regclass, last_value + $1))
		FROM pg_sequences
		WHERE schemaname = current_schema() AND data_type = 'bigint'::regtype
			AND sequencename NOT LIKE 'positions\_%' AND last_value IS NOT NULL`, idGap).Scan(&n)
	return n, err
}

func selectOrganizations(ctx context.Context, q pg.Querier, after id.Organization, limit int) ([]id.Organization, error) {
	return pg.Column[id.Organization](ctx, q, `
		SELECT id FROM organizations WHERE id > $1 ORDER BY id LIMIT $2`, after, limit)
}

func beginEpochs(ctx context.Context, q pg.Querier, orgs []id.Organization) error {
	_, err := q.Exec(ctx, `SELECT begin_epochs($1)`, orgs)
	return err
}

// Sealed is where the keys of cursors are; a value is bound to keyContext.
var Sealed = seal.Column{Table: "page_keys", Context: `'page_keys/' || version`}
