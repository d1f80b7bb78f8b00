// Package outbox is the list of work that committed transactions owe.
//
// Add writes a row in the caller's transaction. The relay claims due rows and puts a
// task on the run queue; the worker that ran it calls Done or Later. A claim is a lease:
// when neither came before it ran out (a process died, Redis was emptied), the row is
// simply due again. A claim's number fences: who lost the lease cannot finish the task.
package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Channel is notified with a kind when rows of that kind were committed.
const Channel = "registrar_outbox"

// Task is a claimed row.
type Task struct {
	ID           id.Task
	Subject      int64 // the row it is about; see task.Kind
	Organization id.Organization
	Claim        int // 1 for the first claim
}

// Add owes one task, to be run from runAt on.
func Add(ctx context.Context, tx *pg.Tx, kind task.Kind, subject int64, org id.Organization, runAt time.Time) error {
	if err := insert(ctx, tx, kind, subject, org, runAt); err != nil {
		return err
	}
	tx.Wake(Channel, string(kind))
	return nil
}

// AddLast queues what Add does, for the subject whose id a statement of the same batch has
// drawn last from the identity column (table, column).
func AddLast(b *pg.Batch, kind task.Kind, table, column string, org id.Organization, runAt time.Time) {
	queueInsertLast(b, kind, table+"_"+column+"_seq", org, runAt)
	b.Wake(Channel, string(kind))
}

// Claim hands out up to limit due tasks of a kind for the length of lease; no two callers
// get the same one.
func Claim(ctx context.Context, q pg.Querier, kind task.Kind, now time.Time, lease time.Duration, limit int) ([]Task, error) {
	return claim(ctx, q, kind, now, now.Add(lease), limit)
}

// Release undoes a Claim, whose now and lease it is given, when the tasks could not be put
// on the run queue: they are due again at once. A task that a worker holds by now, or that
// was claimed anew, stays as it is.
func Release(ctx context.Context, q pg.Querier, now time.Time, lease time.Duration, refs []task.Outbox) error {
	return release(ctx, q, now, now.Add(lease), refs)
}

// Lapsed lists up to limit tasks of a kind that were claimed and are due again, the oldest
// first: their claims have run out, or their worker gave them back.
func Lapsed(ctx context.Context, q pg.Querier, kind task.Kind, now time.Time, limit int) ([]task.Outbox, error) {
	return lapsed(ctx, q, kind, now, limit)
}

// Keep prolongs claims that have run out by now. One that a worker holds, or that is not
// current any more, stays as it is.
func Keep(ctx context.Context, q pg.Querier, now, until time.Time, refs []task.Outbox) error {
	return keep(ctx, q, now, until, refs)
}

// Hold is what a worker begins with: it reads the claimed task and keeps the claim until
// the given time, however long the task has waited on the run queue. ErrLost when the
// claim is not current any more.
func Hold(ctx context.Context, q pg.Querier, ref task.Outbox, until time.Time) (Task, error) {
	return hold(ctx, q, ref, until)
}

// ErrLost means that the claim is no longer the task's current one: somebody else has
// it, or it is done. Whatever was computed under it must not be saved.
var ErrLost = errors.New("the task was handed to another worker")

// Load reads the claimed task; ErrLost when the claim is not current any more.
func Load(ctx context.Context, q pg.Querier, ref task.Outbox) (Task, error) {
	return load(ctx, q, ref)
}

// Extend keeps the claim until the given time; work that is longer than a lease calls it
// now and then.
func Extend(ctx context.Context, q pg.Querier, ref task.Outbox, until time.Time) error {
	return move(ctx, q, ref, until)
}

// Later gives the task back, to be run again from runAt on.
func Later(ctx context.Context, q pg.Querier, ref task.Outbox, runAt time.Time) error {
	return move(ctx, q, ref, runAt)
}

// Done removes the task, in the transaction that holds its effect wherever there is one.
func Done(ctx context.Context, q pg.Querier, ref task.Outbox) error { return remove(ctx, q, ref) }

// Lag is how much is owed.
type Lag struct {
	Due    int64         // rows whose time has come
	Oldest time.Duration // how long the oldest of them has been due
}

// Measure reads the lag of every kind that has due rows.
func Measure(ctx context.Context, q pg.Querier, now time.Time) (map[task.Kind]Lag, error) {
	return measure(ctx, q, now)
}
