package catalog

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const itemColumns = `
	i.id,
	coalesce(i.organization_id, 0) AS organization,
	i.kind,
	i.code,
	i.title,
	i.type,
	i.scope,
	i.max_score_e4 AS max_score,
	i.difficulty_e4 AS difficulty,
	i.starter,
	i.retake,
	i.active,
	i.launch_url`

// visible is the condition on i (catalog_items) for what organization $1 can see.
const visible = `(i.organization_id = $1 OR i.organization_id IS NULL)`

// lockByKey also blocks other transactions that create the same item.
func lockByKey(ctx context.Context, tx *pg.Tx, org id.Organization, key Key) (Item, error) {
	if err := pg.Lock(ctx, tx, pg.LockCatalog, string(key.Kind)+"/"+key.Code); err != nil {
		return Item{}, err
	}
	return pg.One[Item](ctx, tx, `
		SELECT `+itemColumns+` FROM catalog_items i
		WHERE i.organization_id IS NOT DISTINCT FROM nullif($1::bigint, 0) AND i.kind = $2 AND i.code = $3`, org, key.Kind, key.Code)
}

func upsert(ctx context.Context, q pg.Querier, i Item, now time.Time) (item id.Item, err error) {
	err = q.QueryRow(ctx, `
		INSERT INTO catalog_items (
			organization_id,
			kind,
			code,
			title,
			type,
			scope,
			max_score_e4,
			difficulty_e4,
			starter,
			retake,
			active,
			launch_url,
			created_at,
			updated_at
		) VALUES (
			nullif(@org::bigint, 0),
			@kind,
			@code,
			@title,
			@type,
			@scope,
			@max_score,
			@difficulty,
			@starter,
			@retake,
			@active,
			@launch_url,
			@now,
			@now
		)
		ON CONFLICT (organization_id, kind, code) DO UPDATE SET
			title = excluded.title,
			type = excluded.type,
			scope = excluded.scope,
			max_score_e4 = excluded.max_score_e4,
			difficulty_e4 = excluded.difficulty_e4,
			starter = excluded.starter,
			retake = excluded.retake,
			active = excluded.active,
			launch_url = excluded.launch_url,
			updated_at = excluded.updated_at
		RETURNING id`,
		pg.Args{
			"org":        i.Organization,
			"kind":       i.Kind,
			"code":       i.Code,
			"title":      i.Title,
			"type":       i.Type,
			"scope":      i.Scope,
			"max_score":  i.MaxScore,
			"difficulty": i.Difficulty,
			"starter":    i.Starter,
			"retake":     i.Retake,
			"active":     i.Active,
			"launch_url": i.LaunchURL,
			"now":        now,
		}).Scan(&item)
	return item, err
}

func selectVisible(ctx context.Context, q pg.Querier, org id.Organization, kinds []Kind) ([]Item, error) {
	return pg.List[Item](ctx, q, `
		SELECT `+itemColumns+` FROM catalog_items i
		WHERE `+visible+` AND i.active AND i.kind = ANY ($2) ORDER BY i.id`, org, kinds)
}

// selectFound has one more than limit where there are more.
func selectFound(
	ctx context.Context, q pg.Querier, org id.Organization, words []string, limit, skip int,
) ([]Item, error) {
	return pg.List[Item](ctx, q, `
		SELECT `+itemColumns+` FROM catalog_items i
		WHERE `+visible+` AND i.active AND NOT EXISTS (
			SELECT FROM unnest($2::text[]) AS word
			WHERE strpos(lower(concat_ws(' ', i.title, i.code, i.kind, i.type)), lower(word)) = 0)
		ORDER BY lower(i.title), i.id LIMIT $3 OFFSET $4`, org, words, limit+1, skip)
}

func selectItem(ctx context.Context, q pg.Querier, org id.Organization, kind Kind, item id.Item) (Item, error) {
	return pg.One[Item](ctx, q, `
		SELECT `+itemColumns+` FROM catalog_items i
		WHERE `+visible+` AND i.active AND i.kind = $2 AND i.id = $3`, org, kind, item)
}

// QueueLoad queues what LoadMany does, into found.
func QueueLoad(b *pg.Batch, orgs []id.Organization, items []id.Item, found map[id.Item]Item) {
	if len(items) == 0 {
		return
	}
	pg.Structs(b, func(i Item) { found[i.ID] = i }, `
		SELECT `+itemColumns+` FROM catalog_items i
		WHERE (i.organization_id = ANY ($1) OR i.organization_id IS NULL) AND i.id = ANY ($2)`, orgs, items)
}

// queuePlaceStarters leaves out tests that were placed before or have a result of the student.
func queuePlaceStarters(b *pg.Batch, p Placement, now time.Time, placed *int) {
	b.Queue(`
		WITH room AS (
			SELECT greatest(0, least($5::integer, $6::integer - count(*))) AS tests
			FROM starter_tests WHERE organization_id = $1 AND user_id = $2),
		put AS (
			INSERT INTO starter_tests (organization_id, user_id, item_id, course_id, placed_at)
			SELECT $1, $2, i.id, $3, $7 FROM catalog_items i
			WHERE i.kind = 'test' AND i.starter AND i.active AND i.type = $4
				AND (i.organization_id = $1 OR i.organization_id IS NULL)
				AND NOT EXISTS (
					SELECT FROM starter_tests s
					WHERE s.organization_id = $1 AND s.user_id = $2 AND s.item_id = i.id)
				AND NOT EXISTS (
					SELECT FROM results r
					WHERE r.organization_id = $1 AND r.user_id = $2 AND r.item_id = i.id)
			ORDER BY i.id LIMIT (SELECT tests FROM room)
			RETURNING 1)
		SELECT count(*) FROM put`,
		p.Organization, p.User, p.Course, p.Type, p.PerCourse, p.Limit, now).
		QueryRow(func(row pgx.Row) error { return row.Scan(placed) })
}

// StartersAvailable counts the active starter tests that the organization can place, by type.
func StartersAvailable(ctx context.Context, q pg.Querier, org id.Organization) (map[string]int, error) {
	rows, err := q.Query(ctx, `
		SELECT i.type, count(*) FROM catalog_items i
		WHERE i.kind = 'test' AND i.starter AND i.active
			AND (i.organization_id = $1 OR i.organization_id IS NULL)
		GROUP BY i.type`, org)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	var typ string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&typ, &n}, func() error {
		counts[typ] = n
		return nil
	})
	return counts, err
}
