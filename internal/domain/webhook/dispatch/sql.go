package dispatch

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// leaseAsked leases what a person asked for, each delivery with a lease of its own.
func leaseAsked(ctx context.Context, q pg.Querier, until time.Time, limit int) ([]leasedRow, error) {
	return pg.List[leasedRow](ctx, q, `
		UPDATE webhook_deliveries SET status = 'leased', lease = gen_random_uuid(), lease_until = $1
		WHERE id IN (
				SELECT id FROM webhook_deliveries WHERE status = 'waiting' AND asked
				LIMIT $2 FOR UPDATE SKIP LOCKED)
			AND status = 'waiting' AND asked
		RETURNING id AS delivery, endpoint_id AS endpoint, organization_id AS organization, lease`, until, limit)
}

// leaseInOrder leases the oldest deliveries of each URL that has deliveries to be sent in
// order, unless some of these are in flight already. A probed URL gets one, alone.
func leaseInOrder(ctx context.Context, q pg.Querier, now, until time.Time, keys [][16]byte) ([]leasedRow, error) {
	return pg.List[leasedRow](ctx, q, `
		WITH urls AS MATERIALIZED (
			SELECT DISTINCT endpoint_id AS id FROM webhook_deliveries
			WHERE status IN ('waiting', 'leased') AND in_order AND status = 'waiting'
		), free AS MATERIALIZED (
			SELECT e.id, h.consecutive_failures >= $5 AS probed, row_number() OVER (ORDER BY e.id) AS n
			FROM urls JOIN webhook_endpoints e ON e.id = urls.id JOIN webhook_health h ON h.endpoint_id = e.id
			WHERE e.switched_on AND (h.next_probe_at IS NULL OR h.next_probe_at <= $1)
			  AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'leased'
				AND (d.in_order OR h.consecutive_failures >= $5))
		), picked AS MATERIALIZED (
			SELECT d.id, free.n FROM free CROSS JOIN LATERAL (
				SELECT id FROM webhook_deliveries
				WHERE endpoint_id = free.id AND status IN ('waiting', 'leased') AND in_order
					AND status = 'waiting' AND NOT asked
				ORDER BY id LIMIT CASE WHEN free.probed THEN 1 ELSE $4::int END FOR UPDATE SKIP LOCKED
			) AS d WHERE free.n <= cardinality($3::uuid[])
		)
		UPDATE webhook_deliveries AS d SET status = 'leased', lease = ($3::uuid[])[picked.n], lease_until = $2
		FROM picked WHERE d.id = picked.id
		RETURNING d.id AS delivery, d.endpoint_id AS endpoint, d.organization_id AS organization, d.lease`,
		now, until, keys, Batch, webhook.ProbeAfter)
}

// leaseDue leases due deliveries. room is what a URL's allowance leaves; a probed URL has room
// for one once its pause is over. Leases hold Batch deliveries at most, and fewer while few
// are due, so that they are attempted at the same time.
func leaseDue(ctx context.Context, q pg.Querier, now, until time.Time, orgs []id.Organization, keys [][16]byte) ([]leasedRow, error) {
	return pg.List[leasedRow](ctx, q, `
		WITH urls AS MATERIALIZED (
			SELECT e.id, e.organization_id,
				CASE WHEN h.consecutive_failures >= @probe_after THEN 1 ELSE floor(h.allowance)::int END
				- (SELECT count(*)::int FROM webhook_deliveries d
					WHERE d.endpoint_id = e.id AND d.status = 'leased') AS room
			FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id
			WHERE e.switched_on AND (coalesce(cardinality(@orgs::bigint[]), 0) = 0 OR e.organization_id = ANY (@orgs))
			  AND (h.next_probe_at IS NULL OR h.next_probe_at <= @now)
		), picked AS MATERIALIZED (
			SELECT d.id, urls.id AS endpoint_id, urls.organization_id,
				row_number() OVER (PARTITION BY urls.id ORDER BY d.due_at, d.id) - 1 AS turn,
				count(*) OVER (PARTITION BY urls.id) AS found
			FROM urls CROSS JOIN LATERAL (
				SELECT id, due_at FROM webhook_deliveries
				WHERE endpoint_id = urls.id AND status = 'waiting' AND due_at <= @now AND NOT in_order
				ORDER BY due_at, id LIMIT greatest(0, urls.room) FOR UPDATE SKIP LOCKED
			) AS d
		), cut AS (
			SELECT id, endpoint_id, organization_id, turn / greatest(1, least(@batch, found / 2)) AS part FROM picked
		), numbered AS (
			SELECT id, endpoint_id, organization_id,
				dense_rank() OVER (ORDER BY part, endpoint_id) AS n FROM cut
		)
		UPDATE webhook_deliveries AS d
		SET status = 'leased', lease = (@keys::uuid[])[numbered.n], lease_until = @until
		FROM numbered WHERE d.id = numbered.id AND numbered.n <= cardinality(@keys::uuid[])
		RETURNING d.id AS delivery, d.endpoint_id AS endpoint, d.organization_id AS organization, d.lease`,
		pg.Args{
			"now":         now,
			"until":       until,
			"orgs":        orgs,
			"keys":        keys,
			"batch":       Batch,
			"probe_after": webhook.ProbeAfter,
		})
}

