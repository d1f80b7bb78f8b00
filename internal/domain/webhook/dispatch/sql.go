package dispatch

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lead"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// head is a URL that has pending deliveries, and when the first of them is due.
type head struct {
	Endpoint id.Endpoint
	Due      time.Time
}

// hasSpecial says whether anything is pending that does not go by the allowance.
const hasSpecial = `(EXISTS (SELECT FROM webhook_queue WHERE asked) OR EXISTS (SELECT FROM webhook_queue WHERE in_order))`

// inShards is true for endpoints of the shards in an argument; see shardOf.
func inShards(column, arg string) string { return column + ` % 16 = ANY (` + arg + `::int[]) ` }

// selectHeads walks over the URLs that have pending deliveries, one index step each.
func selectHeads(ctx context.Context, q pg.Querier, shards []int32) (heads []head, special bool, err error) {
	var batch pgx.Batch
	batch.Queue(`
		WITH RECURSIVE heads AS (
			(SELECT endpoint_id, due_at FROM webhook_queue ORDER BY endpoint_id, due_at LIMIT 1)
			UNION ALL
			SELECT n.endpoint_id, n.due_at
			FROM heads CROSS JOIN LATERAL (
				SELECT endpoint_id, due_at FROM webhook_queue
				WHERE endpoint_id > heads.endpoint_id ORDER BY endpoint_id, due_at LIMIT 1
			) AS n
		)
		SELECT endpoint_id AS endpoint, due_at AS due FROM heads WHERE `+inShards("endpoint_id", "$1"), shards).Query(func(rows pgx.Rows) (err error) {
		heads, err = pgx.CollectRows(rows, pgx.RowToStructByName[head])
		return err
	})
	batch.Queue(`SELECT ` + hasSpecial).QueryRow(func(row pgx.Row) error { return row.Scan(&special) })
	err = q.SendBatch(ctx, &batch).Close()
	return heads, special, err
}

// selectStates reads the states of endpoints, whose leases have at least the ids in floors, and of
// all other endpoints of orgs that are not known.
func selectStates(ctx context.Context, q pg.Querier, shards []int32, endpoints []id.Endpoint, floors [][16]byte, orgs []id.Organization, known []id.Endpoint) (states []state, special bool, err error) {
	if len(endpoints)+len(orgs) == 0 {
		return nil, false, nil
	}
	type row struct {
		state
		Special bool
	}
	rows, err := pg.List[row](ctx, q, `
		WITH u AS MATERIALIZED (
			SELECT id, floor FROM unnest(@endpoints::bigint[], @floors::uuid[]) AS u(id, floor)
			UNION ALL
			SELECT id, '00000000-0000-0000-0000-000000000000' FROM webhook_endpoints
			WHERE organization_id = ANY (@orgs) AND id <> ALL (@known::bigint[]) AND `+inShards("id", "@shards")+`
		)
		SELECT
			e.id AS endpoint,
			e.organization_id AS organization,
			e.switched_on,
			h.consecutive_failures AS failures,
			h.runs,
			h.early,
			h.allowance,
			coalesce(h.next_probe_at, '0001-01-01Z') AS next_probe_at,
			coalesce(h.last_success_at, '0001-01-01Z') AS last_success,
			coalesce(h.last_failure_at, '0001-01-01Z') AS last_failure,
			coalesce(l.leased, '{}') AS leased,
			coalesce(l.floor, '00000000-0000-0000-0000-000000000000') AS floor,
			`+hasSpecial+` AS special
		FROM u
		JOIN webhook_endpoints e ON e.id = u.id
		JOIN webhook_health h ON h.endpoint_id = u.id
		LEFT JOIN LATERAL (
			SELECT array_agg(d.id) AS leased, (array_agg(l.id ORDER BY l.id))[1] AS floor
			FROM webhook_leases l CROSS JOIN LATERAL unnest(l.deliveries) AS d(id)
			WHERE l.organization_id = e.organization_id AND l.endpoint_id = e.id AND l.id >= u.floor
		) AS l ON true`,
		pg.Args{
			"shards":    shards,
			"endpoints": endpoints,
			"floors":    floors,
			"orgs":      orgs,
			"known":     known,
		})
	states = make([]state, len(rows))
	for i, r := range rows {
		states[i] = r.state
		special = r.Special
	}
	return states, special, err
}

