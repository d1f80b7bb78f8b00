package journal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// pendingLog and endedLog read Deliveries, which are in the queue or in the journal; conditions on
// q and on j follow them.
const (
	pendingLog = `
		SELECT
			q.id,
			q.event_id AS event,
			CASE WHEN` + webhook.IsLeased + `THEN 'in_flight' ELSE 'waiting' END AS status,
			q.due_at,
			NULL::timestamptz AS finished_at
		FROM webhook_queue q
		WHERE q.organization_id = @org AND q.endpoint_id = @endpoint `
	endedLog = `
		SELECT
			j.delivery_id,
			j.event_id,
			j.status,
			NULL,
			j.started_at + j.duration_us * interval '1 microsecond'
		FROM webhook_journal j
		WHERE j.organization_id = @org AND j.endpoint_id = @endpoint AND j.status IS NOT NULL `
)

// withEvents reads Deliveries of the table expression listed.
var withEvents = `
	SELECT
		listed.id,
		listed.event,
		v.type,
		coalesce(v.sequence, 0) AS sequence,
		listed.status,
		v.created_at,
		CASE WHEN listed.status = 'waiting' THEN listed.due_at END AS due_at,
		listed.finished_at,
		CASE WHEN listed.status = 'superseded' THEN (` + webhook.Successor("@endpoint") + `) END AS superseded_by
	FROM listed CROSS JOIN LATERAL (SELECT * FROM webhook_events WHERE id = listed.event OFFSET 0) AS v
	ORDER BY listed.id DESC`

// undelivered are the statuses of deliveries that ended without a success. These have an index
// of their own, which PostgreSQL uses for statements whose text says that no others are asked for.
var undelivered = []webhook.Status{
	webhook.StatusDeclined,
	webhook.StatusExhausted,
	webhook.StatusSkipped,
	webhook.StatusCancelled,
	webhook.StatusSuperseded,
}

// foundSQL selects up to @limit deliveries that the filter keeps and that are older than @before. The statuses are those that
// it wants as @statuses; nil: it does not.
func foundSQL(f Filter) (sql string, statuses []string) {
	statuses = make([]string, len(f.Statuses))
	pending, indexed := len(f.Statuses) == 0, len(f.Statuses) > 0
	for i, s := range f.Statuses {
		statuses[i] = string(s)
		pending = pending || s == webhook.StatusWaiting || s == webhook.StatusInFlight
		indexed = indexed && slices.Contains(undelivered, s)
	}
	slices.Sort(statuses)
	statuses = slices.Compact(statuses)
	ended := ` AND (cardinality(@statuses::text[]) = 0 OR j.status = ANY (@statuses))`
	if indexed { // one condition: PostgreSQL would take a second one beside the index's for one that keeps still fewer
		statuses, ended = nil, ` AND j.status IN ('`+strings.Join(statuses, `', '`)+`')`
	}
	older := `(@before::uuid = '00000000-0000-0000-0000-000000000000' OR %[1]s < @before)`
	if !f.Since.IsZero() {
		older += ` AND %[1]s >= uuid7_floor(@since)`
	}
	if !f.Until.IsZero() {
		older += ` AND %[1]s < uuid7_floor(@until)`
	}
	sql = `(` + endedLog + ended + `
		AND ` + fmt.Sprintf(older, "j.delivery_id") + ` ORDER BY j.delivery_id DESC LIMIT @limit)`
	if pending {
		sql = `(SELECT * FROM (` + pendingLog + ` AND ` + fmt.Sprintf(older, "q.id") + ` ORDER BY q.id DESC) AS q
			WHERE cardinality(@statuses::text[]) = 0 OR q.status = ANY (@statuses) LIMIT @limit) UNION ALL ` + sql
	}
	return sql, statuses
}

func (f Filter) args(org id.Organization, endpoint id.Endpoint, statuses []string, before id.Delivery, limit int) pg.Args {
	args := pg.Args{"org": org, "endpoint": endpoint, "before": before, "limit": limit}
	if statuses != nil {
		args["statuses"] = statuses
	}
	if !f.Since.IsZero() {
		args["since"] = f.Since
	}
	if !f.Until.IsZero() {
		args["until"] = f.Until
	}
	return args
}

