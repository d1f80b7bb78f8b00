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

// selectLog reads Deliveries; conditions on d follow it.
const selectLog = `
	SELECT
		d.id,
		d.event_id AS event,
		v.type,
		CASE d.status WHEN 'leased' THEN 'in_flight' ELSE d.status END AS status,
		v.created_at,
		CASE WHEN d.status = 'waiting' THEN d.due_at END AS due_at,
		d.finished_at
	FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
	WHERE d.organization_id = $1 AND d.endpoint_id = $2 `

// undelivered are the statuses of deliveries that ended without a success. These have an index
// of their own, which PostgreSQL uses for statements that include isUndelivered.
var undelivered = []webhook.Status{
	webhook.StatusDeclined,
	webhook.StatusExhausted,
	webhook.StatusSkipped,
	webhook.StatusCancelled,
}

const isUndelivered = ` AND d.status IN ('declined', 'exhausted', 'skipped', 'cancelled')`

func selectDeliveries(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, f Filter, before id.Delivery, limit int) ([]Delivery, error) {
	statuses := make([]string, len(f.Statuses))
	narrow := ""
	if len(f.Statuses) > 0 {
		narrow = isUndelivered
	}
	for i, s := range f.Statuses {
		statuses[i] = string(s)
		if s == webhook.StatusInFlight {
			statuses[i] = "leased"
		}
		if !slices.Contains(undelivered, s) {
			narrow = ""
		}
	}
	return pg.List[Delivery](ctx, q, selectLog+`
		  AND (cardinality($3::text[]) = 0 OR d.status = ANY ($3))
		  AND ($4::uuid = '00000000-0000-0000-0000-000000000000' OR d.id < $4)`+narrow+`
		ORDER BY d.id DESC LIMIT $5`, org, endpoint, statuses, before, limit)
}

func selectDelivery(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, delivery id.Delivery) (Delivery, error) {
	return pg.One[Delivery](ctx, q, selectLog+`AND d.id = $3`, org, endpoint, delivery)
}

// selectAttempts reads the attempts of the deliveries, which come newest first. The bounds on
// their ids let PostgreSQL leave out the partitions of other days.
func selectAttempts(ctx context.Context, q pg.Querier, list []Delivery) ([]Attempt, error) {
	ids := make([]id.Delivery, len(list))
	for i, d := range list {
		ids[i] = d.ID
	}
	type row struct {
		Attempt
		webhook.Timing
	}
	rows, err := pg.List[row](ctx, q, `
		SELECT
			delivery_id AS delivery,
			number,
			started_at,
			duration_us * interval '1 microsecond' AS duration,
			outcome AS verdict,
			cause,
			detail,
			response_status AS status,
			response_body AS response,
			request_headers,
			peer,
			coalesce(dns_us, 0) * interval '1 microsecond' AS dns,
			coalesce(connect_us, 0) * interval '1 microsecond' AS connect,
			coalesce(tls_us, 0) * interval '1 microsecond' AS tls,
			coalesce(first_byte_us, 0) * interval '1 microsecond' AS first_byte
		FROM webhook_attempts WHERE delivery_id = ANY ($1::uuid[]) AND delivery_id >= $2 AND delivery_id <= $3
		ORDER BY delivery_id, number`, ids, ids[len(ids)-1], ids[0])
	attempts := make([]Attempt, len(rows))
	for i, r := range rows {
		attempts[i] = r.Attempt
		attempts[i].Timing = r.Timing
	}
	return attempts, err
}

type lockedDelivery struct {
	Event  id.Event
	Type   webhook.Type
	Status webhook.Status
	Erased bool
}

func lockDelivery(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, delivery id.Delivery) (lockedDelivery, error) {
	return pg.One[lockedDelivery](ctx, tx, `
		SELECT
			d.event_id AS event,
			v.type,
			CASE d.status WHEN 'leased' THEN 'in_flight' ELSE d.status END AS status,
			v.erased
		FROM webhook_deliveries d JOIN webhook_events v ON v.id = d.event_id
		WHERE d.organization_id = $1 AND d.endpoint_id = $2 AND d.id = $3
		  AND EXISTS (SELECT FROM webhook_endpoints e WHERE e.organization_id = $1 AND e.id = $2)
		FOR UPDATE OF d`, org, endpoint, delivery)
}

