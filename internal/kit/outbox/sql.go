package outbox

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Add adds a task that is due at runAt.
func Add(ctx context.Context, tx *pg.Tx, kind task.Kind, subject int64, org id.Organization, runAt time.Time) error {
	tx.Wake(Channel, string(kind))
	_, err := tx.Exec(ctx, `
		INSERT INTO outbox_tasks (kind, subject, organization_id, run_at)
		VALUES ($1, $2, nullif($3::bigint, 0), $4)`, kind, subject, org, runAt)
	return err
}

// AddLast queues what Add does. The subject is the id that a statement of the same batch has
// drawn last from the identity column (table, column).
func AddLast(b *pg.Batch, kind task.Kind, table, column string, org id.Organization, runAt time.Time) {
	b.Wake(Channel, string(kind))
	b.Queue(`
		INSERT INTO outbox_tasks (kind, subject, organization_id, run_at)
		VALUES ($1, currval($2), nullif($3::bigint, 0), $4)`, kind, table+"_"+column+"_seq", org, runAt)
}

// Claim claims up to limit due tasks of a kind for the length of lease. No two callers get
// the same task.
func Claim(ctx context.Context, q pg.Querier, kind task.Kind, now time.Time, lease time.Duration, limit int) ([]Task, error) {
	return pg.List[Task](ctx, q, `
		UPDATE outbox_tasks SET run_at = $3, claims = claims + 1
		WHERE id IN (
			SELECT id FROM outbox_tasks WHERE kind = $1 AND run_at <= $2
			ORDER BY run_at, id LIMIT $4 FOR UPDATE SKIP LOCKED)
		RETURNING `+taskColumns, kind, now, now.Add(lease), limit)
}

const taskColumns = `id, subject, coalesce(organization_id, 0) AS organization, claims AS claim`

// Release undoes a Claim with the same now and lease, for tasks that could not be put on the
// run queue: they are due again at once. A task that a worker holds already, or that was
// claimed again, does not change.
func Release(ctx context.Context, q pg.Querier, now time.Time, lease time.Duration, refs []task.Outbox) error {
	ids, claims := arrays(refs)
	_, err := q.Exec(ctx, `
		UPDATE outbox_tasks t SET run_at = $1
		FROM unnest($3::bigint[], $4::integer[]) AS r(id, claims)
		WHERE t.id = r.id AND t.claims = r.claims AND t.run_at = $2`, now, now.Add(lease), ids, claims)
	return err
}

// Lapsed lists up to limit claims of a kind whose tasks are due again, oldest first: the
// claim has run out, or the worker has postponed the task.
func Lapsed(ctx context.Context, q pg.Querier, kind task.Kind, now time.Time, limit int) ([]task.Outbox, error) {
	return pg.List[task.Outbox](ctx, q, `
		SELECT id AS task, claims AS claim FROM outbox_tasks WHERE kind = $1 AND run_at <= $2 AND claims > 0
		ORDER BY run_at, id LIMIT $3`, kind, now, limit)
}

// Keep extends claims that have run out. A claim that a worker holds, or that is no longer
// the current one, does not change.
func Keep(ctx context.Context, q pg.Querier, now, until time.Time, refs []task.Outbox) error {
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

// Hold reads a claimed task and extends the claim until the given time, however long the
// task has waited on the run queue. A worker begins with it. ErrLost when the claim is no
// longer the current one.
func Hold(ctx context.Context, q pg.Querier, ref task.Outbox, until time.Time) (Task, error) {
	return current(pg.One[Task](ctx, q, `
		UPDATE outbox_tasks SET run_at = $3 WHERE id = $1 AND claims = $2
		RETURNING `+taskColumns, ref.Task, ref.Claim, until))
}

// Load reads a claimed task. ErrLost when the claim is no longer the current one.
func Load(ctx context.Context, q pg.Querier, ref task.Outbox) (Task, error) {
	return current(pg.One[Task](ctx, q, `
		SELECT `+taskColumns+` FROM outbox_tasks WHERE id = $1 AND claims = $2`, ref.Task, ref.Claim))
}

func current(t Task, err error) (Task, error) {
	if pg.None(err) {
		return Task{}, ErrLost
	}
	return t, err
}

// Postpone makes the task due at runAt. Work that takes longer than a lease calls it now and
// then to keep its claim; work that is to run again calls it instead of Done. ErrLost when
// the claim is no longer the current one.
func Postpone(ctx context.Context, q pg.Querier, ref task.Outbox, runAt time.Time) error {
	return change(ctx, q, `
		UPDATE outbox_tasks
		SET run_at = $3
		WHERE id = $1 AND claims = $2`, ref.Task, ref.Claim, runAt)
}

// Done removes the task. Call it in the transaction that saves the task's effect, if there
// is one. ErrLost when the claim is no longer the current one.
func Done(ctx context.Context, q pg.Querier, ref task.Outbox) error {
	return change(ctx, q, `DELETE FROM outbox_tasks WHERE id = $1 AND claims = $2`, ref.Task, ref.Claim)
}

func change(ctx context.Context, q pg.Querier, sql string, args ...any) error {
	tag, err := q.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrLost
	}
	return err
}

// Measure reads the lag of every kind that has due tasks.
func Measure(ctx context.Context, q pg.Querier, now time.Time) (map[task.Kind]Lag, error) {
	type row struct {
		Kind    task.Kind
		Due     int64
		Seconds float64
	}
	rows, err := pg.List[row](ctx, q, `
		SELECT kind, count(*) AS due, extract(epoch FROM $1 - min(run_at))::float8 AS seconds
		FROM outbox_tasks WHERE run_at <= $1 GROUP BY kind`, now)
	lags := make(map[task.Kind]Lag, len(rows))
	for _, r := range rows {
		lags[r.Kind] = Lag{Due: r.Due, Oldest: time.Duration(r.Seconds * float64(time.Second))}
	}
	return lags, err
}