func selectDeliveries(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, f Filter, before id.Delivery, limit int) ([]Delivery, error) {
	list, statuses := foundSQL(f)
	return pg.List[Delivery](ctx, q, `
		WITH found(id, event, status, due_at, finished_at) AS (`+list+`
		), listed AS MATERIALIZED (
			SELECT * FROM found ORDER BY id DESC LIMIT @limit
		)`+withEvents, f.args(org, endpoint, statuses, before, limit))
}

// looked is a delivery, and whether the filter keeps it.
type looked struct {
	ID   id.Delivery
	Kept bool
}

func selectLooked(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, f Filter, before id.Delivery, limit int) ([]looked, error) {
	list, statuses := foundSQL(f)
	args, kept := f.args(org, endpoint, statuses, before, limit), `true`
	if f.Type != "" {
		kept += ` AND (SELECT v.type FROM webhook_events v WHERE v.id = l.event) = @type`
		args["type"] = f.Type
	}
	if f.Cause != "" {
		kept += ` AND coalesce((
			SELECT a.cause FROM webhook_journal a
			WHERE a.organization_id = @org AND a.endpoint_id = @endpoint AND a.delivery_id = l.id
			  AND a.outcome IS NOT NULL
			ORDER BY a.number DESC LIMIT 1), '') = @cause`
		args["cause"] = f.Cause
	}
	return pg.List[looked](ctx, q, `
		WITH found(id, event, status, due_at, finished_at) AS (`+list+`
		), l AS MATERIALIZED (
			SELECT * FROM found ORDER BY id DESC LIMIT @limit
		)
		SELECT l.id, `+kept+` AS kept FROM l ORDER BY l.id DESC`, args)
}

func selectSome(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, deliveries []id.Delivery) ([]Delivery, error) {
	return pg.List[Delivery](ctx, q, `
		WITH listed(id, event, status, due_at, finished_at) AS MATERIALIZED (
			`+pendingLog+`AND q.id = ANY (@ids::uuid[]) UNION ALL`+endedLog+`AND j.delivery_id = ANY (@ids)
		)`+withEvents, pg.Args{"org": org, "endpoint": endpoint, "ids": deliveries})
}

func selectDelivery(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, delivery id.Delivery) (Delivery, error) {
	return pg.One[Delivery](ctx, q, `
		WITH listed(id, event, status, due_at, finished_at) AS MATERIALIZED (
			`+pendingLog+`AND q.id = @delivery UNION ALL`+endedLog+`AND j.delivery_id = @delivery
		)`+withEvents, pg.Args{"org": org, "endpoint": endpoint, "delivery": delivery})
}