func ask(ctx context.Context, tx *pg.Tx, delivery id.Delivery, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE webhook_deliveries SET
			tries = CASE status WHEN 'waiting' THEN tries ELSE 0 END,
			status = 'waiting',
			due_at = $2,
			asked = true,
			in_order = false,
			finished_at = NULL
		WHERE id = $1`, delivery, now)
	return err
}

func selectOn(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint) (on bool, url string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT switched_on, url
		FROM webhook_endpoints
		WHERE organization_id = $1 AND id = $2`, org, endpoint).Scan(&on, &url)
	return on, url, err
}

// isRecoverable is true for the deliveries d that a recovery of @endpoint from @since to @until
// makes due again. Pings are not among them: they only mattered when they were sent.
const isRecoverable = ` d.endpoint_id = @endpoint AND d.id >= uuid7_floor(@since) AND d.id < uuid7_floor(@until)` +
	isUndelivered + ` AND d.status <> 'cancelled'
	AND NOT EXISTS (SELECT FROM webhook_events v WHERE v.id = d.event_id AND v.type = 'ping') `

// countInOrder counts what a recovery r has made due again and was not attempted yet.
const countInOrder = `(SELECT count(*) FROM webhook_deliveries d
	WHERE d.endpoint_id = r.endpoint_id AND d.status IN ('waiting', 'leased') AND d.in_order)`

const selectRecovery = `
	SELECT
		r.id,
		r.organization_id AS organization,
		r.endpoint_id AS endpoint,
		r.since,
		r.until,
		r.status,
		r.total,
		r.put_back,
		` + countInOrder + ` AS waiting,
		r.created_at,
		r.finished_at
	FROM webhook_recoveries r `

func insertRecovery(ctx context.Context, tx *pg.Tx, r Recovery) (Recovery, error) {
	var made id.Recovery
	err := tx.QueryRow(ctx, `
		INSERT INTO webhook_recoveries (
			organization_id,
			endpoint_id,
			since,
			until,
			status,
			total,
			created_at
		)
		SELECT
			@org,
			@endpoint,
			@since,
			@until,
			'running',
			(SELECT count(*) FROM webhook_deliveries d WHERE`+isRecoverable+`),
			@now
		RETURNING id`,
		pg.Args{"org": r.Organization, "endpoint": r.Endpoint, "since": r.Since, "until": r.Until, "now": r.CreatedAt}).Scan(&made)
	if err != nil {
		return Recovery{}, err
	}
	return pg.One[Recovery](ctx, tx, selectRecovery+`WHERE r.id = $1`, made)
}

// Recoveries lists the URL's latest twenty recoveries, newest first.
func Recoveries(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint) ([]Recovery, error) {
	return pg.List[Recovery](ctx, q, selectRecovery+`
		WHERE r.organization_id = $1 AND r.endpoint_id = $2 ORDER BY r.id DESC LIMIT 20`, org, endpoint)
}

// recoveryState is what a step needs to know.
type recoveryState struct {
	ID           id.Recovery
	Organization id.Organization
	Endpoint     id.Endpoint
	Since        time.Time
	Until        time.Time
	SwitchedOn   bool
	Waiting      int
}

func lockRecovery(ctx context.Context, tx *pg.Tx, recovery id.Recovery) (recoveryState, error) {
	return pg.One[recoveryState](ctx, tx, `
		SELECT
			r.id,
			r.organization_id AS organization,
			r.endpoint_id AS endpoint,
			r.since,
			r.until,
			e.switched_on,
			`+countInOrder+` AS waiting
		FROM webhook_recoveries r JOIN webhook_endpoints e ON e.id = r.endpoint_id
		WHERE r.id = $1 AND r.status = 'running' FOR UPDATE OF r`, recovery)
}