// Expired lists leases that have run out, oldest first, so that the relay can ask whether
// their tasks still wait on the run queue.
func Expired(ctx context.Context, q pg.Querier, now time.Time, limit int) ([]string, error) {
	return pg.Column[string](ctx, q, `
		SELECT lease::text FROM webhook_deliveries WHERE status = 'leased' AND lease_until <= $1
		GROUP BY lease ORDER BY min(lease_until) LIMIT $2`, now, limit)
}

// Release makes the deliveries of leases due again at once, and counts them. Deliveries to a
// URL that was removed are cancelled.
func Release(ctx context.Context, q pg.Querier, leases []string) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE webhook_deliveries d SET lease = NULL, lease_until = NULL,
			status = CASE WHEN EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = d.endpoint_id)
				THEN 'waiting' ELSE 'cancelled' END
		WHERE status = 'leased' AND lease = ANY ($1::uuid[])`, leases)
	return tag.RowsAffected(), err
}

// Renew extends leases until the given time, and counts the deliveries that they still hold.
func Renew(ctx context.Context, q pg.Querier, leases []string, until time.Time) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE webhook_deliveries SET lease_until = greatest(lease_until, $2)
		WHERE status = 'leased' AND lease = ANY ($1::uuid[])`, leases, until)
	return tag.RowsAffected(), err
}

const selectTarget = `
	SELECT
		e.url,
		e.time_zone,
		e.switched_on,
		e.secret_version,
		s.sealed,
		o.id,
		o.slug,
		o.name
	FROM webhook_endpoints e
	JOIN webhook_secrets s ON s.endpoint_id = e.id AND s.version = e.secret_version
	JOIN organizations o ON o.id = e.organization_id
	WHERE e.id = $1`

type targetRow struct {
	URL           string
	TimeZone      string
	SwitchedOn    bool
	SecretVersion int
	Sealed        []byte
	webhook.Sender
}

func readTarget(rows pgx.Rows, endpoint id.Endpoint) (Target, error) {
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[targetRow])
	return Target{
		URL:           r.URL,
		Zone:          r.TimeZone,
		SwitchedOn:    r.SwitchedOn,
		Secret:        r.Sealed,
		SecretContext: webhook.SecretContext(endpoint, r.SecretVersion),
		From:          r.Sender,
	}, err
}

// ReadTarget reads the target as it is now; the zero Target when the URL was removed.
func ReadTarget(ctx context.Context, q pg.Querier, endpoint id.Endpoint) (Target, error) {
	rows, err := q.Query(ctx, selectTarget, endpoint)
	if err != nil {
		return Target{}, err
	}
	target, err := readTarget(rows, endpoint)
	if pg.None(err) {
		return Target{}, nil
	}
	return target, err
}

type dueRow struct {
	Delivery   id.Delivery
	Number     int
	Tries      int
	LeaseUntil time.Time
	webhook.Stored
}

// Load reads what a lease still holds, and its deadline, in one round trip. No deliveries mean
// that nothing is to be attempted: the lease was lost or settled, or its URL was removed.
func Load(ctx context.Context, q pg.Querier, d task.Deliver) (Target, []Due, time.Time, error) {
	var (
		target Target
		rows   []dueRow
		until  time.Time
		batch  pgx.Batch
	)
	batch.Queue(selectTarget, d.Endpoint).Query(func(found pgx.Rows) (err error) {
		target, err = readTarget(found, d.Endpoint)
		return err
	})
	least, greatest := bounds(d.Deliveries)
	batch.Queue(`
		SELECT
			d.id AS delivery,
			d.attempts + 1 AS number,
			d.tries,
			d.lease_until,
			v.id,
			v.type,
			v.created_at,
			v.data,
			coalesce(v.traceparent, '') AS traceparent
		FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
		WHERE d.id = ANY ($1::uuid[]) AND d.id >= $2 AND d.id <= $3
		  AND d.status = 'leased' AND d.lease = $4::uuid AND d.endpoint_id = $5
		ORDER BY d.id`, d.Deliveries, least, greatest, d.Lease, d.Endpoint).Query(func(found pgx.Rows) (err error) {
		rows, err = pgx.CollectRows(found, pgx.RowToStructByName[dueRow])
		return err
	})
	err := q.SendBatch(ctx, &batch).Close()
	if pg.None(err) {
		return Target{}, nil, time.Time{}, nil // the URL was removed
	}
	dues := make([]Due, len(rows))
	for i, r := range rows {
		dues[i] = Due{Delivery: r.Delivery, Event: r.Stored, Number: r.Number, Tries: r.Tries}
		until = r.LeaseUntil
	}
	return target, dues, until, err
}

// Traces reads the traceparents of the leases' events, without events that were not traced.
func Traces(ctx context.Context, q pg.Querier, leases []Lease) ([]string, error) {
	var deliveries []id.Delivery
	for _, l := range leases {
		deliveries = append(deliveries, l.Deliveries...)
	}
	least, greatest := bounds(deliveries)
	return pg.Column[string](ctx, q, `
		SELECT v.traceparent FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
		WHERE d.id = ANY ($1::uuid[]) AND d.id >= $2 AND d.id <= $3 AND v.traceparent IS NOT NULL`,
		deliveries, least, greatest)
}