// selectAttempts reads the latest attempts of the deliveries, which come newest first. They are numbered by
// themselves: the journal's numbers count entries that are no attempts, too. Each delivery's are looked up by
// themselves: taken together, they may be read as all that lie between the first and the last.
func selectAttempts(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, list []Delivery) ([]Attempt, error) {
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
			nth AS number,
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
		FROM unnest($1::uuid[]) AS one(id) CROSS JOIN LATERAL (
			SELECT *, row_number() OVER (ORDER BY number) AS nth, count(*) OVER () AS made
			FROM webhook_journal
			WHERE organization_id = $2 AND endpoint_id = $3 AND delivery_id = one.id AND outcome IS NOT NULL
		) AS attempts
		WHERE nth > made - $4
		ORDER BY delivery_id, nth`, ids, org, endpoint, mostAttempts)
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
	Number int // of the entry that it ended with; 0 while it is pending
}

// lockDelivery reads and locks a delivery. One that ends meanwhile leaves the queue for the journal,
// so they are read in this order.
func lockDelivery(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, delivery id.Delivery) (lockedDelivery, error) {
	args := pg.Args{"org": org, "endpoint": endpoint, "delivery": delivery}
	const known = ` AND EXISTS (SELECT FROM webhook_endpoints e WHERE e.organization_id = @org AND e.id = @endpoint) `
	d, err := pg.One[lockedDelivery](ctx, tx, `
		SELECT
			q.event_id AS event,
			v.type,
			CASE WHEN`+webhook.IsLeased+`THEN 'in_flight' ELSE 'waiting' END AS status,
			v.erased,
			0 AS number
		FROM webhook_queue q JOIN webhook_events v ON v.id = q.event_id
		WHERE q.organization_id = @org AND q.endpoint_id = @endpoint AND q.id = @delivery`+known+`
		FOR UPDATE OF q`, args)
	if !pg.None(err) {
		return d, err
	}
	return pg.One[lockedDelivery](ctx, tx, `
		SELECT
			j.event_id AS event,
			v.type,
			j.status,
			v.erased,
			j.number
		FROM webhook_journal j JOIN webhook_events v ON v.id = j.event_id
		WHERE j.organization_id = @org AND j.endpoint_id = @endpoint AND j.delivery_id = @delivery
		  AND j.status IS NOT NULL`+known+`
		FOR UPDATE OF j`, args)
}

// ask makes a delivery due at once, ahead of the backlog.
func ask(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint, delivery id.Delivery, d lockedDelivery, now time.Time) error {
	if d.Number == 0 {
		_, err := tx.Exec(ctx, `
			UPDATE webhook_queue SET due_at = $4, asked = true, in_order = false
			WHERE organization_id = $1 AND endpoint_id = $2 AND id = $3`, org, endpoint, delivery, now)
		return err
	}
	_, err := tx.Exec(ctx, `
		WITH continued AS (
			UPDATE webhook_journal SET status = NULL
			WHERE organization_id = @org AND endpoint_id = @endpoint AND delivery_id = @delivery AND number = @number
		)
		INSERT INTO webhook_queue (organization_id, endpoint_id, id, event_id, due_at, entries, asked)
		VALUES (@org, @endpoint, @delivery, @event, @now, @number, true)`,
		pg.Args{
			"org":      org,
			"endpoint": endpoint,
			"delivery": delivery,
			"number":   d.Number,
			"event":    d.Event,
			"now":      now,
		})
	return err
}

func selectOn(ctx context.Context, tx *pg.Tx, org id.Organization, endpoint id.Endpoint) (on bool, url string, err error) {
	err = tx.QueryRow(ctx, `
		SELECT switched_on, url
		FROM webhook_endpoints
		WHERE organization_id = $1 AND id = $2`, org, endpoint).Scan(&on, &url)
	return on, url, err
}

// isRecoverable is true for the entries j with which deliveries ended that a recovery of @endpoint
// of @events from @since to @until makes due again. Pings are not among them: they only mattered when they
// were sent.
const isRecoverable = ` j.organization_id = @org AND j.endpoint_id = @endpoint
	AND j.delivery_id >= uuid7_floor(@since) AND j.delivery_id < uuid7_floor(@until)
	AND j.status IN ('declined', 'exhausted', 'skipped', 'cancelled', 'superseded')
	AND j.status IN ('declined', 'exhausted', 'skipped')
	AND NOT EXISTS (SELECT FROM webhook_events v WHERE v.id = j.event_id AND v.type = 'ping')
	AND (@events::text[] IS NULL
		OR EXISTS (SELECT FROM webhook_events v WHERE v.id = j.event_id AND v.type = ANY (@events::text[]))) `

// countInOrder counts what a recovery r has made due again and was not attempted yet.
const countInOrder = `(SELECT count(*) FROM webhook_queue q WHERE q.endpoint_id = r.endpoint_id AND q.in_order)`

const selectRecovery = `
	SELECT
		r.id,
		r.organization_id AS organization,
		r.endpoint_id AS endpoint,
		r.since,
		r.until,
		r.events,
		coalesce(r.managed_by, '') AS managed_by,
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
			events,
			managed_by,
			status,
			total,
			created_at
		)
		SELECT
			@org,
			@endpoint,
			@since,
			@until,
			@events,
			nullif(@managed_by, ''),
			'running',
			(SELECT count(*) FROM webhook_journal j WHERE`+isRecoverable+`),
			@now
		RETURNING id`,
		pg.Args{
			"org":        r.Organization,
			"endpoint":   r.Endpoint,
			"since":      r.Since,
			"until":      r.Until,
			"events":     r.Events,
			"managed_by": r.ManagedBy,
			"now":        r.CreatedAt,
		}).Scan(&made)
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

// Managed lists the recoveries that the resource has begun, one a URL.
func Managed(ctx context.Context, q pg.Querier, managedBy string) ([]Recovery, error) {
	return pg.List[Recovery](ctx, q, selectRecovery+`WHERE r.managed_by = $1 ORDER BY r.id`, managedBy)
}

// stopped is a recovery that was ended.
type stopped struct {
	Organization id.Organization
	URL          string
}

// stopRecoveries ends those of the resource that are under way.
func stopRecoveries(ctx context.Context, tx *pg.Tx, managedBy string, now time.Time) ([]stopped, error) {
	return pg.List[stopped](ctx, tx, `
		UPDATE webhook_recoveries r SET status = 'stopped', finished_at = $2
		FROM webhook_endpoints e
		WHERE e.id = r.endpoint_id AND r.managed_by = $1 AND r.status = 'running'
		RETURNING r.organization_id AS organization, e.url`, managedBy, now)
}

// recoveryState is what a step needs to know.
type recoveryState struct {
	ID           id.Recovery
	Organization id.Organization
	Endpoint     id.Endpoint
	Since        time.Time
	Until        time.Time
	Events       []webhook.Type
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
			r.events,
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
		WITH picked AS MATERIALIZED (
			SELECT j.organization_id, j.endpoint_id, j.delivery_id, j.number FROM webhook_journal j
			WHERE`+isRecoverable+`AND j.delivery_id > (
				SELECT coalesce(position, '00000000-0000-0000-0000-000000000000')
				FROM webhook_recoveries
				WHERE id = @recovery)
			ORDER BY j.delivery_id LIMIT @limit FOR UPDATE OF j
		), continued AS (
			UPDATE webhook_journal j SET status = NULL FROM picked
			WHERE j.organization_id = picked.organization_id AND j.endpoint_id = picked.endpoint_id
			  AND j.delivery_id = picked.delivery_id AND j.number = picked.number
			  AND j.delivery_id >= uuid7_floor(@since) AND j.delivery_id < uuid7_floor(@until)
			RETURNING j.organization_id, j.endpoint_id, j.delivery_id, j.event_id, j.number
		), moved AS (
			INSERT INTO webhook_queue (organization_id, endpoint_id, id, event_id, due_at, entries, in_order)
			SELECT organization_id, endpoint_id, delivery_id, event_id, @now, number, true FROM continued
			RETURNING id
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
			"org":      s.Organization,
			"endpoint": s.Endpoint,
			"since":    s.Since,
			"until":    s.Until,
			"events":   s.Events,
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
		DELETE FROM webhook_journal_default j
		WHERE delivery_id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC')
		  AND NOT EXISTS (
			SELECT FROM webhook_queue q
			WHERE q.organization_id = j.organization_id AND q.endpoint_id = j.endpoint_id AND q.id = j.delivery_id)`, before)
	batch.Queue(`
		DELETE FROM webhook_events_default
		WHERE id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC')
		  AND id NOT IN (
			SELECT event_id FROM webhook_queue WHERE event_id < uuid7_floor($1::date::timestamp AT TIME ZONE 'UTC'))`, before)
	batch.Queue(`DELETE FROM webhook_hours WHERE hour < $1::date::timestamp AT TIME ZONE 'UTC'`, before)
	return dropped, tx.SendBatch(ctx, &batch).Close()
}