// putBack makes up to limit deliveries after the recovery's position due again, to be sent in
// order, and counts them.
func putBack(ctx context.Context, tx *pg.Tx, s recoveryState, now time.Time, limit int) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `
		WITH picked AS (
			SELECT d.id FROM webhook_deliveries d
			WHERE`+isRecoverable+`AND d.id > (
				SELECT coalesce(position, '00000000-0000-0000-0000-000000000000')
				FROM webhook_recoveries
				WHERE id = @recovery)
			ORDER BY d.id LIMIT @limit FOR UPDATE OF d
		), moved AS (
			UPDATE webhook_deliveries d SET
				status = 'waiting',
				tries = 0,
				due_at = @now,
				finished_at = NULL,
				in_order = true,
				asked = false
			FROM picked WHERE d.id = picked.id
			RETURNING d.id
		), counted AS (
			SELECT count(*)::int AS n FROM moved
		), noted AS (
			UPDATE webhook_recoveries SET put_back = put_back + counted.n,
				position = coalesce((SELECT id FROM moved ORDER BY id DESC LIMIT 1), position)
			FROM counted WHERE webhook_recoveries.id = @recovery
		)
		SELECT n FROM counted`,
		pg.Args{
			"recovery": s.ID,
			"endpoint": s.Endpoint,
			"since":    s.Since,
			"until":    s.Until,
			"now":      now,
			"limit":    limit,
		}).Scan(&n)
	return n, err
}

func finishRecovery(ctx context.Context, tx *pg.Tx, recovery id.Recovery, status RecoveryStatus, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE webhook_recoveries
		SET status = $2, finished_at = $3
		WHERE id = $1`, recovery, status, now)
	return err
}

// dropPartitions drops the partitions of the days before the given one, and deletes rows of
// such days from the default partitions. It fails when it would have to wait for a lock,
// because everybody else would wait behind it.
func dropPartitions(ctx context.Context, tx *pg.Tx, before clock.Date) (int, error) {
	if err := pg.GiveWay(ctx, tx); err != nil {
		return 0, err
	}
	var dropped int
	if err := tx.QueryRow(ctx, `SELECT webhook_drop_partitions($1)`, before).Scan(&dropped); err != nil {
		return 0, err
	}
	var batch pgx.Batch
	batch.Queue(`
		DELETE FROM webhook_attempts_default a
		WHERE delivery_id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC')
		  AND NOT EXISTS (SELECT FROM webhook_deliveries_default d
			WHERE d.id = a.delivery_id AND d.status IN ('waiting', 'leased'))`, before)
	batch.Queue(`
		DELETE FROM webhook_deliveries_default
		WHERE id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC') AND status NOT IN ('waiting', 'leased')`, before)
	batch.Queue(`
		DELETE FROM webhook_events_default v
		WHERE id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC')
		  AND NOT EXISTS (SELECT FROM webhook_deliveries d
			WHERE d.event_id = v.id AND d.status IN ('waiting', 'leased'))`, before)
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

// eraseSome erases up to limit events of the person, and counts them. A delivery's id is drawn
// within moments of its event's, which bounds the search.
func eraseSome(ctx context.Context, tx *pg.Tx, user id.User, now time.Time, limit int) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `
		WITH erased AS (
			UPDATE webhook_events SET data = '{"erased":true}', user_id = NULL, erased = true
			WHERE user_id = $1 AND id IN (SELECT id FROM webhook_events WHERE user_id = $1 LIMIT $3)
			RETURNING id, created_at
		), deliveries AS (
			SELECT d.id, d.status FROM erased CROSS JOIN LATERAL (
				SELECT id, status FROM webhook_deliveries
				WHERE event_id = erased.id AND id >= erased.id
					AND id < uuid7_floor(uuid7_time(erased.id) + interval '10 seconds')
			) AS d
		), ended AS (
			UPDATE webhook_deliveries SET status = 'cancelled', finished_at = $2, asked = false, in_order = false
			WHERE id IN (SELECT id FROM deliveries WHERE status = 'waiting') AND status = 'waiting'
		), answers AS (
			UPDATE webhook_attempts SET response_body = NULL WHERE delivery_id IN (SELECT id FROM deliveries)
		)
		SELECT count(*) FROM erased`, user, now, limit).Scan(&n)
	return n, err
}

