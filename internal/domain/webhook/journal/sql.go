package journal

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// deliveryColumns follow the struct Delivery, without the attempts.
const deliveryColumns = `d.id, d.event_id, v.type, CASE d.status WHEN 'leased' THEN 'in_flight' ELSE d.status END,
	v.created_at, CASE WHEN d.status = 'waiting' THEN d.due_at END, d.finished_at`

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	err = row.Scan(&d.ID, &d.Event, &d.Type, &d.Status, &d.CreatedAt, &d.DueAt, &d.FinishedAt)
	return d, err
}

// endedOnly is what the index of deliveries that ended without a receipt is limited to.
const endedOnly = ` AND d.status IN ('declined', 'exhausted', 'skipped', 'cancelled')`

func selectDeliveries(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, f Filter, before id.Delivery, limit int) ([]Delivery, error) {
	statuses := make([]string, len(f.Statuses))
	rare := len(f.Statuses) > 0
	for i, s := range f.Statuses {
		statuses[i] = string(s)
		if s == InFlight {
			statuses[i] = "leased"
		}
		rare = rare && slices.Contains(ended, s)
	}
	narrow := ""
	if rare {
		narrow = endedOnly
	}
	rows, err := q.Query(ctx, `SELECT `+deliveryColumns+`
		FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
		WHERE d.organization_id = $1 AND d.endpoint_id = $2
		  AND (cardinality($3::text[]) = 0 OR d.status = ANY ($3)) AND ($4::uuid = '00000000-0000-0000-0000-000000000000' OR d.id < $4)`+narrow+`
		ORDER BY d.id DESC LIMIT $5`, org, endpoint, statuses, before, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanDelivery)
}

func selectDelivery(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, delivery id.Delivery) (Delivery, error) {
	rows, err := q.Query(ctx, `SELECT `+deliveryColumns+`
		FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
		WHERE d.organization_id = $1 AND d.endpoint_id = $2 AND d.id = $3`, org, endpoint, delivery)
	if err != nil {
		return Delivery{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanDelivery)
}

func selectAttempts(ctx context.Context, q pg.Querier, list []Delivery) ([]Attempt, error) {
	ids := make([][16]byte, len(list))
	least, most := list[0].ID, list[0].ID
	for i, d := range list {
		ids[i] = d.ID
		if slices.Compare(d.ID[:], least[:]) < 0 {
			least = d.ID
		}
		if slices.Compare(d.ID[:], most[:]) > 0 {
			most = d.ID
		}
	}
	rows, err := q.Query(ctx, `
		SELECT delivery_id, number, started_at, duration_us, outcome, cause, detail, response_status, response_body, request_headers, peer,
			coalesce(dns_us, 0), coalesce(connect_us, 0), coalesce(tls_us, 0), coalesce(first_byte_us, 0)
		FROM webhook_attempts WHERE delivery_id = ANY ($1::uuid[]) AND delivery_id >= $2 AND delivery_id <= $3
		ORDER BY delivery_id, number`, ids, least, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Attempt, err error) {
		var took, dns, connect, tls, first int64
		err = row.Scan(&a.Delivery, &a.Number, &a.StartedAt, &took, &a.Verdict, &a.Cause, &a.Detail, &a.Status, &a.Response, &a.RequestHeaders, &a.Peer,
			&dns, &connect, &tls, &first)
		a.Duration = micros(took)
		a.Timing = webhook.Timing{DNS: micros(dns), Connect: micros(connect), TLS: micros(tls), FirstByte: micros(first)}
		return a, err
	})
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// lockDelivery locks a delivery and reads its event, type and status.
func lockDelivery(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, delivery id.Delivery) (d Delivery, erased bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT d.event_id, v.type, CASE d.status WHEN 'leased' THEN 'in_flight' ELSE d.status END, v.erased
		FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
		WHERE d.organization_id = $1 AND d.endpoint_id = $2 AND d.id = $3
		  AND EXISTS (SELECT FROM webhook_endpoints e WHERE e.organization_id = $1 AND e.id = $2)
		FOR UPDATE OF d`, org, endpoint, delivery).Scan(&d.Event, &d.Type, &d.Status, &erased)
	return d, erased, err
}

func ask(ctx context.Context, tx *pg.Tx, delivery id.Delivery, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE webhook_deliveries SET tries = CASE status WHEN 'waiting' THEN tries ELSE 0 END,
			status = 'waiting', due_at = $2, asked = true, in_order = false, finished_at = NULL
		WHERE id = $1`, delivery, now)
	return err
}