// Hours reads how attempts ended, by URL and hour, of the hours that begin at since or later. Tests are not counted.
func Hours(ctx context.Context, q pg.Querier, org id.Organization, since time.Time) ([]Hour, error) {
	return pg.List[Hour](ctx, q, `
		SELECT endpoint_id AS endpoint, hour AS at, delivered, failed FROM webhook_hours
		WHERE organization_id = $1 AND hour >= $2 ORDER BY endpoint_id, hour`, org, since)
}

// pendingURLs walks over the URLs that have pending deliveries, one index step each.
const pendingURLs = ` urls AS (
	(SELECT endpoint_id FROM webhook_queue ORDER BY endpoint_id LIMIT 1)
	UNION ALL
	SELECT (
		SELECT q.endpoint_id FROM webhook_queue q
		WHERE q.endpoint_id > urls.endpoint_id ORDER BY q.endpoint_id LIMIT 1)
	FROM urls WHERE urls.endpoint_id IS NOT NULL
) `

// selectStopped lists URLs with pending deliveries that cannot be sent: it is off, or gone.
func selectStopped(ctx context.Context, q pg.Querier) (off, gone []id.Endpoint, err error) {
	type row struct {
		ID   id.Endpoint
		Gone bool
	}
	rows, err := pg.List[row](ctx, q, `WITH RECURSIVE`+pendingURLs+`
		SELECT urls.endpoint_id AS id, e.id IS NULL AS gone
		FROM urls LEFT JOIN webhook_endpoints e ON e.id = urls.endpoint_id
		WHERE urls.endpoint_id IS NOT NULL AND e.switched_on IS NOT TRUE`)
	for _, r := range rows {
		if r.Gone {
			gone = append(gone, r.ID)
		} else {
			off = append(off, r.ID)
		}
	}
	return off, gone, err
}

