package webhook

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// queueEvents writes events and their deliveries in one statement; those of an organization follow each other.
// A URL that is off gets its delivery as skipped, so that it can be recovered.
func queueEvents(b *pg.Batch, now time.Time, events []eventRow) {
	ids := make([]id.Event, len(events))
	orgs := make([]id.Organization, len(events))
	kinds := make([]string, len(events))
	users := make([]int64, len(events))
	data := make([]string, len(events))
	traceparents := make([]string, len(events))
	// An id for every URL that there may be: drawing them here costs less than there, and
	// one text of bytes costs less than an array.
	deliveries := make([]byte, 0, len(events)*MaxEndpoints*16)
	for i, e := range events {
		ids[i], orgs[i], kinds[i], users[i], data[i] = e.id, e.org, string(e.kind), int64(e.user), string(e.data)
		traceparents[i] = e.traceparent
		for range MaxEndpoints {
			d := id.NewDelivery(now)
			deliveries = append(deliveries, d[:]...)
		}
	}
	b.Queue(`
		WITH urls AS MATERIALIZED (
			SELECT organization_id AS org, id, slot, events, switched_on
			FROM webhook_endpoints WHERE organization_id = ANY (@owners)
		), fresh AS (
			SELECT n, org, id, kind, nullif(user_id, 0) AS user_id, data, nullif(traceparent, '') AS traceparent
			FROM unnest(
				@ids::uuid[],
				@orgs::bigint[],
				@kinds::text[],
				@users::bigint[],
				@data::text[],
				@traceparents::text[])
				WITH ORDINALITY AS u(id, org, kind, user_id, data, traceparent, n)
		), stored AS (
			INSERT INTO webhook_events (id, organization_id, user_id, type, created_at, data, traceparent, sequence)
			SELECT id, org, user_id, kind, @now, data::json, traceparent, next_position(org) FROM fresh
			RETURNING id, sequence
		), chosen AS MATERIALIZED (
			SELECT
				encode(
					substr(@deliveries::bytea, 16 * ((fresh.n - 1) * @per_event + urls.slot - 1)::integer + 1, 16),
					'hex')::uuid AS id,
				fresh.id AS event_id,
				urls.org,
				fresh.user_id,
				stored.sequence,
				urls.id AS endpoint_id,
				urls.switched_on
			FROM fresh JOIN stored ON stored.id = fresh.id JOIN urls ON urls.org = fresh.org
			WHERE urls.events = '{}' OR fresh.kind = ANY (urls.events)
		), skipped AS (
			INSERT INTO webhook_journal (
				organization_id,
				endpoint_id,
				delivery_id,
				number,
				event_id,
				status,
				started_at
			)
			SELECT org, endpoint_id, id, 1, event_id, 'skipped', @now FROM chosen WHERE NOT switched_on
		), queued AS (
			INSERT INTO webhook_queue (organization_id, endpoint_id, id, event_id, user_id, sequence, due_at)
			SELECT org, endpoint_id, id, event_id, user_id, sequence, @now FROM chosen WHERE switched_on
		)
		SELECT DISTINCT org FROM chosen WHERE switched_on`,
		pg.Args{
			"owners":       slices.Compact(slices.Clone(orgs)),
			"now":          now,
			"ids":          ids,
			"orgs":         orgs,
			"kinds":        kinds,
			"users":        users,
			"data":         data,
			"deliveries":   deliveries,
			"per_event":    MaxEndpoints,
			"traceparents": traceparents,
		}).Query(func(rows pgx.Rows) error {
		var org id.Organization
		_, err := pgx.ForEachRow(rows, []any{&org}, func() error { Wake(b, org); return nil })
		return err
	})
}

// endpointRows reads Endpoints; a condition on e follows it.
const endpointRows = `
	SELECT
		e.id,
		e.organization_id AS organization,
		e.url,
		e.events,
		e.time_zone,
		e.switched_on,
		e.switched_off_at,
		e.switched_off_reason,
		e.secret_version,
		e.previous_until,
		e.created_at,
		coalesce(e.managed_by, '') AS managed_by,
		e.retained,
		h.consecutive_failures,
		h.last_success_at,
		h.last_failure_at
	FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id `