// picked is a delivery that may be leased.
type picked struct {
	N        int // of the request, from 1 on
	Delivery id.Delivery
	Due      time.Time
	Student  id.User // whose events' first attempts are made in order; 0 when it is none of these
	Sequence int64   // of the event
	Before   bool    // it is here because it comes before another one of the student
}

// studentOf is the student of a row q of webhook_queue whose first attempt is still to be made, or 0.
const studentOf = `CASE WHEN q.entries = 0 THEN coalesce(q.user_id, 0) ELSE 0 END`

// pickDue reads for each request what is due and not leased, the first due first, and what comes before that: first
// attempts of the same students whose events have lesser sequences. One may be due earlier than all others that are left,
// if its transaction took long, or later, if it was recorded where a clock is ahead.
func pickDue(ctx context.Context, q pg.Querier, now time.Time, want []request) ([]picked, error) {
	return pick(ctx, q, now, want, "", pg.Args{})
}

// pickOthers is pickDue without first attempts of students who have one under way at the URL.
func pickOthers(ctx context.Context, q pg.Querier, now time.Time, want []request, busy []map[id.User]bool) ([]picked, error) {
	var urls []id.Endpoint
	var students []id.User
	for i, r := range want {
		for s := range busy[i] {
			urls, students = append(urls, r.Endpoint), append(students, s)
		}
	}
	return pick(ctx, q, now, want, `
				AND (endpoint_id, `+studentOf+`) NOT IN (SELECT * FROM unnest(@urls::bigint[], @students::bigint[]))`,
		pg.Args{"urls": urls, "students": students})
}

func pick(ctx context.Context, q pg.Querier, now time.Time, want []request, which string, args pg.Args) ([]picked, error) {
	endpoints, most, since := make([]id.Endpoint, len(want)), make([]int32, len(want)), make([]time.Time, len(want))
	leased := make([]id.Delivery, 0, len(want))
	for i, r := range want {
		endpoints[i], most[i], since[i] = r.Endpoint, int32(r.most), r.since
		leased = append(leased, r.Leased...)
	}
	args["endpoints"], args["most"], args["since"], args["now"], args["leased"] = endpoints, most, since, now, leased
	args["chain"] = maxLease
	return pg.List[picked](ctx, q, `
		WITH due AS MATERIALIZED (
			SELECT u.n::int AS n, u.id AS endpoint_id, q.id, q.due_at, q.student, q.sequence
			FROM unnest(@endpoints::bigint[], @most::int[], @since::timestamptz[])
				WITH ORDINALITY AS u(id, most, since, n)
			CROSS JOIN LATERAL (
				SELECT id, due_at, sequence, `+studentOf+` AS student FROM webhook_queue q
				WHERE endpoint_id = u.id AND due_at >= u.since AND due_at <= @now AND NOT in_order AND NOT asked
				  AND id NOT IN (SELECT unnest(@leased::uuid[]))`+which+`
				ORDER BY due_at, id LIMIT u.most
			) AS q
		)
		SELECT n, id AS delivery, due_at AS due, student, sequence, false AS before FROM due
		UNION ALL
		SELECT s.n, q.id, q.due_at, s.student, q.sequence, true
		FROM (
			SELECT n, endpoint_id, student, max(sequence) AS last
			FROM due WHERE student <> 0 GROUP BY n, endpoint_id, student
		) AS s
		CROSS JOIN LATERAL (
			SELECT id, due_at, sequence FROM webhook_queue
			WHERE user_id = s.student AND endpoint_id + 0 = s.endpoint_id AND entries = 0 AND sequence < s.last
			  AND NOT in_order AND NOT asked
			ORDER BY sequence LIMIT @chain
		) AS q
		WHERE q.id NOT IN (SELECT id FROM due)
		ORDER BY n, before, due, delivery`, args)
}

