package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Batch gathers statements that leave in one round trip and run in order. Functions that
// take one queue their statements, and fill what they promise when it is sent. The zero
// value is ready; it is sent once.
type Batch struct {
	pgx.Batch
	wakes []wake
}

// Send runs what was queued and stops at the first fault. An empty batch costs nothing.
func (b *Batch) Send(ctx context.Context, q Querier) error {
	if b.Len() == 0 {
		return nil
	}
	err := q.SendBatch(ctx, &b.Batch).Close()
	if tx, ok := q.(*Tx); ok && err == nil {
		tx.wakes = append(tx.wakes, b.wakes...)
	}
	return err
}

// Wake is Tx.Wake for the transaction that the batch is sent in. Functions that take what
// a queued statement found may call it.
func (b *Batch) Wake(channel, payload string) { b.wakes = append(b.wakes, wake{channel, payload}) }

// Commit is Send for the last batch of a transaction: the COMMIT leaves with it, in one
// round trip. After it the transaction takes nothing more.
func (b *Batch) Commit(ctx context.Context, tx *Tx) error {
	b.Queue(commit).Exec(committed)
	if err := b.Send(ctx, tx); err != nil {
		return err
	}
	tx.committed = true
	return nil
}

// TryLock is Lock for a caller who does not wait: got says whether it has the lock.
func (b *Batch) TryLock(space LockSpace, key string, got *bool) {
	b.Queue(`SELECT pg_try_advisory_xact_lock($1, hashtext($2))`, int32(space), key).
		QueryRow(func(row pgx.Row) error { return row.Scan(got) })
}

// Lock queues what the function Lock does; the batch must be sent in a transaction. What
// is queued after it sees everything that the lock's holder before had committed.
func (b *Batch) Lock(space LockSpace, key string) {
	b.Queue(`SELECT pg_advisory_xact_lock($1, hashtext($2))`, int32(space), key)
}
