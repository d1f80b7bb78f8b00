package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// leaseAsked leases what somebody asked for by hand, a lease each.
func leaseAsked(ctx context.Context, q pg.Querier, until time.Time, limit int) ([]leasedRow, error) {
	rows, err := q.Query(ctx, `
		UPDATE webhook_deliveries SET status = 'leased', lease = gen_random_uuid(), lease_until = $1
		WHERE id IN (SELECT id FROM webhook_deliveries WHERE status = 'waiting' AND asked LIMIT $2 FOR UPDATE SKIP LOCKED)
		  AND status = 'waiting' AND asked
		RETURNING id, endpoint_id, organization_id, lease`, until, limit)
	return collectLeased(rows, err)
}

func collectLeased(rows pgx.Rows, err error) ([]leasedRow, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r leasedRow, err error) {
		err = row.Scan(&r.delivery, &r.endpoint, &r.organization, &r.lease)
		return r, err
	})
}

// leaseInOrder leases, for each URL with deliveries that leave one after the other, the
// oldest of them, unless some are on their way already. A probed URL gets one, alone.
func leaseInOrder(ctx context.Context, q pg.Querier, now, until time.Time, keys [][16]byte) ([]leasedRow, error) {
	rows, err := q.Query(ctx, `
		WITH urls AS MATERIALIZED (
			SELECT DISTINCT endpoint_id AS id FROM webhook_deliveries WHERE status IN ('waiting', 'leased') AND in_order AND status = 'waiting'
		), free AS MATERIALIZED (
			SELECT e.id, h.consecutive_failures >= $5 AS probed, row_number() OVER (ORDER BY e.id) AS n
			FROM urls JOIN webhook_endpoints e ON e.id = urls.id JOIN webhook_health h ON h.endpoint_id = e.id
			WHERE e.switched_on AND (h.next_probe_at IS NULL OR h.next_probe_at <= $1)
			  AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'leased'
				AND (d.in_order OR h.consecutive_failures >= $5))
		), picked AS MATERIALIZED (
			SELECT d.id, free.n FROM free CROSS JOIN LATERAL (
				SELECT id FROM webhook_deliveries WHERE endpoint_id = free.id AND status IN ('waiting', 'leased') AND in_order AND status = 'waiting' AND NOT asked
				ORDER BY id LIMIT CASE WHEN free.probed THEN 1 ELSE $4::int END FOR UPDATE SKIP LOCKED
			) AS d WHERE free.n <= cardinality($3::uuid[])
		)
		UPDATE webhook_deliveries AS d SET status = 'leased', lease = ($3::uuid[])[picked.n], lease_until = $2
		FROM picked WHERE d.id = picked.id
		RETURNING d.id, d.endpoint_id, d.organization_id, d.lease`, now, until, keys, Batch, webhook.ProbeAfter)
	leased, err := collectLeased(rows, err)
	for i := range leased {
		leased[i].inOrder = true
	}
	sortLeased(leased)
	return leased, err
}

func sortLeased(leased []leasedRow) {
	slices.SortFunc(leased, func(a, b leasedRow) int {
		return cmp.Or(bytes.Compare(a.lease[:], b.lease[:]), bytes.Compare(a.delivery[:], b.delivery[:]))
	})
}

// leaseDue marks due rows as leased and returns them ordered by lease. room is what a
// URL's allowance leaves; a probed URL has room for one, once its pause is over. Rows are
// cut into leases of at most Batch, smaller while few are due so that they run at once.
func leaseDue(ctx context.Context, q pg.Querier, now, until time.Time, orgs []id.Organization, keys [][16]byte) ([]leasedRow, error) {
	rows, err := q.Query(ctx, `
		WITH urls AS MATERIALIZED (
			SELECT e.id, e.organization_id,
				CASE WHEN h.consecutive_failures >= $6 THEN 1 ELSE floor(h.allowance)::int END
				- (SELECT count(*)::int FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'leased') AS room
			FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id
			WHERE e.switched_on AND (cardinality($3::bigint[]) = 0 OR e.organization_id = ANY ($3))
			  AND (h.next_probe_at IS NULL OR h.next_probe_at <= $1)
		), picked AS MATERIALIZED (
			SELECT d.id, urls.id AS endpoint_id, urls.organization_id,
				row_number() OVER (PARTITION BY urls.id ORDER BY d.due_at, d.id) - 1 AS turn,
				count(*) OVER (PARTITION BY urls.id) AS found
			FROM urls CROSS JOIN LATERAL (
				SELECT id, due_at FROM webhook_deliveries
				WHERE endpoint_id = urls.id AND status = 'waiting' AND due_at <= $1 AND NOT in_order
				ORDER BY due_at, id LIMIT greatest(0, urls.room) FOR UPDATE SKIP LOCKED
			) AS d
		), cut AS (
			SELECT id, endpoint_id, organization_id, turn / greatest(1, least($5, found / 2)) AS part FROM picked
		), numbered AS (
			SELECT id, endpoint_id, organization_id,
				dense_rank() OVER (ORDER BY part, endpoint_id) AS n FROM cut
		)
		UPDATE webhook_deliveries AS d
		SET status = 'leased', lease = ($4::uuid[])[numbered.n], lease_until = $2
		FROM numbered WHERE d.id = numbered.id AND numbered.n <= cardinality($4::uuid[])
		RETURNING d.id, d.endpoint_id, d.organization_id, d.lease`,
		now, until, toInts(orgs), keys, Batch, webhook.ProbeAfter)
	leased, err := collectLeased(rows, err)
	sortLeased(leased)
	return leased, err
}

