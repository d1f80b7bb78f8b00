package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// queueEvents writes events and their deliveries in one statement and tells the number of
// deliveries. A URL that is off gets its row as skipped, so that it can be recovered.
func queueEvents(ctx context.Context, b *pg.Batch, org id.Organization, now time.Time, events []eventRow, written func(deliveries int64)) {
	ids := make([][16]byte, len(events))
	kinds := make([]string, len(events))
	users := make([]int64, len(events))
	data := make([]string, len(events))
	// An id for every URL that there may be: drawing them here costs less than there, and
	// one text of bytes costs less than an array.
	deliveries := make([]byte, 0, len(events)*MaxEndpoints*16)
	for i, e := range events {
		ids[i], kinds[i], users[i], data[i] = e.id, string(e.kind), int64(e.user), string(e.data)
		for range MaxEndpoints {
			d := id.NewDelivery()
			deliveries = append(deliveries, d[:]...)
		}
	}
	b.Queue(`
		WITH urls AS MATERIALIZED (
			SELECT id, slot, events, switched_on FROM webhook_endpoints WHERE organization_id = $1
		), fresh AS (
			SELECT n, id, kind, nullif(user_id, 0) AS user_id, data
			FROM unnest($3::uuid[], $4::text[], $5::bigint[], $6::text[]) WITH ORDINALITY AS u(id, kind, user_id, data, n)
			WHERE EXISTS (SELECT FROM urls)
		), stored AS (
			INSERT INTO webhook_events (id, organization_id, user_id, type, created_at, data, traceparent)
			SELECT id, $1, user_id, kind, $2, data::json, nullif($9, '') FROM fresh
		)
		INSERT INTO webhook_deliveries (id, event_id, organization_id, endpoint_id, status, due_at)
		SELECT encode(substr($7::bytea, 16 * ((fresh.n - 1) * $8 + urls.slot - 1)::integer + 1, 16), 'hex')::uuid, fresh.id, $1, urls.id, CASE WHEN urls.switched_on THEN 'waiting' ELSE 'skipped' END, $2
		FROM fresh, urls
		WHERE urls.events = '{}' OR fresh.kind = ANY (urls.events)`, org, now, ids, kinds, users, data, deliveries, MaxEndpoints, obs.Traceparent(ctx)).
		Exec(func(tag pgconn.CommandTag) error {
			written(tag.RowsAffected())
			return nil
		})
}