func selectEndpoint(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint) (Endpoint, error) {
	return pg.One[Endpoint](ctx, q, endpointRows+`WHERE e.organization_id = $1 AND e.id = $2`, org, endpoint)
}

func selectManaged(ctx context.Context, q pg.Querier, managedBy string) (Managed, error) {
	return pg.One[Managed](ctx, q, `
		SELECT
			m.*,
			o.slug,
			(SELECT count(*) FROM (SELECT FROM webhook_queue WHERE endpoint_id = m.id LIMIT $2) AS w) AS backlog
		FROM (`+endpointRows+`WHERE e.managed_by = $1) AS m
		JOIN organizations o ON o.id = m.organization`, managedBy, maxBacklog)
}

func selectURL(ctx context.Context, q pg.Querier, org id.Organization, url string) (Endpoint, error) {
	return pg.One[Endpoint](ctx, q, endpointRows+`WHERE e.organization_id = $1 AND e.url = $2`, org, url)
}

// updateManager hands an endpoint from one manager to another; "" are people. It changes nothing when somebody else has it.
func updateManager(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, from, to string, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		UPDATE webhook_endpoints SET managed_by = nullif($4, ''), retained = false, updated_at = $5
		WHERE organization_id = $1 AND id = $2 AND coalesce(managed_by, '') = $3`, org, endpoint, from, to, now)
	return tag.RowsAffected() == 1, err
}

// List reads the organization's endpoints, oldest first; there are MaxEndpoints at most.
func (s Service) List(ctx context.Context, org id.Organization) ([]Endpoint, error) {
	return pg.List[Endpoint](ctx, s.DB, endpointRows+`WHERE e.organization_id = $1 ORDER BY e.id`, org)
}

// ListManaged reads the endpoints of all organizations whose Settings.ManagedBy begins with
// prefix, so that a manager can find endpoints whose resources are gone.
func (s Service) ListManaged(ctx context.Context, prefix string) ([]Endpoint, error) {
	return pg.List[Endpoint](ctx, s.DB, endpointRows+`WHERE starts_with(e.managed_by, $1) ORDER BY e.id`, prefix)
}

// insertEndpoint takes the organization's lowest free slot. It locks the organization's row,
// so that two callers do not choose the same. Faults: Conflict "url_limit".
func insertEndpoint(ctx context.Context, tx *pg.Tx, org id.Organization, s Settings, now time.Time) (Endpoint, error) {
	if _, err := tx.Exec(ctx, `SELECT id FROM organizations WHERE id = $1 FOR NO KEY UPDATE`, org); err != nil {
		return Endpoint{}, err
	}
	var made id.Endpoint
	err := tx.QueryRow(ctx, `
		INSERT INTO webhook_endpoints (
			organization_id,
			slot,
			url,
			events,
			time_zone,
			created_at,
			updated_at,
			managed_by,
			retained
		)
		SELECT
			@org,
			free.slot,
			@url,
			coalesce(@events::text[], '{}'),
			coalesce(@time_zone, 'UTC'),
			@now,
			@now,
			nullif(@managed_by, ''),
			coalesce(@retained, false)
		FROM (
			SELECT min(s) AS slot FROM generate_series(1, @limit::int) AS s
			WHERE s NOT IN (SELECT slot FROM webhook_endpoints WHERE organization_id = @org)
		) AS free
		WHERE free.slot IS NOT NULL
		RETURNING id`,
		pg.Args{
			"org":        org,
			"url":        s.URL,
			"events":     s.Events,
			"time_zone":  s.TimeZone,
			"now":        now,
			"limit":      MaxEndpoints,
			"managed_by": s.ManagedBy,
			"retained":   s.Retained,
		}).Scan(&made)
	if pg.None(err) {
		return Endpoint{}, fault.New(fault.Conflict, "url_limit",
			"url: the organization has %d URLs, which is the limit; delete one first", MaxEndpoints)
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
	_, err := tx.Exec(ctx, `
		INSERT INTO webhook_secrets (endpoint_id, version, sealed, created_at)
		VALUES ($1, $2, $3, $4)`,
		endpoint, version, sealed, now)
	return err
}

func updateEndpoint(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, s Settings, now time.Time) error {
	var changed id.Endpoint
	return q.QueryRow(ctx, `
		UPDATE webhook_endpoints SET
			url = coalesce(@url, url),
			events = coalesce(@events::text[], events),
			time_zone = coalesce(@time_zone, time_zone),
			retained = coalesce(@retained, retained),
			updated_at = @now
		WHERE organization_id = @org AND id = @endpoint RETURNING id`,
		pg.Args{
			"org":       org,
			"endpoint":  endpoint,
			"url":       s.URL,
			"events":    s.Events,
			"time_zone": s.TimeZone,
			"retained":  s.Retained,
			"now":       now,
		}).Scan(&changed)
}

// deleteEndpoint deletes an endpoint and returns its URL.
func deleteEndpoint(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint) (url string, err error) {
	err = tx.QueryRow(ctx, `
		DELETE FROM webhook_endpoints
		WHERE organization_id = $1 AND id = $2
		RETURNING url`, org, endpoint).Scan(&url)
	return url, err
}

func deleteEndpoints(ctx context.Context, tx *pg.Tx, org id.Organization) ([]id.Endpoint, error) {
	return pg.Column[id.Endpoint](ctx, tx, `DELETE FROM webhook_endpoints WHERE organization_id = $1 RETURNING id`, org)
}

// Cancel ends the pending deliveries of a removed endpoint. It can be repeated.
func Cancel(ctx context.Context, q pg.Querier, endpoint id.Endpoint, now time.Time) error {
	return endPending(ctx, q, `SELECT NOT EXISTS (SELECT FROM webhook_endpoints WHERE id = $1)`, "true", StatusCancelled, endpoint, now)
}

// Skip marks the pending deliveries of a URL as skipped, unless it has been switched on again.
// Skipped deliveries stay listed and can be recovered.
func Skip(ctx context.Context, q pg.Querier, endpoint id.Endpoint, now time.Time) error {
	return endPending(ctx, q, `SELECT EXISTS (SELECT FROM webhook_endpoints WHERE id = $1 AND NOT switched_on)`, "NOT asked", StatusSkipped, endpoint, now)
}

// EndGivenBack ends the pending deliveries of a URL if it has been switched off or removed: the task that
// does so passed over those that a sender had in hand.
func EndGivenBack(ctx context.Context, q pg.Querier, endpoint id.Endpoint, now time.Time) error {
	if err := Skip(ctx, q, endpoint, now); err != nil {
		return err
	}
	return Cancel(ctx, q, endpoint, now)
}

// endPending ends the endpoint's deliveries that are pending and not at a sender, as long as
// applies holds. It goes through the queue once, a batch at a time.
func endPending(ctx context.Context, q pg.Querier, applies, which string, status Status, endpoint id.Endpoint, now time.Time) error {
	const size = 1000
	type position struct {
		Due  time.Time
		Last id.Delivery
	}
	for after := (position{}); ; {
		var so bool
		if err := q.QueryRow(ctx, applies, endpoint).Scan(&so); err != nil || !so {
			return err
		}
		batch, err := pg.List[position](ctx, q, `
			WITH picked AS MATERIALIZED (
				SELECT ctid AS at, id, due_at FROM webhook_queue
				WHERE endpoint_id = @endpoint AND (due_at, id) > (@due, @last) AND `+which+`
				ORDER BY due_at, id LIMIT @size
			), `+EndPicked+`
			SELECT due_at AS due, id AS last FROM picked ORDER BY due_at, id`,
			pg.Args{
				"endpoint": endpoint,
				"due":      after.Due,
				"last":     after.Last,
				"size":     size,
				"status":   status,
				"now":      now,
			})
		if err != nil || len(batch) < size {
			return err
		}
		after = batch[size-1]
	}
}

// IsLeased is true for a row q of webhook_queue that a sender has in hand. One whose attempt failed is due
// after its lease has ended, which other deliveries may still be attempted under.
const IsLeased = ` EXISTS (
	SELECT FROM webhook_leases l
	WHERE l.organization_id = q.organization_id AND l.endpoint_id = q.endpoint_id AND q.id = ANY (l.deliveries)
	  AND q.due_at <= l.until) `

// EndPicked is a part of a statement that ends, without an attempt, the deliveries whose rows of
// webhook_queue the table expression picked names in its column at (ctid). Those that a sender has
// in hand stay. Arguments: @status and @now. The table expression ended counts by its rows.
const EndPicked = ` gone AS (
	DELETE FROM webhook_queue q USING picked
	WHERE q.ctid = picked.at AND NOT` + IsLeased + `
	RETURNING q.organization_id, q.endpoint_id, q.id, q.event_id, q.entries
), ended AS (
	INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, status, started_at)
	SELECT organization_id, endpoint_id, id, entries + 1, event_id, @status, @now FROM gone
	RETURNING delivery_id
)`

// Successor selects the delivery to an endpoint, which is an expression, of the newest event about the same
// result as the event v that the endpoint has accepted. Ids that are drawn within moments bound what is searched.
func Successor(endpoint string) string {
	return `
	SELECT j.delivery_id
	FROM webhook_events n
	JOIN webhook_journal j ON j.organization_id = n.organization_id AND j.endpoint_id = ` + endpoint + `
		AND j.event_id = n.id AND j.outcome = 'delivered'
		AND j.delivery_id >= uuid7_floor(uuid7_time(n.id) - interval '10 seconds')
		AND j.delivery_id < uuid7_floor(uuid7_time(n.id) + interval '10 seconds')
	WHERE n.user_id = v.user_id AND n.organization_id = v.organization_id
	  AND v.type = 'result.final' AND n.type = v.type
	  AND n.id >= uuid7_floor(uuid7_time(v.id) - interval '1 minute')
	  AND n.sequence > v.sequence AND n.data ->> 'id' = v.data ->> 'id'
	ORDER BY n.sequence DESC LIMIT 1`
}

// lockSilence is how long a transaction that locks healths may be idle between two statements; PostgreSQL then ends it. A
// sender that stood still with the locks would keep others from recording what they have attempted, until their leases run
// out and it is attempted again.
const lockSilence = "3s"

// queueLockHealth reads and locks the health of endpoints, in their order.
func queueLockHealth(batch *pgx.Batch, endpoints []id.Endpoint, healths map[id.Endpoint]*Health) {
	type row struct {
		Endpoint id.Endpoint
		Health
	}
	batch.Queue(`SELECT set_config('idle_in_transaction_session_timeout', $1, true)`, lockSilence)
	batch.Queue(`
		SELECT
			endpoint_id AS endpoint,
			consecutive_failures AS failures,
			runs,
			early,
			allowance,
			coalesce(next_probe_at, '0001-01-01Z') AS next_probe_at,
			coalesce(last_success_at, '0001-01-01Z') AS last_success,
			coalesce(last_failure_at, '0001-01-01Z') AS last_failure
		FROM webhook_health WHERE endpoint_id = ANY ($1) ORDER BY endpoint_id FOR NO KEY UPDATE`, endpoints).
		Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
			for _, r := range found {
				healths[r.Endpoint] = &r.Health
			}
			return err
		})
}

// each is the column of an array argument: what of finds in every item.
func each[T, V any](items []T, of func(T) V) []V {
	column := make([]V, len(items))
	for i, item := range items {
		column[i] = of(item)
	}
	return column
}

// HasKey is true for the row of webhook_queue with that key. The function and the sums leave webhook_queue_lookup as the
// only index that serves: the statistics are often those of an empty queue, by which PostgreSQL takes walking along
// another one for no worse.
func HasKey(org, endpoint, delivery string) string {
	return ` uuid_send(id) = uuid_send(` + delivery + `) AND endpoint_id + 0 = ` + endpoint + ` AND organization_id + 0 = ` + org + ` `
}

// queueOutcomes records the outcomes that are not recorded yet, each as an entry of the journal, and
// adds them to fresh. A delivery that has ended leaves the queue, another waits for its next attempt, unless
// its URL has been switched off or removed meanwhile: the tasks that end pending ones may already have run.
//
// Each row of the queue is looked up by itself: a join would let the planner read the whole
// queue, and the plan would stay when the queue has grown.
func queueOutcomes(batch *pgx.Batch, outcomes []Outcome, fresh map[attemptKey]bool) error {
	headers := make([]*string, len(outcomes))
	statuses := make([]string, len(outcomes))
	dues := make([]time.Time, len(outcomes))
	for i, o := range outcomes {
		if own := o.ownHeaders(); len(own) > 0 {
			h, err := json.Marshal(own)
			if err != nil {
				return err
			}
			text := string(h)
			headers[i] = &text
		}
		status, due := o.next()
		if status != StatusWaiting {
			statuses[i] = string(status)
		}
		dues[i] = due
	}
	batch.Queue(`
		WITH o AS MATERIALIZED (
			SELECT * FROM unnest(
				@organizations::bigint[],
				@endpoints::bigint[],
				@deliveries::uuid[],
				@numbers::int[],
				@statuses::text[],
				@dues::timestamptz[],
				@tries::int[],
				@started::timestamptz[],
				@durations::int[],
				@verdicts::text[],
				@causes::text[],
				@details::text[],
				@answers::int[],
				@responses::bytea[],
				@headers::text[],
				@peers::text[],
				@dns::int[],
				@connect::int[],
				@tls::int[],
				@first_byte::int[]
			) AS u(
				organization_id,
				endpoint_id,
				delivery_id,
				number,
				status,
				due_at,
				tries,
				started_at,
				duration_us,
				outcome,
				cause,
				detail,
				response_status,
				response_body,
				request_headers,
				peer,
				dns_us,
				connect_us,
				tls_us,
				first_byte_us
			)
		), found AS MATERIALIZED (
			SELECT o.*, q.at, coalesce(
				nullif(o.status, ''),
				(SELECT CASE WHEN switched_on THEN '' ELSE 'skipped' END
					FROM webhook_endpoints WHERE id = o.endpoint_id),
				'cancelled') AS becomes
			FROM o CROSS JOIN LATERAL (
				SELECT ctid AS at FROM webhook_queue
				WHERE`+HasKey("o.organization_id", "o.endpoint_id", "o.delivery_id")+`AND entries = o.number - 1
				LIMIT 1
			) AS q
		), gone AS (
			DELETE FROM webhook_queue q USING found WHERE q.ctid = found.at AND found.becomes <> ''
			RETURNING found.*, q.event_id
		), kept AS (
			UPDATE webhook_queue q
			SET
				entries = found.number,
				tries = found.tries,
				due_at = found.due_at,
				asked = false,
				in_order = false
			FROM found WHERE q.ctid = found.at AND found.becomes = ''
			RETURNING found.*, q.event_id
		)
		INSERT INTO webhook_journal (
			organization_id,
			endpoint_id,
			delivery_id,
			number,
			event_id,
			status,
			started_at,
			duration_us,
			outcome,
			cause,
			detail,
			response_status,
			response_body,
			request_headers,
			peer,
			dns_us,
			connect_us,
			tls_us,
			first_byte_us
		)
		SELECT
			s.organization_id,
			s.endpoint_id,
			s.delivery_id,
			s.number,
			s.event_id,
			nullif(s.becomes, ''),
			s.started_at,
			s.duration_us,
			s.outcome,
			s.cause,
			s.detail,
			nullif(s.response_status, 0),
			s.response_body,
			s.request_headers::json,
			s.peer,
			nullif(s.dns_us, 0),
			nullif(s.connect_us, 0),
			nullif(s.tls_us, 0),
			nullif(s.first_byte_us, 0)
		FROM (SELECT * FROM gone UNION ALL SELECT * FROM kept) AS s
		RETURNING delivery_id AS delivery, number`,
		pg.Args{
			"organizations": each(outcomes, func(o Outcome) int64 { return int64(o.Organization) }),
			"endpoints":     each(outcomes, func(o Outcome) int64 { return int64(o.Endpoint) }),
			"deliveries":    each(outcomes, func(o Outcome) id.Delivery { return o.Delivery }),
			"numbers":       each(outcomes, func(o Outcome) int { return o.Number }),
			"statuses":      statuses,
			"dues":          dues,
			"tries":         each(outcomes, func(o Outcome) int { return o.Tries + 1 }),
			"started":       each(outcomes, func(o Outcome) time.Time { return o.StartedAt }),
			"durations":     each(outcomes, func(o Outcome) int32 { return micros(o.Duration) }),
			"verdicts":      each(outcomes, func(o Outcome) string { return string(o.Verdict) }),
			"causes":        each(outcomes, func(o Outcome) string { return o.Cause }),
			"details":       each(outcomes, func(o Outcome) string { return cleanText(o.Detail) }),
			"answers":       each(outcomes, func(o Outcome) int { return o.Status }),
			"responses":     each(outcomes, func(o Outcome) []byte { return o.Response }),
			"headers":       headers,
			"peers":         each(outcomes, func(o Outcome) string { return o.Peer }),
			"dns":           each(outcomes, func(o Outcome) int32 { return micros(o.Timing.DNS) }),
			"connect":       each(outcomes, func(o Outcome) int32 { return micros(o.Timing.Connect) }),
			"tls":           each(outcomes, func(o Outcome) int32 { return micros(o.Timing.TLS) }),
			"first_byte":    each(outcomes, func(o Outcome) int32 { return micros(o.Timing.FirstByte) }),
		}).Query(func(rows pgx.Rows) error {
		keys, err := pgx.CollectRows(rows, pgx.RowToStructByName[attemptKey])
		for _, key := range keys {
			fresh[key] = true
		}
		return err
	})
	return nil
}

// ListedLeases are the leases l that three arguments list. The last condition bounds what is read where PostgreSQL, with
// the statistics of an empty table, begins at the leases.
const ListedLeases = `unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS u(organization_id, endpoint_id, id)
		WHERE l.organization_id = u.organization_id AND l.endpoint_id = u.endpoint_id AND l.id = u.id
		  AND l.organization_id = ANY ($1)`

// queueEndOfLeases gives up the leases that the outcomes name.
func queueEndOfLeases(batch *pgx.Batch, outcomes []Outcome) {
	type key struct {
		endpoint id.Endpoint
		lease    [16]byte
	}
	seen := make(map[key]bool)
	var leases []Outcome
	for _, o := range outcomes {
		if k := (key{o.Endpoint, o.Lease}); o.Lease != ([16]byte{}) && !seen[k] {
			seen[k] = true
			leases = append(leases, o)
		}
	}
	if len(leases) == 0 {
		return
	}
	batch.Queue(`DELETE FROM webhook_leases l USING `+ListedLeases,
		each(leases, func(o Outcome) int64 { return int64(o.Organization) }),
		each(leases, func(o Outcome) int64 { return int64(o.Endpoint) }),
		each(leases, func(o Outcome) [16]byte { return o.Lease }))
}

func queueHealths(batch *pgx.Batch, healths map[id.Endpoint]*Health) {
	endpoints := slices.Collect(maps.Keys(healths))
	batch.Queue(`
		UPDATE webhook_health AS h SET
			consecutive_failures = u.failures,
			runs = u.runs,
			early = u.early,
			allowance = u.allowance,
			next_probe_at = u.probe,
			last_success_at = u.success,
			last_failure_at = u.failure
		FROM unnest(
			@endpoints::bigint[],
			@failures::int[],
			@runs::int[],
			@early::int[],
			@allowances::real[],
			@probes::timestamptz[],
			@successes::timestamptz[],
			@last_failures::timestamptz[]
		) AS u(id, failures, runs, early, allowance, probe, success, failure)
		WHERE h.endpoint_id = u.id AND h.endpoint_id = ANY (@endpoints)`,
		pg.Args{
			"endpoints":     endpoints,
			"failures":      each(endpoints, func(e id.Endpoint) int { return healths[e].Failures }),
			"runs":          each(endpoints, func(e id.Endpoint) int { return healths[e].Runs }),
			"early":         each(endpoints, func(e id.Endpoint) int { return healths[e].Early }),
			"allowances":    each(endpoints, func(e id.Endpoint) float64 { return healths[e].Allowance }),
			"probes":        each(endpoints, func(e id.Endpoint) *time.Time { return orNull(healths[e].NextProbeAt) }),
			"successes":     each(endpoints, func(e id.Endpoint) *time.Time { return orNull(healths[e].LastSuccess) }),
			"last_failures": each(endpoints, func(e id.Endpoint) *time.Time { return orNull(healths[e].LastFailure) }),
		})
}

// queueHours counts the attempts by endpoint and hour, tests not among them. Endpoints are in their order.
func queueHours(batch *pgx.Batch, outcomes []Outcome) {
	type hour struct {
		organization      id.Organization
		endpoint          id.Endpoint
		at                time.Time
		delivered, failed int
	}
	var hours []hour
	for _, o := range outcomes {
		if o.Ping {
			continue
		}
		h := hour{organization: o.Organization, endpoint: o.Endpoint, at: o.StartedAt.UTC().Truncate(time.Hour)}
		i := slices.IndexFunc(hours, func(x hour) bool { return x.endpoint == h.endpoint && x.at.Equal(h.at) })
		if i < 0 {
			i, hours = len(hours), append(hours, h)
		}
		if o.Verdict == Delivered {
			hours[i].delivered++
		} else {
			hours[i].failed++
		}
	}
	if len(hours) == 0 {
		return
	}
	batch.Queue(`
		INSERT INTO webhook_hours AS h (organization_id, endpoint_id, hour, delivered, failed)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::int[], $5::int[])
		ON CONFLICT (organization_id, endpoint_id, hour) DO UPDATE SET
			delivered = h.delivered + excluded.delivered,
			failed = h.failed + excluded.failed`,
		each(hours, func(h hour) int64 { return int64(h.organization) }),
		each(hours, func(h hour) int64 { return int64(h.endpoint) }),
		each(hours, func(h hour) time.Time { return h.at }),
		each(hours, func(h hour) int { return h.delivered }),
		each(hours, func(h hour) int { return h.failed }))
}

// updateOff switches a URL off and returns it; no row when it is off already.
func updateOff(ctx context.Context, tx *pg.Tx, o off) (url string, err error) {
	err = tx.QueryRow(ctx, `
		UPDATE webhook_endpoints
		SET switched_on = false, switched_off_at = $2, switched_off_reason = $3, updated_at = $2
		WHERE id = $1 AND switched_on RETURNING url`, o.endpoint, o.at, o.reason).Scan(&url)
	return url, err
}

// MakePartitions makes the partitions that are missing for the given number of days, in UTC,
// from first on. It alters one table after the other, and never holds the locks of two: a
// reader of two tables could otherwise wait for it while it waits for the reader.
func MakePartitions(ctx context.Context, db *pg.DB, first clock.Date, days int) error {
	for _, parent := range []string{"webhook_events", "webhook_journal"} {
		if _, err := db.Exec(ctx, `
			SELECT make_partitions($1, 'UTC', $2, $3, move_rows => true)`, parent, first, days); err != nil {
			return err
		}
	}
	return nil
}

// sealedSecret is an endpoint's current signing secret.
type sealedSecret struct {
	Version int
	Sealed  []byte
}

// lockSecret reads the current secret, and keeps others from replacing it meanwhile.
func lockSecret(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint) (sealedSecret, error) {
	if _, err := tx.Exec(ctx, `
		SELECT id
		FROM webhook_endpoints
		WHERE organization_id = $1 AND id = $2
		FOR NO KEY UPDATE`, org, endpoint); err != nil {
		return sealedSecret{}, err
	}
	return selectSecret(ctx, tx, org, endpoint)
}

func selectSecret(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint) (sealedSecret, error) {
	return pg.One[sealedSecret](ctx, q, `
		SELECT s.version, s.sealed FROM webhook_endpoints e
		JOIN webhook_secrets s ON s.endpoint_id = e.id AND s.version = e.secret_version
		WHERE e.organization_id = $1 AND e.id = $2`, org, endpoint)
}

// overlapping is the version that goes on signing beside the current one, and until when; zero for none.
type overlapping struct {
	version int
	until   time.Time
}

// replaceSecret makes the version the current one and deletes the older ones, but for the one to keep.
func replaceSecret(ctx context.Context, tx *pg.Tx, endpoint id.Endpoint, version int, sealed []byte, keep overlapping, now time.Time) error {
	if err := insertSecret(ctx, tx, endpoint, version, sealed, now); err != nil {
		return err
	}
	var batch pgx.Batch
	batch.Queue(`
		UPDATE webhook_endpoints
		SET secret_version = $2, previous_version = nullif($3, 0), previous_until = $4, updated_at = $5
		WHERE id = $1`, endpoint, version, keep.version, orNull(keep.until), now)
	batch.Queue(`
		DELETE FROM webhook_secrets
		WHERE endpoint_id = $1 AND version < $2 AND version <> $3`, endpoint, version, keep.version)
	return tx.SendBatch(ctx, &batch).Close()
}

// deletePrevious deletes the secrets whose overlap has ended, and returns their endpoints.
func deletePrevious(ctx context.Context, tx *pg.Tx, now time.Time) ([]id.Endpoint, error) {
	return pg.Column[id.Endpoint](ctx, tx, `
		WITH ended AS (
			UPDATE webhook_endpoints SET previous_version = NULL, previous_until = NULL
			WHERE previous_until <= $1 RETURNING id, secret_version
		), gone AS (
			DELETE FROM webhook_secrets s USING ended
			WHERE s.endpoint_id = ended.id AND s.version < ended.secret_version
		)
		SELECT id FROM ended`, now)
}

func lockOneHealth(ctx context.Context, tx *pg.Tx, endpoint id.Endpoint) error {
	_, err := tx.Exec(ctx, `SELECT endpoint_id FROM webhook_health WHERE endpoint_id = $1 FOR NO KEY UPDATE`, endpoint)
	return err
}

func updateOn(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		WITH turned AS (
			UPDATE webhook_endpoints
			SET switched_on = true, switched_off_at = NULL, switched_off_reason = '', updated_at = $3
			WHERE organization_id = $1 AND id = $2 AND NOT switched_on RETURNING id
		)
		UPDATE webhook_health SET consecutive_failures = 0, early = 0, allowance = DEFAULT, next_probe_at = NULL
		WHERE endpoint_id IN (SELECT id FROM turned)`, org, endpoint, now)
	return tag.RowsAffected() == 1, err
}