// selectStudents reads whose first attempts are among the leased deliveries. What makes them such is asked outside the
// LIMIT: inside, PostgreSQL would take webhook_queue_firsts, which holds nothing else, and walk along it for each.
func selectStudents(ctx context.Context, q pg.Querier, states []state) ([]underWay, error) {
	var orgs []id.Organization
	var endpoints []id.Endpoint
	var leased []id.Delivery
	for _, s := range states {
		for _, d := range s.Leased {
			orgs, endpoints, leased = append(orgs, s.Organization), append(endpoints, s.Endpoint), append(leased, d)
		}
	}
	return pg.List[underWay](ctx, q, `
		SELECT u.endpoint_id AS endpoint, u.id AS delivery, q.user_id AS student
		FROM unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS u(organization_id, endpoint_id, id)
		CROSS JOIN LATERAL (
			SELECT user_id, entries, asked FROM webhook_queue
			WHERE`+webhook.HasKey("u.organization_id", "u.endpoint_id", "u.id")+`LIMIT 1
		) AS q
		WHERE q.entries = 0 AND q.user_id IS NOT NULL AND NOT q.asked`, orgs, endpoints, leased)
}

// underWay is a first attempt that a sender has in hand.
type underWay struct {
	Endpoint id.Endpoint
	Delivery id.Delivery
	Student  id.User
}

// special is a delivery that does not go by the allowance.
type special struct {
	Endpoint     id.Endpoint
	Organization id.Organization
	Delivery     id.Delivery
	Failures     int // its URL's, in a row
	Runs         int
}

func (s special) state() state {
	return state{Endpoint: s.Endpoint, Organization: s.Organization, Health: webhook.Health{Failures: s.Failures, Runs: s.Runs}}
}

// pickAsked reads what a person asked for.
func pickAsked(ctx context.Context, q pg.Querier, shards []int32, limit int) ([]special, error) {
	return pg.List[special](ctx, q, `
		SELECT
			q.endpoint_id AS endpoint,
			q.organization_id AS organization,
			q.id AS delivery,
			h.consecutive_failures AS failures,
			h.runs
		FROM webhook_queue q JOIN webhook_health h ON h.endpoint_id = q.endpoint_id
		WHERE q.asked AND NOT`+webhook.IsLeased+`AND `+inShards("q.endpoint_id", "$2")+`LIMIT $1`, limit, shards)
}

// pickInOrder reads the oldest deliveries of URLs that have some to be sent in order, unless some
// of these are at a sender already. A probed URL gets one, alone.
func pickInOrder(ctx context.Context, q pg.Querier, shards []int32, now time.Time) ([]special, error) {
	return pg.List[special](ctx, q, `
		WITH urls AS MATERIALIZED (
			SELECT DISTINCT endpoint_id AS id FROM webhook_queue WHERE in_order AND `+inShards("endpoint_id", "$4")+`
		), free AS MATERIALIZED (
			SELECT e.id, e.organization_id, h.consecutive_failures, h.runs, h.consecutive_failures >= $2 AS probed
			FROM urls JOIN webhook_endpoints e ON e.id = urls.id JOIN webhook_health h ON h.endpoint_id = e.id
			WHERE e.switched_on AND (h.next_probe_at IS NULL OR h.next_probe_at <= $1)
			  AND NOT EXISTS (
				SELECT FROM webhook_leases l
				WHERE l.organization_id = e.organization_id AND l.endpoint_id = e.id
				  AND (l.in_order OR h.consecutive_failures >= $2))
			LIMIT 32
		)
		SELECT
			free.id AS endpoint,
			free.organization_id AS organization,
			q.id AS delivery,
			free.consecutive_failures AS failures,
			free.runs
		FROM free CROSS JOIN LATERAL (
			SELECT id FROM webhook_queue WHERE endpoint_id = free.id AND in_order AND NOT asked
			ORDER BY id LIMIT CASE WHEN free.probed THEN 1 ELSE $3::int END
		) AS q
		ORDER BY free.id, q.id`, now, webhook.ProbeAfter, maxLease, shards)
}

