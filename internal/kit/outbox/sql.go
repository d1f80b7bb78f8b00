package outbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

func insert(ctx context.Context, q pg.Querier, kind task.Kind, subject int64, org id.Organization, runAt time.Time) error {
	_, err := q.Exec(ctx, `
		INSERT INTO outbox_tasks (kind, subject, organization_id, run_at)
		VALUES ($1, $2, nullif($3::bigint, 0), $4)`, kind, subject, org, runAt)
	return err
}

func queueInsertLast(b *pg.Batch, kind task.Kind, sequence string, org id.Organization, runAt time.Time) {
	b.Queue(`
		INSERT INTO outbox_tasks (kind, subject, organization_id, run_at)
		VALUES ($1, currval($2), nullif($3::bigint, 0), $4)`, kind, sequence, org, runAt)
}

func claim(ctx context.Context, q pg.Querier, kind task.Kind, now, until time.Time, limit int) ([]Task, error) {
	rows, err := q.Query(ctx, `
		UPDATE outbox_tasks SET run_at = $3, claims = claims + 1
		WHERE id IN (
			SELECT id FROM outbox_tasks WHERE kind = $1 AND run_at <= $2
			ORDER BY run_at, id LIMIT $4 FOR UPDATE SKIP LOCKED)
		RETURNING id, subject, coalesce(organization_id, 0), claims`, kind, now, until, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Task])
}

func lapsed(ctx context.Context, q pg.Querier, kind task.Kind, now time.Time, limit int) ([]task.Outbox, error) {
	rows, err := q.Query(ctx, `
		SELECT id, claims FROM outbox_tasks WHERE kind = $1 AND run_at <= $2 AND claims > 0
		ORDER BY run_at, id LIMIT $3`, kind, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[task.Outbox])
}

func keep(ctx context.Context, q pg.Querier, now, until time.Time, refs []task.Outbox) error {
	ids, claims := arrays(refs)
	_, err := q.Exec(ctx, `
		UPDATE outbox_tasks t SET run_at = $2
		FROM unnest($3::bigint[], $4::integer[]) AS r(id, claims)
		WHERE t.id = r.id AND t.claims = r.claims AND t.run_at <= $1`, now, until, ids, claims)
	return err
}

func arrays(refs []task.Outbox) (ids []int64, claims []int32) {
	ids, claims = make([]int64, len(refs)), make([]int32, len(refs))
	for i, r := range refs {
		ids[i], claims[i] = int64(r.Task), int32(r.Claim)
	}
	return ids, claims
}

func release(ctx context.Context, q pg.Querier, now, until time.Time, refs []task.Outbox) error {
	ids, claims := arrays(refs)
	_, err := q.Exec(ctx, `
		UPDATE outbox_tasks t SET run_at = $1
		FROM unnest($3::bigint[], $4::integer[]) AS r(id, claims)
		WHERE t.id = r.id AND t.claims = r.claims AND t.run_at = $2`, now, until, ids, claims)
	return err
}

func hold(ctx context.Context, q pg.Querier, ref task.Outbox, until time.Time) (Task, error) {
	return one(q.Query(ctx, `
		UPDATE outbox_tasks SET run_at = $3 WHERE id = $1 AND claims = $2
		RETURNING id, subject, coalesce(organization_id, 0), claims`, ref.Task, ref.Claim, until))
}

func load(ctx context.Context, q pg.Querier, ref task.Outbox) (Task, error) {
	return one(q.Query(ctx, `
		SELECT id, subject, coalesce(organization_id, 0), claims
		FROM outbox_tasks WHERE id = $1 AND claims = $2`, ref.Task, ref.Claim))
}

func one(rows pgx.Rows, err error) (Task, error) {
	if err != nil {
		return Task{}, err
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Task])
	if pg.None(err) {
		return Task{}, ErrLost
	}
	return t, err
}

func move(ctx context.Context, q pg.Querier, ref task.Outbox, runAt time.Time) error {
	tag, err := q.Exec(ctx, `UPDATE outbox_tasks SET run_at = $3 WHERE id = $1 AND claims = $2`, ref.Task, ref.Claim, runAt)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrLost
	}
	return err
}

func remove(ctx context.Context, q pg.Querier, ref task.Outbox) error {
	tag, err := q.Exec(ctx, `DELETE FROM outbox_tasks WHERE id = $1 AND claims = $2`, ref.Task, ref.Claim)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrLost
	}
	return err
}

func measure(ctx context.Context, q pg.Querier, now time.Time) (map[task.Kind]Lag, error) {
	rows, err := q.Query(ctx, `
		SELECT kind, count(*), extract(epoch FROM $1 - min(run_at))::float8
		FROM outbox_tasks WHERE run_at <= $1 GROUP BY kind`, now)
	if err != nil {
		return nil, err
	}
	lags := map[task.Kind]Lag{}
	var (
		kind task.Kind
		due  int64
		age  float64
	)
	_, err = pgx.ForEachRow(rows, []any{&kind, &due, &age}, func() error {
		lags[kind] = Lag{Due: due, Oldest: time.Duration(age * float64(time.Second))}
		return nil
	})
	return lags, err
}