// eraseSome erases up to limit events of the person, and counts them. A delivery's id is drawn
// within moments of its event's, which bounds the search. urls are those that the organizations
// of the events have, or had as long as the journal goes back. See EraseUser for again.
func eraseSome(ctx context.Context, tx *pg.Tx, user id.User, now time.Time, again bool, limit int) (int, error) {
	var n int
	err := tx.QueryRow(ctx, `
		WITH RECURSIVE erased AS (
			UPDATE webhook_events SET
				data = '{"erased":true}',
				user_id = CASE WHEN @again::boolean THEN user_id END,
				erased = true
			WHERE user_id = @user AND id IN (
				SELECT id FROM webhook_events WHERE user_id = @user AND NOT (@again AND erased) LIMIT @limit)
			RETURNING id, organization_id
		), urls AS (
			SELECT DISTINCT organization_id, 0::bigint AS endpoint_id FROM erased
			UNION ALL
			SELECT urls.organization_id, least((
				SELECT endpoint_id FROM webhook_journal
				WHERE organization_id = urls.organization_id AND endpoint_id > urls.endpoint_id
				ORDER BY endpoint_id LIMIT 1
			), (
				SELECT endpoint_id FROM webhook_queue
				WHERE organization_id = urls.organization_id AND endpoint_id > urls.endpoint_id
				ORDER BY endpoint_id LIMIT 1
			))
			FROM urls WHERE urls.endpoint_id IS NOT NULL
		), places AS MATERIALIZED (
			SELECT
				urls.organization_id,
				urls.endpoint_id,
				erased.id AS event_id,
				uuid7_floor(uuid7_time(erased.id) - interval '10 seconds') AS first,
				uuid7_floor(uuid7_time(erased.id) + interval '10 seconds') AS last
			FROM erased JOIN urls ON urls.organization_id = erased.organization_id
			WHERE urls.endpoint_id > 0
		), picked AS MATERIALIZED (
			SELECT q.at FROM places CROSS JOIN LATERAL (
				SELECT ctid AS at FROM webhook_queue
				WHERE organization_id = places.organization_id AND endpoint_id = places.endpoint_id
				  AND id >= places.first AND id < places.last AND event_id = places.event_id
			) AS q
		), `+webhook.EndPicked+`, answers AS (
			UPDATE webhook_journal j SET response_body = NULL
			FROM places
			WHERE j.organization_id = places.organization_id AND j.endpoint_id = places.endpoint_id
			  AND j.delivery_id >= places.first AND j.delivery_id < places.last
			  AND j.event_id = places.event_id AND j.response_body IS NOT NULL
		)
		SELECT count(*) FROM erased`,
		pg.Args{"user": user, "now": now, "again": again, "limit": limit, "status": webhook.StatusCancelled}).Scan(&n)
	return n, err
}

