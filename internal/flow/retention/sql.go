package retention

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func dropMails(ctx context.Context, q pg.Querier, before time.Time, most int) (int64, error) {
	tag, err := q.Exec(ctx, `
		WITH oldest AS (SELECT id, created_at, status FROM emails ORDER BY id LIMIT $2)
		DELETE FROM emails m USING oldest o
		WHERE m.id = o.id AND o.created_at < $1 AND o.status <> 'queued'`, before, most)
	return tag.RowsAffected(), err
}

// dropHistories drops whole histories, of up to a twentieth of most plans: one has some dozens of lines. It
// returns how many plans that were.
func dropHistories(ctx context.Context, q pg.Querier, before time.Time, most int) (int64, error) {
	tag, err := q.Exec(ctx, `
		WITH
			oldest AS (
				SELECT id FROM plans
				WHERE status = 'closed' AND NOT history_dropped AND closed_at < $1
				ORDER BY closed_at, id LIMIT $2::integer / 20 FOR NO KEY UPDATE SKIP LOCKED),
			dropped AS (DELETE FROM plan_history h USING oldest o WHERE h.plan_id = o.id)
		UPDATE plans p SET history_dropped = true FROM oldest o WHERE p.id = o.id`, before, most)
	return tag.RowsAffected(), err
}

// dropRuns keeps a run that a younger one took back. What they did in detail is gone long before (roster.Clear).
func dropRuns(ctx context.Context, q pg.Querier, before time.Time, most int) (int64, error) {
	tag, err := q.Exec(ctx, `
		WITH oldest AS (
			SELECT id, created_at FROM roster_runs
			WHERE state IN ('applied', 'previewed', 'discarded', 'refused', 'undone') ORDER BY id LIMIT $2)
		DELETE FROM roster_runs r USING oldest o
		WHERE r.id = o.id AND o.created_at < $1
			AND NOT EXISTS (SELECT FROM roster_runs u WHERE u.undoes = r.id AND u.created_at >= $1)`, before, most)
	return tag.RowsAffected(), err
}

func dropAudit(ctx context.Context, q pg.Querier, before time.Time, most int) (dropped int64, err error) {
	err = q.QueryRow(ctx, `SELECT drop_from_audit($1, $2::integer)`, before, most).Scan(&dropped)
	return dropped, err
}
