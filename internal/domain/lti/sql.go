package lti

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

const consumerColumns = `organization_id, consumer_key, version, sealed, created_at, rotated_at`

func scanConsumer(row pgx.Row) (c Consumer, err error) {
	err = row.Scan(&c.Organization, &c.Key, &c.Version, &c.sealed, &c.CreatedAt, &c.RotatedAt)
	return c, err
}

func selectConsumer(ctx context.Context, q pg.Querier, org id.Organization) (Consumer, error) {
	return scanConsumer(q.QueryRow(ctx, `SELECT `+consumerColumns+` FROM lti_consumers WHERE organization_id = $1`, org))
}

func selectByKey(ctx context.Context, q pg.Querier, key string) (Consumer, error) {
	return scanConsumer(q.QueryRow(ctx, `SELECT `+consumerColumns+` FROM lti_consumers WHERE consumer_key = $1`, key))
}

func upsertConsumer(ctx context.Context, q pg.Querier, c Consumer) error {
	_, err := q.Exec(ctx, `
		INSERT INTO lti_consumers (organization_id, consumer_key, version, sealed, created_at, rotated_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (organization_id) DO UPDATE SET
			version = excluded.version, sealed = excluded.sealed, rotated_at = excluded.rotated_at`,
		c.Organization, c.Key, c.Version, c.sealed, c.CreatedAt, c.RotatedAt)
	return err
}

func deleteConsumer(ctx context.Context, tx *pg.Tx, org id.Organization) (key string, err error) {
	err = tx.QueryRow(ctx, `DELETE FROM lti_consumers WHERE organization_id = $1 RETURNING consumer_key`, org).Scan(&key)
	return key, err
}

func insertNonce(ctx context.Context, q pg.Querier, org id.Organization, nonce string, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `
		INSERT INTO lti_nonces (organization_id, nonce, used_at)
		VALUES ($1, $2, $3)
		ON CONFLICT DO NOTHING`, org, nonce, now)
	return tag.RowsAffected() > 0, err
}

func deleteNonces(ctx context.Context, q pg.Querier, before time.Time) error {
	_, err := q.Exec(ctx, `DELETE FROM lti_nonces WHERE used_at < $1`, before)
	return err
}

// Sealed is where consumers' secrets are; a value is bound to boundTo.
var Sealed = seal.Column{Table: "lti_consumers", Context: `'lti_consumers/' || organization_id || '/' || version`}
