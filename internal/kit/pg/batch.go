package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Batch gathers statements that leave in one round trip and run in order. Functions that
// take one queue their statements, and fill what they promise when it is sent. The zero
// value is ready; it is sent once.
type Batch struct{ pgx.Batch }

// Send runs what was queued and stops at the first fault. An empty batch costs nothing.
func (b *Batch) Send(ctx context.Context, q Querier) error {
	if b.Len() == 0 {
		return nil
	}
	return q.SendBatch(ctx, &b.Batch).Close()
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