func hasEndpoint(ctx context.Context, q pg.Querier, org id.Organization) (has bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM webhook_endpoints WHERE organization_id = $1)`, org).Scan(&has)
	return has, err
}

func haveEndpoints(ctx context.Context, q pg.Querier, orgs []id.Organization) (map[id.Organization]bool, error) {
	rows, err := q.Query(ctx, `SELECT DISTINCT organization_id FROM webhook_endpoints WHERE organization_id = ANY ($1)`, orgs)
	if err != nil {
		return nil, err
	}
	have := map[id.Organization]bool{}
	var org id.Organization
	_, err = pgx.ForEachRow(rows, []any{&org}, func() error { have[org] = true; return nil })
	return have, err
}

// endpointRows reads URLs; which, a condition on e that follows says.
const endpointRows = `
	SELECT e.id, e.organization_id, e.url, e.events, e.time_zone, e.switched_on, e.switched_off_at, e.switched_off_reason,
		e.secret_version, e.created_at, coalesce(e.managed_by, ''), h.consecutive_failures, h.last_success_at, h.last_failure_at
	FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id `

func oneEndpoint(rows pgx.Rows, err error) (Endpoint, error) {
	if err != nil {
		return Endpoint{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Endpoint])
}

func allEndpoints(rows pgx.Rows, err error) ([]Endpoint, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Endpoint])
}

func selectEndpoint(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint) (Endpoint, error) {
	return oneEndpoint(q.Query(ctx, endpointRows+`WHERE e.organization_id = $1 AND e.id = $2`, org, endpoint))
}

func selectEndpoints(ctx context.Context, q pg.Querier, org id.Organization) ([]Endpoint, error) {
	return allEndpoints(q.Query(ctx, endpointRows+`WHERE e.organization_id = $1 ORDER BY e.id`, org))
}

func selectManaged(ctx context.Context, q pg.Querier, managedBy string) (Endpoint, error) {
	return oneEndpoint(q.Query(ctx, endpointRows+`WHERE e.managed_by = $1`, managedBy))
}

func selectManagedAs(ctx context.Context, q pg.Querier, prefix string) ([]Endpoint, error) {
	return allEndpoints(q.Query(ctx, endpointRows+`WHERE starts_with(e.managed_by, $1) ORDER BY e.id`, prefix))
}

// insertEndpoint takes the lowest free place of the organization, whose row it locks so
// that two callers do not choose the same.
func insertEndpoint(ctx context.Context, tx *pg.Tx, org id.Organization, s Settings, now time.Time) (Endpoint, error) {
	if _, err := tx.Exec(ctx, `SELECT id FROM organizations WHERE id = $1 FOR NO KEY UPDATE`, org); err != nil {
		return Endpoint{}, err
	}
	var made id.Endpoint
	err := tx.QueryRow(ctx, `
		INSERT INTO webhook_endpoints (organization_id, slot, url, events, time_zone, created_at, updated_at, managed_by)
		SELECT $1, free.slot, $2, coalesce($3::text[], '{}'), coalesce($4, 'UTC'), $5, $5, nullif($7, '')
		FROM (SELECT min(s) AS slot FROM generate_series(1, $6::int) AS s
		      WHERE s NOT IN (SELECT slot FROM webhook_endpoints WHERE organization_id = $1)) AS free
		WHERE free.slot IS NOT NULL
		RETURNING id`, org, s.URL, s.Events, s.TimeZone, now, MaxEndpoints, s.ManagedBy).Scan(&made)
	if pg.None(err) {
		return Endpoint{}, errLimit()
	}
	if err != nil {
		return Endpoint{}, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO webhook_health (endpoint_id) VALUES ($1)`, made); err != nil {
		return Endpoint{}, err
	}
	return selectEndpoint(ctx, tx, org, made)
}

func insertSecret(ctx context.Context, tx *pg.Tx, endpoint id.Endpoint, version int, sealed []byte, now time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO webhook_secrets (endpoint_id, version, sealed, created_at) VALUES ($1, $2, $3, $4)`,
		endpoint, version, sealed, now)
	return err
}

func updateEndpoint(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, s Settings, now time.Time) error {
	var changed id.Endpoint
	return q.QueryRow(ctx, `
		UPDATE webhook_endpoints SET url = coalesce($3, url), events = coalesce($4::text[], events),
			time_zone = coalesce($5, time_zone), updated_at = $6
		WHERE organization_id = $1 AND id = $2 RETURNING id`, org, endpoint, s.URL, s.Events, s.TimeZone, now).Scan(&changed)
}

func deleteEndpoint(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint) (bool, error) {
	tag, err := tx.Exec(ctx, `DELETE FROM webhook_endpoints WHERE organization_id = $1 AND id = $2`, org, endpoint)
	return tag.RowsAffected() == 1, err
}

func cancelSome(ctx context.Context, q pg.Querier, endpoint id.Endpoint, now time.Time, limit int) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE webhook_deliveries SET status = 'cancelled', finished_at = $2, lease = NULL, lease_until = NULL
		WHERE id IN (SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND status = 'waiting' LIMIT $3)
		  AND status = 'waiting'`, endpoint, now, limit)
	return tag.RowsAffected(), err
}