func toInts[T ~int64](ids []T) []int64 {
	out := make([]int64, len(ids))
	for i, v := range ids {
		out[i] = int64(v)
	}
	return out
}

func expired(ctx context.Context, q pg.Querier, now time.Time, limit int) ([]string, error) {
	rows, err := q.Query(ctx, `
		SELECT lease::text FROM webhook_deliveries WHERE status = 'leased' AND lease_until <= $1
		GROUP BY lease ORDER BY min(lease_until) LIMIT $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func release(ctx context.Context, q pg.Querier, leases []string) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE webhook_deliveries d SET lease = NULL, lease_until = NULL,
			status = CASE WHEN EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = d.endpoint_id) THEN 'waiting' ELSE 'cancelled' END
		WHERE status = 'leased' AND lease = ANY ($1::uuid[])`, leases)
	return tag.RowsAffected(), err
}

func renew(ctx context.Context, q pg.Querier, leases []string, until time.Time) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE webhook_deliveries SET lease_until = greatest(lease_until, $2)
		WHERE status = 'leased' AND lease = ANY ($1::uuid[])`, leases, until)
	return tag.RowsAffected(), err
}

const targetRow = `
	SELECT e.url, e.time_zone, e.switched_on, e.secret_version, s.sealed, o.id, o.slug, o.name
	FROM webhook_endpoints e
	JOIN webhook_secrets s ON s.endpoint_id = e.id AND s.version = e.secret_version
	JOIN organizations o ON o.id = e.organization_id
	WHERE e.id = $1`

func scanTarget(row pgx.Row, endpoint id.Endpoint) (t Target, err error) {
	var version int
	err = row.Scan(&t.URL, &t.Zone, &t.SwitchedOn, &version, &t.Secret, &t.From.ID, &t.From.Slug, &t.From.Name)
	t.SecretContext = webhook.SecretContext(endpoint, version)
	return t, err
}

// load reads target and deliveries in one round trip. The bounds on id let PostgreSQL
// leave out the partitions of other days.
func load(ctx context.Context, q pg.Querier, d task.Deliver) (Target, []Due, time.Time, error) {
	var (
		target Target
		dues   []Due
		until  time.Time
		batch  pgx.Batch
	)
	batch.Queue(targetRow, d.Endpoint).QueryRow(func(row pgx.Row) (err error) {
		target, err = scanTarget(row, d.Endpoint)
		return err
	})
	ids, least, most := bounds(d.Deliveries)
	batch.Queue(`
		SELECT d.id, d.attempts + 1, d.tries, d.lease_until, v.id, v.type, v.created_at, v.data, coalesce(v.traceparent, '')
		FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
		WHERE d.id = ANY ($1::uuid[]) AND d.id >= $2 AND d.id <= $3
		  AND d.status = 'leased' AND d.lease = $4::uuid AND d.endpoint_id = $5
		ORDER BY d.id`, ids, least, most, d.Lease, d.Endpoint).Query(func(rows pgx.Rows) error {
		var due Due
		_, err := pgx.ForEachRow(rows, []any{&due.Delivery, &due.Number, &due.Tries, &until,
			&due.Event.ID, &due.Event.Type, &due.Event.CreatedAt, &due.Event.Data, &due.Event.Traceparent}, func() error {
			dues = append(dues, due)
			return nil
		})
		return err
	})
	err := q.SendBatch(ctx, &batch).Close()
	if pg.None(err) {
		return Target{}, nil, time.Time{}, nil // the URL was removed
	}
	return target, dues, until, err
}

func selectTraces(ctx context.Context, q pg.Querier, deliveries []id.Delivery) ([]string, error) {
	ids, least, most := bounds(deliveries)
	rows, err := q.Query(ctx, `
		SELECT v.traceparent FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
		WHERE d.id = ANY ($1::uuid[]) AND d.id >= $2 AND d.id <= $3 AND v.traceparent IS NOT NULL`, ids, least, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func bounds(deliveries []id.Delivery) (ids [][16]byte, least, most id.Delivery) {
	ids = make([][16]byte, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d
		if i == 0 || bytes.Compare(d[:], least[:]) < 0 {
			least = d
		}
		if i == 0 || bytes.Compare(d[:], most[:]) > 0 {
			most = d
		}
	}
	return ids, least, most
}