// waitingURLs walks over the URLs that deliveries wait for, one index step each.
const waitingURLs = ` urls AS (
	(SELECT endpoint_id FROM webhook_deliveries WHERE status = 'waiting' ORDER BY endpoint_id LIMIT 1)
	UNION ALL
	SELECT (
		SELECT d.endpoint_id FROM webhook_deliveries d
		WHERE d.status = 'waiting' AND d.endpoint_id > urls.endpoint_id ORDER BY d.endpoint_id LIMIT 1)
	FROM urls WHERE urls.endpoint_id IS NOT NULL
) `

func selectMeasurement(ctx context.Context, q pg.Querier, now time.Time) (Measurement, error) {
	return pg.One[Measurement](ctx, q, `WITH RECURSIVE`+waitingURLs+`
		SELECT
			(SELECT count(*) FROM webhook_deliveries WHERE status = 'leased') AS in_flight,
			(SELECT count(*) FROM webhook_endpoints WHERE switched_on) AS on,
			(SELECT count(*) FROM webhook_endpoints WHERE NOT switched_on) AS off,
			(SELECT count(*) FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id
				WHERE e.switched_on AND h.next_probe_at IS NOT NULL) AS probing,
			(SELECT coalesce(avg(h.allowance), 0)::float8
				FROM webhook_endpoints e
				JOIN webhook_health h ON h.endpoint_id = e.id
				WHERE e.switched_on) AS allowance,
			(SELECT count(*) FROM webhook_deliveries WHERE status = 'leased'
				AND (lease IS NULL OR lease_until IS NULL OR lease_until < $1::timestamptz - interval '10 minutes'))
			+ (SELECT count(*) FROM urls
				JOIN webhook_deliveries d ON d.endpoint_id = urls.endpoint_id AND d.status = 'waiting'
				WHERE NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = urls.endpoint_id)) AS unaccounted`, now)
}

// selectBacklogs reads the backlogs of all organizations, the largest first. Oldest is the age
// of the oldest event among those that are counted.
func selectBacklogs(ctx context.Context, q pg.Querier, now time.Time) ([]Backlog, error) {
	return pg.List[Backlog](ctx, q, `WITH RECURSIVE`+waitingURLs+`
		SELECT
			o.slug AS organization,
			sum(w.n)::int AS waiting,
			greatest($1::timestamptz - uuid7_time(min(w.oldest)::uuid), interval '0') AS oldest
		FROM urls JOIN webhook_endpoints e ON e.id = urls.endpoint_id JOIN organizations o ON o.id = e.organization_id
		CROSS JOIN LATERAL (
			SELECT count(*) AS n, min(id::text) AS oldest FROM (
				SELECT id
				FROM webhook_deliveries
				WHERE endpoint_id = e.id AND status = 'waiting' LIMIT 100000) AS counted
		) AS w
		GROUP BY o.slug HAVING sum(w.n) > 0 ORDER BY 2 DESC, 1`, now)
}

// selectAbout reads a row for each of the person's latest events and each URL of the
// organization. The ids of an event and of its deliveries are drawn at one moment, which
// bounds the search.
func selectAbout(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]StudentDelivery, error) {
	return pg.List[StudentDelivery](ctx, q, `
		SELECT
			v.id AS event,
			v.type,
			v.created_at,
			coalesce(d.id, '00000000-0000-0000-0000-000000000000') AS delivery,
			coalesce(e.id, 0) AS endpoint,
			coalesce(e.url, '') AS url,
			coalesce(CASE d.status WHEN 'leased' THEN 'in_flight' ELSE d.status END, '') AS status
		FROM (
			SELECT id, type, created_at FROM webhook_events
			WHERE user_id = $2 AND organization_id = $1 ORDER BY id DESC LIMIT $3
		) AS v
		LEFT JOIN webhook_endpoints e ON e.organization_id = $1
		LEFT JOIN LATERAL (
			SELECT id, status FROM webhook_deliveries
			WHERE endpoint_id = e.id AND event_id = v.id
			  AND id >= uuid7_floor(uuid7_time(v.id) - interval '100 milliseconds')
			  AND id < uuid7_floor(uuid7_time(v.id) + interval '1 second') LIMIT 1
		) AS d ON true
		ORDER BY v.id DESC, e.id`, org, user, limit)
}