func skipSome(ctx context.Context, q pg.Querier, endpoint id.Endpoint, now time.Time, limit int) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE webhook_deliveries SET status = 'skipped', finished_at = $2, in_order = false
		WHERE id IN (SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND status = 'waiting' AND NOT asked LIMIT $3)
		  AND status = 'waiting' AND NOT asked
		  AND EXISTS (SELECT FROM webhook_endpoints WHERE id = $1 AND NOT switched_on)`, endpoint, now, limit)
	return tag.RowsAffected(), err
}

// lockHealth reads and locks the health of endpoints, in their order.
func lockHealth(ctx context.Context, tx *pg.Tx, endpoints []int64) (map[id.Endpoint]*Health, error) {
	rows, err := tx.Query(ctx, `
		SELECT endpoint_id, consecutive_failures, allowance, coalesce(next_probe_at, '0001-01-01Z'),
			coalesce(last_success_at, '0001-01-01Z'), coalesce(last_failure_at, '0001-01-01Z')
		FROM webhook_health WHERE endpoint_id = ANY ($1) ORDER BY endpoint_id FOR NO KEY UPDATE`, endpoints)
	if err != nil {
		return nil, err
	}
	healths := make(map[id.Endpoint]*Health, len(endpoints))
	var (
		endpoint id.Endpoint
		h        Health
	)
	_, err = pgx.ForEachRow(rows, []any{&endpoint, &h.Failures, &h.Allowance, &h.NextProbeAt, &h.LastSuccess, &h.LastFailure}, func() error {
		copied := h
		healths[endpoint] = &copied
		return nil
	})
	return healths, err
}

// insertAttempts records the attempts that are not recorded yet and tells which they were.
func insertAttempts(ctx context.Context, tx *pg.Tx, outcomes []Outcome) (map[attemptKey]bool, error) {
	n := len(outcomes)
	var (
		deliveries = make([][16]byte, n)
		numbers    = make([]int32, n)
		endpoints  = make([]int64, n)
		started    = make([]time.Time, n)
		durations  = make([]int32, n)
		verdicts   = make([]string, n)
		causes     = make([]string, n)
		details    = make([]string, n)
		statuses   = make([]int32, n)
		bodies     = make([][]byte, n)
		headers    = make([]string, n)
		peers      = make([]string, n)
		dns        = make([]int32, n)
		connects   = make([]int32, n)
		tls        = make([]int32, n)
		first      = make([]int32, n)
	)
	for i, o := range outcomes {
		deliveries[i], numbers[i], endpoints[i] = o.Delivery, int32(o.Number), int64(o.Endpoint)
		started[i], durations[i] = o.StartedAt, micros(o.Duration)
		verdicts[i], causes[i], details[i] = string(o.Verdict), o.Cause, cleanText(o.Detail)
		statuses[i], bodies[i], peers[i] = int32(o.Status), o.Response, o.Peer
		h, err := json.Marshal(o.RequestHeaders)
		if err != nil {
			return nil, err
		}
		headers[i] = string(h)
		dns[i], connects[i], tls[i], first[i] = micros(o.Timing.DNS), micros(o.Timing.Connect), micros(o.Timing.TLS), micros(o.Timing.FirstByte)
	}
	rows, err := tx.Query(ctx, `
		INSERT INTO webhook_attempts (delivery_id, number, endpoint_id, started_at, duration_us, outcome, cause, detail,
			response_status, response_body, request_headers, peer, dns_us, connect_us, tls_us, first_byte_us)
		SELECT delivery_id, number, endpoint_id, started_at, duration_us, outcome, cause, detail,
			nullif(response_status, 0), response_body, request_headers::json, peer, nullif(dns_us, 0), nullif(connect_us, 0),
			nullif(tls_us, 0), nullif(first_byte_us, 0)
		FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::timestamptz[], $5::int[], $6::text[], $7::text[], $8::text[],
			$9::int[], $10::bytea[], $11::text[], $12::text[], $13::int[], $14::int[], $15::int[], $16::int[])
			AS u(delivery_id, number, endpoint_id, started_at, duration_us, outcome, cause, detail,
			response_status, response_body, request_headers, peer, dns_us, connect_us, tls_us, first_byte_us)
		ON CONFLICT (delivery_id, number) DO NOTHING
		RETURNING delivery_id, number`,
		deliveries, numbers, endpoints, started, durations, verdicts, causes, details,
		statuses, bodies, headers, peers, dns, connects, tls, first)
	if err != nil {
		return nil, err
	}
	fresh := make(map[attemptKey]bool, n)
	var key attemptKey
	_, err = pgx.ForEachRow(rows, []any{&key.delivery, &key.number}, func() error {
		fresh[key] = true
		return nil
	})
	return fresh, err
}

// updateSettled writes what fresh outcomes made of their deliveries and of the healths.
//
// The rows are looked up by id alone, and each finds its values by its place among the
// sorted ids. A join would let the planner walk all deliveries between the first and the last
// instead, which is a second's work once one of them has hung for ten beside a backlog. The
// bounds on id let PostgreSQL leave out the partitions of other days.
func updateSettled(ctx context.Context, tx *pg.Tx, healths map[id.Endpoint]*Health, outcomes []Outcome) error {
	outcomes = slices.Clone(outcomes)
	slices.SortFunc(outcomes, func(a, b Outcome) int { return bytes.Compare(a.Delivery[:], b.Delivery[:]) })
	var (
		ids      = make([]id.Delivery, len(outcomes))
		statuses = make([]string, len(outcomes))
		numbers  = make([]int32, len(outcomes))
		tries    = make([]int32, len(outcomes))
		dues     = make([]time.Time, len(outcomes))
	)
	for i, o := range outcomes {
		ids[i], numbers[i], tries[i] = o.Delivery, int32(o.Number), int32(o.Tries+1)
		statuses[i], dues[i] = o.next()
		if healths[o.Endpoint] == nil && statuses[i] == "waiting" {
			statuses[i] = "cancelled" // the URL was removed meanwhile
		}
	}
	var batch pgx.Batch
	if len(ids) > 0 {
		batch.Queue(`
			UPDATE webhook_deliveries AS d
			SET status = ($2::text[])[width_bucket(d.id, $1::uuid[])], tries = ($4::int[])[width_bucket(d.id, $1::uuid[])],
				attempts = ($3::int[])[width_bucket(d.id, $1::uuid[])], due_at = ($5::timestamptz[])[width_bucket(d.id, $1::uuid[])],
				finished_at = CASE ($2::text[])[width_bucket(d.id, $1::uuid[])] WHEN 'waiting' THEN NULL ELSE ($5::timestamptz[])[width_bucket(d.id, $1::uuid[])] END,
				lease = NULL, lease_until = NULL, asked = false, in_order = false
			WHERE d.id = ANY ($1::uuid[]) AND d.id >= $6 AND d.id <= $7 AND d.status IN ('leased', 'waiting')
			  AND d.attempts = ($3::int[])[width_bucket(d.id, $1::uuid[])] - 1`,
			ids, statuses, numbers, tries, dues, ids[0], ids[len(ids)-1])
	}
	queueHealths(&batch, healths)
	return tx.SendBatch(ctx, &batch).Close()
}

func queueHealths(batch *pgx.Batch, healths map[id.Endpoint]*Health) {
	var (
		ids                       []int64
		failures                  []int32
		allowances                []float64
		probes, successes, losses []*time.Time
	)
	for endpoint, h := range healths {
		ids, failures, allowances = append(ids, int64(endpoint)), append(failures, int32(h.Failures)), append(allowances, h.Allowance)
		probes, successes, losses = append(probes, orNull(h.NextProbeAt)), append(successes, orNull(h.LastSuccess)), append(losses, orNull(h.LastFailure))
	}
	batch.Queue(`
		UPDATE webhook_health AS h
		SET consecutive_failures = u.failures, allowance = u.allowance, next_probe_at = u.probe, last_success_at = u.success, last_failure_at = u.loss
		FROM unnest($1::bigint[], $2::int[], $3::real[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[]) AS u(id, failures, allowance, probe, success, loss)
		WHERE h.endpoint_id = u.id`, ids, failures, allowances, probes, successes, losses)
}

func updateOff(ctx context.Context, tx *pg.Tx, o off) (bool, error) {
	tag, err := tx.Exec(ctx, `
		UPDATE webhook_endpoints SET switched_on = false, switched_off_at = $2, switched_off_reason = $3, updated_at = $2
		WHERE id = $1 AND switched_on`, o.endpoint, o.at, o.reason)
	return tag.RowsAffected() == 1, err
}

func makePartitions(ctx context.Context, q pg.Querier, parent string, first clock.Date, days int) error {
	_, err := q.Exec(ctx, `SELECT webhook_make_partitions($1, $2, $3)`, parent, first, days)
	return err
}

// lockSecret reads the secret in force and keeps others from replacing it meanwhile.
func lockSecret(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint) (version int, sealed []byte, err error) {
	if _, err := tx.Exec(ctx, `SELECT id FROM webhook_endpoints WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE`, org, endpoint); err != nil {
		return 0, nil, err
	}
	return selectSecret(ctx, tx, org, endpoint)
}

// selectSecret reads the secret in force.
func selectSecret(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint) (version int, sealed []byte, err error) {
	err = q.QueryRow(ctx, `
		SELECT s.version, s.sealed FROM webhook_endpoints e
		JOIN webhook_secrets s ON s.endpoint_id = e.id AND s.version = e.secret_version
		WHERE e.organization_id = $1 AND e.id = $2`, org, endpoint).Scan(&version, &sealed)
	return version, sealed, err
}

// replaceSecret puts the version in force and forgets the ones before it.
func replaceSecret(ctx context.Context, tx *pg.Tx, endpoint id.Endpoint, version int, sealed []byte, now time.Time) error {
	if err := insertSecret(ctx, tx, endpoint, version, sealed, now); err != nil {
		return err
	}
	var batch pgx.Batch
	batch.Queue(`UPDATE webhook_endpoints SET secret_version = $2, updated_at = $3 WHERE id = $1`, endpoint, version, now)
	batch.Queue(`DELETE FROM webhook_secrets WHERE endpoint_id = $1 AND version < $2`, endpoint, version)
	return tx.SendBatch(ctx, &batch).Close()
}

func lockOneHealth(ctx context.Context, tx *pg.Tx, endpoint id.Endpoint) error {
	_, err := tx.Exec(ctx, `SELECT endpoint_id FROM webhook_health WHERE endpoint_id = $1 FOR NO KEY UPDATE`, endpoint)
	return err
}

func updateOn(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		WITH turned AS (
			UPDATE webhook_endpoints SET switched_on = true, switched_off_at = NULL, switched_off_reason = '', updated_at = $3
			WHERE organization_id = $1 AND id = $2 AND NOT switched_on RETURNING id
		)
		UPDATE webhook_health SET consecutive_failures = 0, allowance = DEFAULT, next_probe_at = NULL
		WHERE endpoint_id IN (SELECT id FROM turned)`, org, endpoint, now)
	return tag.RowsAffected() == 1, err
}

