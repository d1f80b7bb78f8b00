package replay

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Take makes the caller the worker on the key, which mine says, when the key is new or has
// expired by now. It does so too when the earlier worker counts as dead, if the request is the
// same. Otherwise it reads what is stored.
func Take(ctx context.Context, q pg.Querier, a Attempt, now time.Time) (found Found, mine bool, err error) {
	tag, err := q.Exec(ctx, `
		INSERT INTO idempotency_keys AS k (organization_id, key, request, holder, alive_at, created_at)
		VALUES (@org, @key, @request, @holder, now(), @now)
		ON CONFLICT (organization_id, key) DO UPDATE SET
			request = excluded.request,
			holder = excluded.holder,
			alive_at = now(),
			created_at = excluded.created_at,
			status = NULL,
			content_type = '',
			sealed = NULL
		WHERE k.created_at < @expired
		   OR k.status IS NULL AND k.alive_at < now() - @silence::interval AND k.request = excluded.request`,
		pg.Args{
			"org":     a.Organization,
			"key":     a.Key,
			"request": a.Request,
			"holder":  a.Holder,
			"now":     now,
			"expired": now.Add(-keep),
			"silence": silence,
		})
	if err != nil || tag.RowsAffected() == 1 {
		return found, err == nil, err
	}
	found, err = pg.One[Found](ctx, q, `
		SELECT request, status, content_type, sealed FROM idempotency_keys
		WHERE organization_id = $1 AND key = $2`, a.Organization, a.Key)
	if pg.None(err) { // it was released in between; the caller's next try takes it
		return Found{Request: a.Request}, false, nil
	}
	return found, false, err
}

// Keep stores the response and ends the work. An attempt that was replaced stores nothing.
func Keep(ctx context.Context, q pg.Querier, a Attempt, status int, contentType string, sealed []byte) error {
	_, err := q.Exec(ctx, `
		UPDATE idempotency_keys SET status = @status, content_type = @content_type, sealed = @sealed
		WHERE organization_id = @org AND key = @key AND holder = @holder`,
		pg.Args{
			"org":          a.Organization,
			"key":          a.Key,
			"holder":       a.Holder,
			"status":       status,
			"content_type": contentType,
			"sealed":       sealed,
		})
	return err
}

// Alive says that the worker is still at work.
func Alive(ctx context.Context, q pg.Querier, a Attempt) error {
	_, err := q.Exec(ctx, `
		UPDATE idempotency_keys SET alive_at = now()
		WHERE organization_id = $1 AND key = $2 AND holder = $3`, a.Organization, a.Key, a.Holder)
	return err
}

// Release ends the work without a response: the key is free again.
func Release(ctx context.Context, q pg.Querier, a Attempt) error {
	_, err := q.Exec(ctx, `
		DELETE FROM idempotency_keys
		WHERE organization_id = $1 AND key = $2 AND holder = $3 AND status IS NULL`, a.Organization, a.Key, a.Holder)
	return err
}

// Trim deletes the oldest responses of the organization beyond the bounds. Work in progress counts
// nothing and stays.
func Trim(ctx context.Context, q pg.Querier, org id.Organization, b Bounds) error {
	_, err := q.Exec(ctx, `
		WITH newest AS (
			SELECT
				key,
				row_number() OVER newest AS nth,
				sum(octet_length(sealed)) OVER newest AS bytes
			FROM idempotency_keys WHERE organization_id = $1 AND status IS NOT NULL
			WINDOW newest AS (ORDER BY created_at DESC, key ROWS UNBOUNDED PRECEDING)),
		beyond AS (
			SELECT k.key FROM idempotency_keys k
			WHERE k.organization_id = $1 AND k.status IS NOT NULL
				AND k.key = ANY (SELECT n.key FROM newest n WHERE n.nth > $2 OR n.bytes > $3)
			FOR UPDATE SKIP LOCKED)
		DELETE FROM idempotency_keys k USING beyond b
		WHERE k.organization_id = $1 AND k.key = b.key`, org, b.Answers, b.Bytes)
	return err
}

// DropExpired deletes the keys that have expired by now, and counts them.
func DropExpired(ctx context.Context, q pg.Querier, now time.Time) (int64, error) {
	return pg.Drop(ctx, q, "idempotency_keys", `created_at < $1`, now.Add(-keep))
}

// Sealed is where answers are; a value is bound to a name that the organization and the key are in.
var Sealed = seal.Column{Table: "idempotency_keys", Context: `'idempotency_keys/' || organization_id || '/' || key`}
