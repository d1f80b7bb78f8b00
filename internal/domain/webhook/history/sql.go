package history

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const selectEvents = `
	SELECT
		id,
		type,
		coalesce(user_id, 0) AS "user",
		created_at,
		data,
		coalesce(sequence, 0) AS sequence
	FROM webhook_events `

// Events lists up to limit events of the organization about the person until that time, the last one first. Those
// of one moment are in the order of their sequence.
func Events(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]Event, error) {
	return pg.List[Event](ctx, q, selectEvents+`
		WHERE user_id = $2 AND organization_id = $1 AND created_at <= $3
		ORDER BY created_at DESC, sequence DESC NULLS LAST, id DESC LIMIT $4`, org, user, until, limit)
}

func selectEvent(ctx context.Context, q pg.Querier, org id.Organization, event id.Event) (Event, error) {
	return pg.One[Event](ctx, q, selectEvents+`WHERE id = $2 AND organization_id = $1`, org, event)
}

// The key of the queue and of the journal begins with organization and endpoint, of which there are few.
func selectEventOf(ctx context.Context, q pg.Querier, org id.Organization, delivery id.Delivery) (event id.Event, err error) {
	err = q.QueryRow(ctx, `
		SELECT d.event_id
		FROM webhook_endpoints e
		CROSS JOIN LATERAL (
			SELECT q.event_id FROM webhook_queue q
			WHERE q.organization_id = $1 AND q.endpoint_id = e.id AND q.id = $2
			UNION ALL
			SELECT j.event_id FROM webhook_journal j
			WHERE j.organization_id = $1 AND j.endpoint_id = e.id AND j.delivery_id = $2
			LIMIT 1
		) AS d
		WHERE e.organization_id = $1
		LIMIT 1`, org, delivery).Scan(&event)
	return event, err
}

// bounds are ids before and behind those of the deliveries of the events, which are drawn within moments. They let
// PostgreSQL leave out the partitions of other days.
func bounds(events []id.Event) (first, last id.Delivery) {
	least, greatest := uint64(1<<48-1), uint64(0)
	for _, e := range events {
		ms := binary.BigEndian.Uint64(e[:8]) >> 16
		least, greatest = min(least, ms), max(greatest, ms)
	}
	const around = 10_000 // milliseconds
	binary.BigEndian.PutUint64(first[:], (max(least, around)-around)<<16)
	binary.BigEndian.PutUint64(last[:], (greatest+around)<<16)
	return first, last
}

// selectDeliveries reads a row for each event and each URL that selected it. The ids of an event and of its
// deliveries are drawn at one moment, which bounds the search.
func selectDeliveries(ctx context.Context, q pg.Querier, org id.Organization, events []id.Event) ([]Delivery, error) {
	first, last := bounds(events)
	return pg.List[Delivery](ctx, q, `
		SELECT
			d.id,
			k.event,
			e.id AS endpoint,
			e.url,
			e.switched_on,
			CASE WHEN e.switched_on THEN '' ELSE e.switched_off_reason END AS off_reason,
			d.status,
			CASE WHEN d.status = 'waiting' THEN d.due_at END AS due_at
		FROM unnest(@events::uuid[]) WITH ORDINALITY AS k(event, n)
		CROSS JOIN (SELECT * FROM webhook_endpoints WHERE organization_id = @org OFFSET 0) AS e
		CROSS JOIN LATERAL (
			SELECT q.id, CASE WHEN`+webhook.IsLeased+`THEN 'in_flight' ELSE 'waiting' END AS status, q.due_at
			FROM webhook_queue q
			WHERE q.organization_id = @org AND q.endpoint_id = e.id AND q.event_id = k.event
			  AND q.id >= uuid7_floor(uuid7_time(k.event) - interval '100 milliseconds')
			  AND q.id < uuid7_floor(uuid7_time(k.event) + interval '1 second')
			UNION ALL
			SELECT j.delivery_id, j.status, NULL
			FROM webhook_journal j
			WHERE j.organization_id = @org AND j.endpoint_id = e.id AND j.event_id = k.event AND j.status IS NOT NULL
			  AND j.delivery_id >= uuid7_floor(uuid7_time(k.event) - interval '100 milliseconds')
			  AND j.delivery_id < uuid7_floor(uuid7_time(k.event) + interval '1 second')
			  AND j.delivery_id >= @first AND j.delivery_id < @last
			LIMIT 1
		) AS d
		ORDER BY k.n, e.id`, pg.Args{"org": org, "events": events, "first": first, "last": last})
}