// insertLeases stores the leases, unless another process leads one of their shards by now. What
// this one has read until here, it read while it led: nobody else takes over before the
// transaction has ended, and whoever does sees these leases.
func insertLeases(ctx context.Context, db *pg.DB, fences []lead.Lease, until time.Time, leases []Lease) error {
	if len(leases) == 0 {
		return nil
	}
	orgs, endpoints, ids := refs(leases)
	inOrder, deliveries := make([]bool, len(leases)), make([]string, len(leases))
	for i, l := range leases {
		inOrder[i] = l.InOrder
		var list strings.Builder
		for j, d := range l.Deliveries {
			list.WriteByte("{,"[min(j, 1)])
			list.WriteString(uuid.UUID(d).String())
		}
		list.WriteByte('}')
		deliveries[i] = list.String()
	}
	var batch pg.Batch
	lead.Fence(&batch, fences...)
	// Leases vanish with a crash anyway: their commit need not wait for the disk.
	batch.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
	batch.Queue(`
		INSERT INTO webhook_leases (organization_id, endpoint_id, id, until, in_order, deliveries)
		SELECT organization_id, endpoint_id, id, @until, in_order, deliveries::uuid[]
		FROM unnest(@orgs::bigint[], @endpoints::bigint[], @ids::uuid[], @in_order::bool[], @deliveries::text[])
			AS u(organization_id, endpoint_id, id, in_order, deliveries)`,
		pg.Args{
			"until":      until,
			"orgs":       orgs,
			"endpoints":  endpoints,
			"ids":        ids,
			"in_order":   inOrder,
			"deliveries": deliveries,
		})
	return db.InTx(ctx, func(tx *pg.Tx) error { return batch.Commit(ctx, tx) })
}

// refs are the columns of the leases' keys.
func refs(leases []Lease) (orgs []id.Organization, endpoints []id.Endpoint, ids []string) {
	for _, l := range leases {
		orgs, endpoints, ids = append(orgs, l.Organization), append(endpoints, l.Endpoint), append(ids, l.Lease)
	}
	return orgs, endpoints, ids
}

func selectExpired(ctx context.Context, q pg.Querier, shards []int32, since, now time.Time, limit int) (leases []Lease, until time.Time, err error) {
	type row struct {
		Organization id.Organization
		Endpoint     id.Endpoint
		Lease        string
		Until        time.Time
	}
	rows, err := pg.List[row](ctx, q, `
		SELECT organization_id AS organization, endpoint_id AS endpoint, id::text AS lease, until
		FROM webhook_leases WHERE until >= $1 AND until <= $2 AND `+inShards("endpoint_id", "$4")+`
		ORDER BY until LIMIT $3`, since, now, limit, shards)
	for _, r := range rows {
		leases = append(leases, Lease{task.Deliver{Organization: r.Organization, Endpoint: r.Endpoint, Lease: r.Lease}})
		until = r.Until
	}
	return leases, until, err
}

// Release gives up leases, whose deliveries are then due again at once, and counts those that
// were held.
func Release(ctx context.Context, q pg.Querier, leases ...Lease) (int, error) {
	orgs, endpoints, ids := refs(leases)
	held, err := pg.Column[int](ctx, q, `
		DELETE FROM webhook_leases l USING `+webhook.ListedLeases+`
		RETURNING cardinality(l.deliveries)`, orgs, endpoints, ids)
	n := 0
	for _, h := range held {
		n += h
	}
	return n, err
}

// Return ends a lease for the relay, which makes due again what it still holds: the Picker has to learn of it.
func Return(ctx context.Context, q pg.Querier, now time.Time, lease Lease) error {
	orgs, endpoints, ids := refs([]Lease{lease})
	_, err := q.Exec(ctx, `
		UPDATE webhook_leases l SET until = least(l.until, $4) FROM `+webhook.ListedLeases, orgs, endpoints, ids, now)
	return err
}

// Renew extends leases until the given time, and counts those that were held.
func Renew(ctx context.Context, q pg.Querier, until time.Time, leases ...Lease) (int64, error) {
	orgs, endpoints, ids := refs(leases)
	tag, err := q.Exec(ctx, `
		UPDATE webhook_leases l SET until = greatest(l.until, $4) FROM `+webhook.ListedLeases, orgs, endpoints, ids, until)
	return tag.RowsAffected(), err
}