func selectOn(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint) (on bool, url string, err error) {
	err = tx.QueryRow(ctx, `SELECT switched_on, url FROM webhook_endpoints WHERE organization_id = $1 AND id = $2`, org, endpoint).Scan(&on, &url)
	return on, url, err
}

// recoverable is what a recovery of $1 from $2 to $3 puts back. Pings are not: they told
// about a moment that is over.
const recoverable = ` d.endpoint_id = $1 AND d.id >= uuid7_floor($2) AND d.id < uuid7_floor($3)` + endedOnly + ` AND d.status <> 'cancelled'
	AND NOT EXISTS (SELECT FROM webhook_events v WHERE v.id = d.event_id AND v.type = 'ping') `

const recoveryColumns = `r.id, r.organization_id, r.endpoint_id, r.since, r.until, r.status, r.total, r.put_back,
	(SELECT count(*) FROM webhook_deliveries d WHERE d.endpoint_id = r.endpoint_id AND d.status IN ('waiting', 'leased') AND d.in_order),
	r.created_at, r.finished_at`

func insertRecovery(ctx context.Context, tx *pg.Tx, r Recovery) (Recovery, error) {
	var made id.Recovery
	err := tx.QueryRow(ctx, `
		INSERT INTO webhook_recoveries (organization_id, endpoint_id, since, until, status, total, created_at)
		SELECT $4, $1, $2, $3, 'running', (SELECT count(*) FROM webhook_deliveries d WHERE`+recoverable+`), $5
		RETURNING id`, r.Endpoint, r.Since, r.Until, r.Organization, r.CreatedAt).Scan(&made)
	if err != nil {
		return Recovery{}, err
	}
	rows, err := tx.Query(ctx, `SELECT `+recoveryColumns+` FROM webhook_recoveries r WHERE r.id = $1`, made)
	if err != nil {
		return Recovery{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Recovery])
}

func selectRecoveries(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint) ([]Recovery, error) {
	rows, err := q.Query(ctx, `SELECT `+recoveryColumns+` FROM webhook_recoveries r
		WHERE r.organization_id = $1 AND r.endpoint_id = $2 ORDER BY r.id DESC LIMIT 20`, org, endpoint)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Recovery])
}

// recoveryState is what a step needs to know.
type recoveryState struct {
	Recovery
	on      bool
	waiting int
}

func lockRecovery(ctx context.Context, tx *pg.Tx, recovery id.Recovery) (s recoveryState, err error) {
	err = tx.QueryRow(ctx, `
		SELECT r.id, r.organization_id, r.endpoint_id, r.since, r.until, e.switched_on,
			(SELECT count(*) FROM webhook_deliveries d WHERE d.endpoint_id = r.endpoint_id AND d.status IN ('waiting', 'leased') AND d.in_order)
		FROM webhook_recoveries r JOIN webhook_endpoints e ON e.id = r.endpoint_id
		WHERE r.id = $1 AND r.status = 'running' FOR UPDATE OF r`, recovery).
		Scan(&s.ID, &s.Organization, &s.Endpoint, &s.Since, &s.Until, &s.on, &s.waiting)
	return s, err
}

// putBack makes up to limit deliveries after the recovery's position due, in order.
func putBack(ctx context.Context, tx *pg.Tx, s recoveryState, now time.Time, limit int) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `
		WITH picked AS (
			SELECT d.id FROM webhook_deliveries d
			WHERE`+recoverable+`AND d.id > (SELECT coalesce(position, '00000000-0000-0000-0000-000000000000') FROM webhook_recoveries WHERE id = $4)
			ORDER BY d.id LIMIT $6 FOR UPDATE OF d
		), moved AS (
			UPDATE webhook_deliveries d SET status = 'waiting', tries = 0, due_at = $5, finished_at = NULL, in_order = true, asked = false
			FROM picked WHERE d.id = picked.id
			RETURNING d.id
		), counted AS (
			SELECT count(*)::int AS n FROM moved
		), noted AS (
			UPDATE webhook_recoveries SET put_back = put_back + counted.n,
				position = coalesce((SELECT id FROM moved ORDER BY id DESC LIMIT 1), position)
			FROM counted WHERE webhook_recoveries.id = $4
		)
		SELECT n FROM counted`, s.Endpoint, s.Since, s.Until, s.ID, now, limit).Scan(&n)
	return n, err
}

