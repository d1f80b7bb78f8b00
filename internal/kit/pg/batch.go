package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Batch gathers statements that are sent in one round trip and run in order. A function that
// takes a Batch only queues its statements; its results are there after Send. The zero value
// is ready. A Batch is sent once.
type Batch struct {
	pgx.Batch
	wakes []wakeUp
}

// Send runs the queued statements and stops at the first error. An empty batch costs nothing.
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

// Wake is Tx.Wake for the transaction that the batch is sent in. It may also be called while
// the results of queued statements are read.
func (b *Batch) Wake(channel, payload string) { b.wakes = append(b.wakes, wakeUp{channel, payload}) }

// Commit sends the last batch of a transaction together with the COMMIT, in one round trip.
// The transaction must not be used afterwards.
func (b *Batch) Commit(ctx context.Context, tx *Tx) error {
	b.Queue(commit).Exec(committed)
	if err := b.Send(ctx, tx); err != nil {
		return err
	}
	tx.committed = true
	return nil
}

// TryLock is Lock without waiting: got says whether the caller has the lock.
func (b *Batch) TryLock(space LockSpace, key string, got *bool) {
	b.Queue(`SELECT pg_try_advisory_xact_lock($1, hashtext($2))`, int32(space), key).
		QueryRow(func(row pgx.Row) error { return row.Scan(got) })
}

// Lock queues what the function Lock does; the batch must be sent in a transaction. Later
// statements see everything that the lock's previous holder committed.
func (b *Batch) Lock(space LockSpace, key string) {
	b.Queue(`SELECT pg_advisory_xact_lock($1, hashtext($2))`, int32(space), key)
}

// Hurry makes later statements of the transaction fail when they wait for a lock longer than 100 ms. It is
// for work of several organizations at once, which would all wait for the lock of one.
func (b *Batch) Hurry() { b.Queue("SET LOCAL " + lockTimeout + " = '100ms'") }

// Rows queues a query whose rows are read into targets, one after the other; each is called after each row.
func (b *Batch) Rows(each func() error, targets []any, sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, targets, each)
		return err
	})
}

// Structs queues a query whose rows are read into structs by the names of their columns.
func Structs[T any](b *Batch, each func(T), sql string, args ...any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
		for _, one := range all {
			each(one)
		}
		return err
	})
}

// deletes is how many rows Drop deletes in one transaction.
const deletes = 5000

// Drop deletes the rows of a table that a condition is true of, in transactions of a bounded size unless q is one, and
// counts them. It can be repeated, and broken off at any time.
func Drop(ctx context.Context, q Querier, table, condition string, args ...any) (rows int64, err error) {
	statement := fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %[1]s WHERE %[2]s LIMIT %[3]d)) AND %[2]s`, table, condition, deletes)
	for {
		tag, err := q.Exec(ctx, statement, args...)
		rows += tag.RowsAffected()
		if err != nil || tag.RowsAffected() < deletes {
			return rows, err
		}
	}
}