func selectMeasurement(ctx context.Context, q pg.Querier, now time.Time) (Measurement, error) {
	return pg.One[Measurement](ctx, q, `WITH RECURSIVE`+pendingURLs+`
		SELECT
			(SELECT coalesce(sum(cardinality(deliveries)), 0)::int FROM webhook_leases) AS in_flight,
			(SELECT count(*) FROM webhook_endpoints WHERE switched_on) AS on,
			(SELECT count(*) FROM webhook_endpoints WHERE NOT switched_on) AS off,
			(SELECT count(*) FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id
				WHERE e.switched_on AND h.next_probe_at IS NOT NULL) AS probing,
			(SELECT coalesce(avg(h.allowance), 0)::float8
				FROM webhook_endpoints e
				JOIN webhook_health h ON h.endpoint_id = e.id
				WHERE e.switched_on) AS allowance,
			(SELECT coalesce(sum(cardinality(deliveries)), 0)::int FROM webhook_leases
				WHERE until < $1::timestamptz - interval '10 minutes')
			+ (SELECT count(*) FROM urls
				JOIN webhook_queue q ON q.endpoint_id = urls.endpoint_id
				WHERE NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.id = urls.endpoint_id)) AS unaccounted`, now)
}

// selectBacklogs reads the backlogs of all organizations, the largest first. Oldest is the age
// of the oldest event among those that are counted.
func selectBacklogs(ctx context.Context, q pg.Querier, now time.Time) ([]Backlog, error) {
	return pg.List[Backlog](ctx, q, `WITH RECURSIVE`+pendingURLs+`
		SELECT
			o.slug AS organization,
			sum(w.n)::int AS waiting,
			greatest($1::timestamptz - uuid7_time(min(w.oldest)::uuid), interval '0') AS oldest
		FROM urls JOIN webhook_endpoints e ON e.id = urls.endpoint_id JOIN organizations o ON o.id = e.organization_id
		CROSS JOIN LATERAL (
			SELECT count(*) AS n, min(id::text) AS oldest FROM (
				SELECT id FROM webhook_queue WHERE endpoint_id = e.id LIMIT 100000) AS counted
		) AS w
		GROUP BY o.slug HAVING sum(w.n) > 0 ORDER BY 2 DESC, 1`, now)
}

// adopt moves up to limit rows of webhook_deliveries, with their attempts, to the queue and to the
// journal, and counts them: those that wait, or all that no sender of the version before can have
// in hand.
func adopt(ctx context.Context, q pg.Querier, which string, limit int) (n int, err error) {
	err = q.QueryRow(ctx, `
		WITH picked AS MATERIALIZED (
			SELECT d.id FROM webhook_deliveries d WHERE `+which+` LIMIT $1
		), gone AS (
			DELETE FROM webhook_deliveries d USING picked WHERE d.id = picked.id AND (`+which+`) RETURNING d.*
		), attempts AS (
			DELETE FROM webhook_attempts a USING gone WHERE a.delivery_id = gone.id RETURNING a.*
		), queued AS (
			INSERT INTO webhook_queue (
				organization_id,
				endpoint_id,
				id,
				event_id,
				due_at,
				entries,
				tries,
				asked,
				in_order
			)
			SELECT
				organization_id,
				endpoint_id,
				id,
				event_id,
				due_at,
				attempts,
				tries,
				asked,
				in_order
			FROM gone WHERE status IN ('waiting', 'leased')
		), entered AS (
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
				gone.organization_id,
				gone.endpoint_id,
				gone.id,
				a.number,
				gone.event_id,
				CASE WHEN a.number = gone.attempts AND gone.status NOT IN ('waiting', 'leased') THEN gone.status END,
				a.started_at,
				a.duration_us,
				a.outcome,
				a.cause,
				a.detail,
				a.response_status,
				a.response_body,
				a.request_headers,
				a.peer,
				a.dns_us,
				a.connect_us,
				a.tls_us,
				a.first_byte_us
			FROM gone JOIN attempts a ON a.delivery_id = gone.id
		), ended AS (
			INSERT INTO webhook_journal (
				organization_id,
				endpoint_id,
				delivery_id,
				number,
				event_id,
				status,
				started_at
			)
			SELECT
				organization_id,
				endpoint_id,
				id,
				attempts + 1,
				event_id,
				status,
				coalesce(finished_at, due_at)
			FROM gone
			WHERE status NOT IN ('waiting', 'leased')
			  AND NOT EXISTS (SELECT FROM attempts a WHERE a.delivery_id = gone.id AND a.number = gone.attempts)
		)
		SELECT count(*) FROM gone`, limit).Scan(&n)
	return n, err
}