func finishRecovery(ctx context.Context, tx *pg.Tx, recovery id.Recovery, status string, now time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE webhook_recoveries SET status = $2, finished_at = $3 WHERE id = $1`, recovery, status, now)
	return err
}

// dropPartitions drops days, and from the default partitions what is as old. It gives way
// when it would have to wait, as everything else would wait behind it.
func dropPartitions(ctx context.Context, tx *pg.Tx, before clock.Date) (int, error) {
	if err := pg.GiveWay(ctx, tx); err != nil {
		return 0, err
	}
	var dropped int
	if err := tx.QueryRow(ctx, `SELECT webhook_drop_partitions($1)`, before).Scan(&dropped); err != nil {
		return 0, err
	}
	var batch pgx.Batch
	batch.Queue(`DELETE FROM webhook_attempts_default a WHERE delivery_id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC')
		AND NOT EXISTS (SELECT FROM webhook_deliveries_default d WHERE d.id = a.delivery_id AND d.status IN ('waiting', 'leased'))`, before)
	batch.Queue(`DELETE FROM webhook_deliveries_default WHERE id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC') AND status NOT IN ('waiting', 'leased')`, before)
	batch.Queue(`DELETE FROM webhook_events_default v WHERE id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC')
		AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.event_id = v.id AND d.status IN ('waiting', 'leased'))`, before)
	return dropped, tx.SendBatch(ctx, &batch).Close()
}