const selectTargets = `
	SELECT
		e.id AS endpoint,
		e.url,
		e.time_zone,
		e.switched_on,
		e.secret_version,
		s.sealed,
		coalesce(p.version, 0) AS previous_version,
		p.sealed AS previous,
		e.previous_until,
		o.id,
		o.slug,
		o.name
	FROM webhook_endpoints e
	JOIN webhook_secrets s ON s.endpoint_id = e.id AND s.version = e.secret_version
	LEFT JOIN webhook_secrets p ON p.endpoint_id = e.id AND p.version = e.previous_version
	JOIN organizations o ON o.id = e.organization_id
	WHERE e.id = ANY ($1)`

type targetRow struct {
	Endpoint        id.Endpoint
	URL             string
	TimeZone        string
	SwitchedOn      bool
	SecretVersion   int
	Sealed          []byte
	PreviousVersion int
	Previous        []byte
	PreviousUntil   *time.Time
	webhook.Sender
}

func collectTargets(rows pgx.Rows, err error) (map[id.Endpoint]Target, error) {
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[targetRow])
	targets := make(map[id.Endpoint]Target, len(found))
	for _, r := range found {
		target := Target{
			URL:        r.URL,
			Zone:       r.TimeZone,
			SwitchedOn: r.SwitchedOn,
			Secrets:    []Secret{{Sealed: r.Sealed, Context: webhook.SecretContext(r.Endpoint, r.SecretVersion)}},
			From:       r.Sender,
		}
		if r.Previous != nil && r.PreviousUntil != nil {
			target.Secrets = append(target.Secrets, Secret{r.Previous, webhook.SecretContext(r.Endpoint, r.PreviousVersion), *r.PreviousUntil})
		}
		targets[r.Endpoint] = target
	}
	return targets, err
}

// ReadTarget reads the target as it is now; the zero Target when the URL was removed.
func ReadTarget(ctx context.Context, q pg.Querier, endpoint id.Endpoint) (Target, error) {
	targets, err := collectTargets(q.Query(ctx, selectTargets, []id.Endpoint{endpoint}))
	return targets[endpoint], err
}

type dueRow struct {
	N        int // of the lease, from 1 on
	Delivery id.Delivery
	Student  id.User
	Number   int
	Tries    int
	Until    time.Time
	webhook.Stored
}

// queueOf are the rows q of the queue that belong to a list of deliveries of one URL. Each is looked up: the
// LIMIT keeps PostgreSQL, whose statistics are often those of an empty queue, from reading all of the URL's.
func queueOf(deliveries, org, endpoint string) string {
	return ` unnest(` + deliveries + `::uuid[]) AS listed(id) CROSS JOIN LATERAL (
			SELECT *, ctid AS at FROM webhook_queue
			WHERE` + webhook.HasKey(org, endpoint, "listed.id") + `LIMIT 1
		) AS q`
}

// eventOf joins the event v of the row q of the queue. An event and its deliveries are recorded
// within moments, which lets PostgreSQL leave out the partitions of other days: @first and @last
// bound what is searched. The OFFSET keeps it from reading everything between these two instead of
// looking up each event.
const eventOf = ` CROSS JOIN LATERAL (
		SELECT * FROM webhook_events WHERE id = q.event_id AND id >= @first AND id <= @last OFFSET 0
	) AS v `

// eventBounds are ids between which the events of the deliveries are.
func eventBounds(deliveries []id.Delivery) (first, last id.Event) {
	const minute = 60_000
	least, greatest := uint64(1<<63), uint64(0)
	for _, d := range deliveries {
		ms := binary.BigEndian.Uint64(d[:8]) >> 16
		least, greatest = min(least, ms), max(greatest, ms)
	}
	binary.BigEndian.PutUint64(first[:], (least-min(least, minute))<<16)
	binary.BigEndian.PutUint64(last[:], (greatest+minute)<<16)
	return first, last
}

