package replay

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func take(ctx context.Context, q pg.Querier, a Attempt) (found Found, mine bool, err error) {
	tag, err := q.Exec(ctx, `
		INSERT INTO idempotency_keys AS k (organization_id, key, request, holder, alive_at, created_at)
		VALUES ($1, $2, $3, $4, now(), now())
		ON CONFLICT (organization_id, key) DO UPDATE
			SET request = excluded.request, holder = excluded.holder, alive_at = now(), created_at = now(),
				status = NULL, content_type = '', sealed = NULL
			WHERE k.created_at < now() - $6::interval
			   OR k.status IS NULL AND k.alive_at < now() - $5::interval AND k.request = excluded.request`,
		a.Organization, a.Key, a.Request, a.Holder, silence, keep)
	if err != nil || tag.RowsAffected() == 1 {
		return found, err == nil, err
	}
	rows, err := q.Query(ctx, `
		SELECT request, status, content_type, sealed FROM idempotency_keys WHERE organization_id = $1 AND key = $2`, a.Organization, a.Key)
	if err != nil {
		return found, false, err
	}
	found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Found])
	if pg.None(err) { // it was let go in between: the next turn takes it
		return Found{Request: a.Request}, false, nil
	}
	return found, false, err
}

func answer(ctx context.Context, q pg.Querier, a Attempt, status int, contentType string, sealed []byte) error {
	_, err := q.Exec(ctx, `
		UPDATE idempotency_keys SET status = $4, content_type = $5, sealed = $6
		WHERE organization_id = $1 AND key = $2 AND holder = $3`, a.Organization, a.Key, a.Holder, status, contentType, sealed)
	return err
}

func alive(ctx context.Context, q pg.Querier, a Attempt) error {
	_, err := q.Exec(ctx, `
		UPDATE idempotency_keys SET alive_at = now()
		WHERE organization_id = $1 AND key = $2 AND holder = $3`, a.Organization, a.Key, a.Holder)
	return err
}

func release(ctx context.Context, q pg.Querier, a Attempt) error {
	_, err := q.Exec(ctx, `
		DELETE FROM idempotency_keys WHERE organization_id = $1 AND key = $2 AND holder = $3 AND status IS NULL`, a.Organization, a.Key, a.Holder)
	return err
}

func deleteExpired(ctx context.Context, q pg.Querier) (int64, error) {
	tag, err := q.Exec(ctx, `DELETE FROM idempotency_keys WHERE created_at < now() - $1::interval`, keep)
	return tag.RowsAffected(), err
}