func skipOff(ctx context.Context, q pg.Querier, now time.Time, limit int) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE webhook_deliveries SET status = 'skipped', finished_at = $1, in_order = false
		WHERE id IN (
			SELECT d.id FROM webhook_endpoints e CROSS JOIN LATERAL (
				SELECT id FROM webhook_deliveries WHERE endpoint_id = e.id AND status = 'waiting' AND NOT asked LIMIT $2
			) AS d WHERE NOT e.switched_on LIMIT $2)
		  AND status = 'waiting' AND NOT asked`, now, limit)
	return tag.RowsAffected(), err
}

// cancelGone walks over the URLs that deliveries wait for, one index step each.
func cancelGone(ctx context.Context, q pg.Querier, now time.Time, limit int) (int64, error) {
	tag, err := q.Exec(ctx, `WITH RECURSIVE`+waitingURLs+`
		UPDATE webhook_deliveries SET status = 'cancelled', finished_at = $1, in_order = false, asked = false
		WHERE id IN (
			SELECT d.id FROM urls CROSS JOIN LATERAL (
				SELECT id FROM webhook_deliveries WHERE endpoint_id = urls.endpoint_id AND status = 'waiting' LIMIT $2
			) AS d WHERE NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = urls.endpoint_id) LIMIT $2)
		  AND status = 'waiting'`, now, limit)
	return tag.RowsAffected(), err
}

// eraseSome scrubs up to limit events of the person. Deliveries are drawn within moments of
// their event, which bounds where they are looked for.
func eraseSome(ctx context.Context, tx *pg.Tx, user id.User, now time.Time, limit int) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `
		WITH erased AS (
			UPDATE webhook_events SET data = '{"erased":true}', user_id = NULL, erased = true
			WHERE user_id = $1 AND id IN (SELECT id FROM webhook_events WHERE user_id = $1 LIMIT $3)
			RETURNING id, created_at
		), theirs AS (
			SELECT d.id, d.status FROM erased CROSS JOIN LATERAL (
				SELECT id, status FROM webhook_deliveries
				WHERE event_id = erased.id AND id >= erased.id AND id < uuid7_floor(uuid7_time(erased.id) + interval '10 seconds')
			) AS d
		), ended AS (
			UPDATE webhook_deliveries SET status = 'cancelled', finished_at = $2, asked = false, in_order = false
			WHERE id IN (SELECT id FROM theirs WHERE status = 'waiting') AND status = 'waiting'
		), answers AS (
			UPDATE webhook_attempts SET response_body = NULL WHERE delivery_id IN (SELECT id FROM theirs)
		)
		SELECT count(*) FROM erased`, user, now, limit).Scan(&n)
	return n, err
}

// waitingURLs walks over the URLs that deliveries wait for, one index step each.
const waitingURLs = ` urls AS (
	(SELECT endpoint_id FROM webhook_deliveries WHERE status = 'waiting' ORDER BY endpoint_id LIMIT 1)
	UNION ALL
	SELECT (SELECT d.endpoint_id FROM webhook_deliveries d WHERE d.status = 'waiting' AND d.endpoint_id > urls.endpoint_id ORDER BY d.endpoint_id LIMIT 1)
	FROM urls WHERE urls.endpoint_id IS NOT NULL
) `

func selectMeasurement(ctx context.Context, q pg.Querier, now time.Time) (m Measurement, err error) {
	err = q.QueryRow(ctx, `WITH RECURSIVE`+waitingURLs+`
		SELECT (SELECT count(*) FROM webhook_deliveries WHERE status = 'leased'),
			(SELECT count(*) FROM webhook_endpoints WHERE switched_on), (SELECT count(*) FROM webhook_endpoints WHERE NOT switched_on),
			(SELECT count(*) FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id WHERE e.switched_on AND h.next_probe_at IS NOT NULL),
			(SELECT coalesce(avg(h.allowance), 0)::float8 FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id WHERE e.switched_on),
			(SELECT count(*) FROM webhook_deliveries WHERE status = 'leased' AND (lease IS NULL OR lease_until IS NULL OR lease_until < $1::timestamptz - interval '10 minutes'))
			+ (SELECT count(*) FROM urls JOIN webhook_deliveries d ON d.endpoint_id = urls.endpoint_id AND d.status = 'waiting'
				WHERE NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = urls.endpoint_id))`, now).
		Scan(&m.InFlight, &m.On, &m.Off, &m.Probing, &m.Allowance, &m.Unaccounted)
	return m, err
}

// selectBacklogs has the largest first. The age is that of the oldest event among what is
// counted.
func selectBacklogs(ctx context.Context, q pg.Querier, now time.Time) ([]Backlog, error) {
	rows, err := q.Query(ctx, `WITH RECURSIVE`+waitingURLs+`
		SELECT o.slug, sum(w.n)::int, extract(epoch FROM $1::timestamptz - uuid7_time(min(w.oldest)::uuid))::float8
		FROM urls JOIN webhook_endpoints e ON e.id = urls.endpoint_id JOIN organizations o ON o.id = e.organization_id
		CROSS JOIN LATERAL (
			SELECT count(*) AS n, min(id::text) AS oldest FROM (
				SELECT id FROM webhook_deliveries WHERE endpoint_id = e.id AND status = 'waiting' LIMIT 100000) AS counted
		) AS w
		GROUP BY o.slug HAVING sum(w.n) > 0 ORDER BY 2 DESC, 1`, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Backlog, err error) {
		var age float64
		err = row.Scan(&b.Organization, &b.Waiting, &age)
		b.Oldest = max(0, time.Duration(age*float64(time.Second)))
		return b, err
	})
}

// selectAbout has a row for each of the person's latest events and URL that it went to. An
// event and its deliveries are drawn in one moment, which bounds where they are looked for.
func selectAbout(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]StudentDelivery, error) {
	rows, err := q.Query(ctx, `
		SELECT v.id, v.type, v.created_at, coalesce(d.id, '00000000-0000-0000-0000-000000000000'), coalesce(e.id, 0), coalesce(e.url, ''),
			coalesce(CASE d.status WHEN 'leased' THEN 'in_flight' ELSE d.status END, '')
		FROM (SELECT id, type, created_at FROM webhook_events
			WHERE user_id = $2 AND organization_id = $1 ORDER BY id DESC LIMIT $3) AS v
		LEFT JOIN webhook_endpoints e ON e.organization_id = $1
		LEFT JOIN LATERAL (SELECT id, status FROM webhook_deliveries
			WHERE endpoint_id = e.id AND event_id = v.id AND id >= uuid7_floor(uuid7_time(v.id) - interval '100 milliseconds')
			  AND id < uuid7_floor(uuid7_time(v.id) + interval '1 second') LIMIT 1) AS d ON true
		ORDER BY v.id DESC, e.id`, org, user, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[StudentDelivery])
}
