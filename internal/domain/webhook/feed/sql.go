package feed

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// selectStretch reads the last event of a stretch, with its id and sequence. There is none where the
// rest is shorter, and where the filter has an index of its own or passes over nothing.
func selectStretch(ctx context.Context, q pg.Querier, org id.Organization, f Filter, s search) (webhook.Stored, error) {
	var last webhook.Stored
	if len(f.Types) == 0 || f.User != 0 {
		return last, pgx.ErrNoRows
	}
	err := q.QueryRow(ctx, `
		SELECT id, sequence FROM webhook_events
		WHERE organization_id = $1 AND sequence > $2 AND sequence <= $3 AND id >= $4
		ORDER BY sequence OFFSET $5 LIMIT 1`, org, s.after, s.until, s.from, stretch-1).Scan(&last.ID, &last.Sequence)
	return last, err
}

// selectEvents reads the events in their order. A person's are few and have an index: OFFSET keeps the
// LIMIT from speaking for the other one.
func selectEvents(ctx context.Context, q pg.Querier, org id.Organization, f Filter, s search, limit int) ([]webhook.Stored, error) {
	types := make([]string, len(f.Types))
	for i, t := range f.Types {
		types[i] = string(t)
	}
	args := pg.Args{
		"org":   org,
		"after": s.after,
		"until": s.until,
		"from":  s.from,
		"types": types,
		"since": f.Since,
		"limit": limit,
	}
	person := ""
	if f.User != 0 {
		args["user"], person = f.User, " AND user_id = @user OFFSET 0"
	}
	return pg.List[webhook.Stored](ctx, q, `
		SELECT
			id,
			type,
			created_at,
			data,
			sequence,
			'' AS traceparent
		FROM (
			SELECT * FROM webhook_events
			WHERE organization_id = @org AND sequence > @after AND sequence <= @until AND id >= @from
			  AND type <> 'ping' AND NOT erased AND created_at >= @since
			  AND (cardinality(@types::text[]) = 0 OR type = ANY (@types))`+person+`
		) AS v
		ORDER BY sequence LIMIT @limit`, args)
}
