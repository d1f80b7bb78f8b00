package webhook

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// insertEvents writes events and their deliveries in one statement and counts the
// deliveries. A URL that is off gets its row as skipped, so that it can be recovered.
func insertEvents(ctx context.Context, q pg.Querier, org id.Organization, now time.Time, events []eventRow) (int64, error) {
	ids := make([][16]byte, len(events))
	kinds := make([]string, len(events))
	users := make([]int64, len(events))
	data := make([]string, len(events))
	for i, e := range events {
		ids[i], kinds[i], users[i], data[i] = e.id, string(e.kind), int64(e.user), string(e.data)
	}
	tag, err := q.Exec(ctx, `
		WITH urls AS MATERIALIZED (
			SELECT id, events, switched_on FROM webhook_endpoints WHERE organization_id = $1
		), fresh AS (
			SELECT n, id, kind, nullif(user_id, 0) AS user_id, data
			FROM unnest($3::uuid[], $4::text[], $5::bigint[], $6::text[]) WITH ORDINALITY AS u(id, kind, user_id, data, n)
			WHERE EXISTS (SELECT FROM urls)
		), stored AS (
			INSERT INTO webhook_events (id, organization_id, user_id, type, created_at, data)
			SELECT id, $1, user_id, kind, $2, data::json FROM fresh
		)
		INSERT INTO webhook_deliveries (event_id, organization_id, endpoint_id, status, due_at)
		SELECT fresh.id, $1, urls.id, CASE WHEN urls.switched_on THEN 'waiting' ELSE 'skipped' END, $2
		FROM fresh, urls
		WHERE urls.events = '{}' OR fresh.kind = ANY (urls.events)
		ORDER BY fresh.n, urls.id`, org, now, ids, kinds, users, data)
	return tag.RowsAffected(), err
}