func updateOffByHand(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, reason string, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		UPDATE webhook_endpoints SET switched_on = false, switched_off_at = coalesce(switched_off_at, $4), switched_off_reason = $3, updated_at = $4
		WHERE organization_id = $1 AND id = $2 AND (switched_on OR switched_off_reason <> $3)`, org, endpoint, cleanText(reason), now)
	return tag.RowsAffected() == 1, err
}

func insertPing(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, delivery id.Delivery, event eventRow, now time.Time) error {
	var batch pgx.Batch
	batch.Queue(`INSERT INTO webhook_events (id, organization_id, type, created_at, data, traceparent) VALUES ($1, $2, $3, $4, $5::json, nullif($6, ''))`,
		event.id, org, event.kind, now, string(event.data), obs.Traceparent(ctx))
	batch.Queue(`INSERT INTO webhook_deliveries (id, event_id, organization_id, endpoint_id, status, due_at, asked) VALUES ($1, $2, $3, $4, 'waiting', $5, true)`,
		delivery, event.id, org, endpoint, now)
	return tx.SendBatch(ctx, &batch).Close()
}

func selectBacklogs(ctx context.Context, q pg.Querier, endpoints []int64) (map[id.Endpoint]int, error) {
	rows, err := q.Query(ctx, `
		SELECT e.id, least($2, (SELECT count(*) FROM (SELECT FROM webhook_deliveries d
				WHERE d.endpoint_id = e.id AND d.status = 'waiting' LIMIT $2) AS w)
			+ (SELECT count(*) FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.status = 'leased'))
		FROM unnest($1::bigint[]) AS e(id)`, endpoints, MaxBacklog)
	if err != nil {
		return nil, err
	}
	backlogs := make(map[id.Endpoint]int, len(endpoints))
	var (
		endpoint id.Endpoint
		n        int
	)
	_, err = pgx.ForEachRow(rows, []any{&endpoint, &n}, func() error {
		backlogs[endpoint] = n
		return nil
	})
	return backlogs, err
}

func toInts[T ~int64](ids []T) []int64 {
	out := make([]int64, len(ids))
	for i, v := range ids {
		out[i] = int64(v)
	}
	return out
}