func updateOffByHand(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, reason string, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		UPDATE webhook_endpoints
		SET switched_on = false,
			switched_off_at = coalesce(switched_off_at, $4),
			switched_off_reason = $3,
			updated_at = $4
		WHERE organization_id = $1 AND id = $2 AND (switched_on OR switched_off_reason <> $3)`,
		org, endpoint, cleanText(reason), now)
	return tag.RowsAffected() == 1, err
}

func insertPing(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, delivery id.Delivery, event eventRow, now time.Time) error {
	var batch pgx.Batch
	batch.Queue(`
		INSERT INTO webhook_events (id, organization_id, type, created_at, data, traceparent, sequence)
		VALUES (@event, @org, @type, @now, @data::json, nullif(@traceparent, ''), next_position(@org))`,
		pg.Args{
			"event":       event.id,
			"org":         org,
			"type":        event.kind,
			"now":         now,
			"data":        string(event.data),
			"traceparent": obs.Traceparent(ctx),
		})
	batch.Queue(`
		INSERT INTO webhook_queue (id, event_id, organization_id, endpoint_id, due_at, asked)
		VALUES ($1, $2, $3, $4, $5, true)`, delivery, event.id, org, endpoint, now)
	return tx.SendBatch(ctx, &batch).Close()
}

// maxBacklog is where Service.Backlogs stops counting.
const maxBacklog = 100_000

// Backlogs counts the deliveries of each endpoint that are waiting or in flight, up to
// maxBacklog.
func (s Service) Backlogs(ctx context.Context, endpoints ...id.Endpoint) (map[id.Endpoint]int, error) {
	type row struct {
		Endpoint id.Endpoint
		Backlog  int
	}
	rows, err := pg.List[row](ctx, s.DB, `
		SELECT
			e.id AS endpoint,
			(SELECT count(*) FROM (SELECT FROM webhook_queue WHERE endpoint_id = e.id LIMIT $2) AS w) AS backlog
		FROM unnest($1::bigint[]) AS e(id)`, endpoints, maxBacklog)
	backlogs := make(map[id.Endpoint]int, len(rows))
	for _, r := range rows {
		backlogs[r.Endpoint] = r.Backlog
	}
	return backlogs, err
}

// Sealed is where signing secrets are; a value is bound to SecretContext.
var Sealed = seal.Column{Table: "webhook_secrets", Context: `'webhook_secrets/' || endpoint_id || '/' || version`}