// Load reads what leases still hold, in their order and in one round trip. One without deliveries has
// nothing to be attempted: it was lost or settled, or its URL was removed.
func Load(ctx context.Context, q pg.Querier, leases ...task.Deliver) ([]Held, error) {
	held := make([]Held, len(leases))
	var listed []id.Delivery
	orgs, endpoints, ids := make([]id.Organization, len(leases)), make([]id.Endpoint, len(leases)), make([][16]byte, len(leases))
	for i, l := range leases {
		lease, err := uuid.Parse(l.Lease)
		if err != nil {
			return nil, err
		}
		held[i].Lease, listed = l, append(listed, l.Deliveries...)
		orgs[i], endpoints[i], ids[i] = l.Organization, l.Endpoint, lease
	}
	var (
		targets map[id.Endpoint]Target
		batch   pgx.Batch
	)
	batch.Queue(selectTargets, endpoints).Query(func(found pgx.Rows) (err error) {
		targets, err = collectTargets(found, nil)
		return err
	})
	first, last := eventBounds(listed)
	batch.Queue(`
		SELECT
			u.n::int AS n,
			q.id AS delivery,
			`+studentOf+` AS student,
			q.entries + 1 AS number,
			q.tries,
			l.until,
			v.id,
			v.type,
			v.created_at,
			v.data,
			coalesce(v.sequence, 0) AS sequence,
			coalesce(v.traceparent, '') AS traceparent
		FROM unnest(@orgs::bigint[], @endpoints::bigint[], @leases::uuid[])
			WITH ORDINALITY AS u(organization_id, endpoint_id, id, n)
		CROSS JOIN LATERAL (
			SELECT until, deliveries FROM webhook_leases
			WHERE organization_id = u.organization_id AND endpoint_id = u.endpoint_id AND id = u.id
			LIMIT 1
		) AS l
		CROSS JOIN LATERAL`+queueOf("l.deliveries", "u.organization_id", "u.endpoint_id")+eventOf+`
		ORDER BY u.n, q.id`,
		pg.Args{
			"orgs":      orgs,
			"endpoints": endpoints,
			"leases":    ids,
			"first":     first,
			"last":      last,
		}).Query(func(found pgx.Rows) error {
		rows, err := pgx.CollectRows(found, pgx.RowToStructByName[dueRow])
		for _, r := range rows {
			h := &held[r.N-1]
			h.Until = r.Until
			h.Dues = append(h.Dues, Due{Delivery: r.Delivery, Lease: ids[r.N-1], Event: r.Stored, Student: r.Student,
				Number: r.Number, Tries: r.Tries, Run: h.Lease.Run, More: h.Lease.More})
		}
		return err
	})
	err := q.SendBatch(ctx, &batch).Close()
	for i := range held {
		var there bool
		if held[i].Target, there = targets[held[i].Lease.Endpoint]; !there {
			held[i].Dues = nil
		}
	}
	return held, err
}

func endSuperseded(ctx context.Context, q pg.Querier, d task.Deliver, retries []id.Delivery, now time.Time) ([]id.Delivery, error) {
	first, last := eventBounds(retries)
	return pg.Column[id.Delivery](ctx, q, `
		WITH found AS MATERIALIZED (
			SELECT q.at FROM`+queueOf("@retries", "@org", "@endpoint")+eventOf+`
			WHERE NOT q.asked AND EXISTS (`+webhook.Successor("@endpoint")+`)
		), gone AS (
			DELETE FROM webhook_queue q USING found WHERE q.ctid = found.at
			RETURNING q.organization_id, q.endpoint_id, q.id, q.event_id, q.entries
		)
		INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, status, started_at)
		SELECT organization_id, endpoint_id, id, entries + 1, event_id, @status, @now FROM gone
		RETURNING delivery_id`,
		pg.Args{
			"org":      d.Organization,
			"endpoint": d.Endpoint,
			"retries":  retries,
			"first":    first,
			"last":     last,
			"status":   webhook.StatusSuperseded,
			"now":      now,
		})
}

// Traces reads the traceparents of the leases' events, without events that were not traced.
func Traces(ctx context.Context, q pg.Querier, leases []Lease) ([]string, error) {
	var found []string
	for _, l := range leases {
		first, last := eventBounds(l.Deliveries)
		some, err := pg.Column[string](ctx, q, `
			SELECT v.traceparent FROM`+queueOf("@deliveries", "@org", "@endpoint")+eventOf+`
			WHERE v.traceparent IS NOT NULL`,
			pg.Args{
				"deliveries": l.Deliveries,
				"first":      first,
				"last":       last,
				"org":        l.Organization,
				"endpoint":   l.Endpoint,
			})
		if err != nil {
			return found, err
		}
		found = append(found, some...)
	}
	return found, nil
}