// selectSuccessors reads which deliveries superseded those of the events to the endpoints.
func selectSuccessors(ctx context.Context, q pg.Querier, org id.Organization, of []Delivery) (map[id.Delivery]id.Delivery, error) {
	deliveries, events, endpoints := make([]id.Delivery, len(of)), make([]id.Event, len(of)), make([]id.Endpoint, len(of))
	for i, d := range of {
		deliveries[i], events[i], endpoints[i] = d.ID, d.Event, d.Endpoint
	}
	rows, err := q.Query(ctx, `
		SELECT k.delivery, newer.delivery_id
		FROM unnest(@deliveries::uuid[], @events::uuid[], @endpoints::bigint[]) AS k(delivery, event, endpoint)
		CROSS JOIN LATERAL (
			SELECT * FROM webhook_events WHERE id = k.event AND organization_id = @org OFFSET 0
		) AS v
		CROSS JOIN LATERAL (`+webhook.Successor("k.endpoint")+`) AS newer`,
		pg.Args{"org": org, "deliveries": deliveries, "events": events, "endpoints": endpoints})
	if err != nil {
		return nil, err
	}
	successors := map[id.Delivery]id.Delivery{}
	var delivery, newer id.Delivery
	_, err = pgx.ForEachRow(rows, []any{&delivery, &newer}, func() error { successors[delivery] = newer; return nil })
	return successors, err
}

// selectAnswers reads the last attempts of the deliveries, numbered as the log of attempts numbers them.
func selectAnswers(ctx context.Context, q pg.Querier, org id.Organization, events []id.Event, of []Delivery) (map[id.Delivery][]Answer, error) {
	first, last := bounds(events)
	endpoints, deliveries := make([]id.Endpoint, len(of)), make([]id.Delivery, len(of))
	for i, d := range of {
		endpoints[i], deliveries[i] = d.Endpoint, d.ID
	}
	rows, err := pg.List[Answer](ctx, q, `
		SELECT
			k.delivery,
			a.number,
			a.started_at,
			a.duration_us * interval '1 microsecond' AS duration,
			a.outcome AS verdict,
			a.cause,
			a.response_status AS status
		FROM unnest(@endpoints::bigint[], @deliveries::uuid[]) WITH ORDINALITY AS k(endpoint, delivery, n)
		CROSS JOIN LATERAL (
			SELECT
				row_number() OVER (ORDER BY j.number)::integer AS number,
				j.started_at,
				j.duration_us,
				j.outcome,
				j.cause,
				j.response_status
			FROM webhook_journal j
			WHERE j.organization_id = @org AND j.endpoint_id = k.endpoint AND j.delivery_id = k.delivery
			  AND j.outcome IS NOT NULL AND j.delivery_id >= @first AND j.delivery_id < @last
			ORDER BY j.number DESC LIMIT @most
		) AS a
		ORDER BY k.n, a.number`, pg.Args{
		"org":        org,
		"endpoints":  endpoints,
		"deliveries": deliveries,
		"first":      first,
		"last":       last,
		"most":       answersShown,
	})
	answers := make(map[id.Delivery][]Answer, len(of))
	for _, a := range rows {
		answers[a.Delivery] = append(answers[a.Delivery], a)
	}
	return answers, err
}
