package pg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is a transaction that sends wake-ups once it has committed. When its first statements are
// a batch, its BEGIN is sent in the same round trip; Batch.Commit sends the COMMIT along with
// the last ones.
type Tx struct {
	conn      *pgxpool.Conn
	setting   string // sent with the BEGIN, unless it is empty
	begun     bool
	committed bool
	wakes     []wakeUp
}

type wakeUp struct{ channel, payload string }

// Wake asks for a wake-up of those subscribed to the channel after the commit; see DB.Wakes. It
// saves the receiver's polling pause, and may be lost: only the row counts.
func (tx *Tx) Wake(channel, payload string) {
	tx.wakes = append(tx.wakes, wakeUp{channel, payload})
}

const (
	begin  = "begin"
	commit = "commit"
)

func (tx *Tx) begin(ctx context.Context) error {
	if tx.begun {
		return nil
	}
	if _, err := tx.conn.Exec(ctx, strings.TrimSuffix(begin+"; "+tx.setting, "; ")); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	tx.begun = true
	return nil
}

// end commits, unless a batch has done so already.
func (tx *Tx) end(ctx context.Context) error {
	if tx.committed || !tx.begun {
		return nil
	}
	tag, err := tx.conn.Exec(ctx, commit)
	if err == nil {
		err = committed(tag)
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	tx.committed = true
	return nil
}

// rollback cleans up the connection, also when the caller's context has ended.
func (tx *Tx) rollback(ctx context.Context) {
	if tx.conn.Conn().IsClosed() || tx.conn.Conn().PgConn().TxStatus() == 'I' {
		return // committed, never begun, or gone
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = tx.conn.Exec(ctx, "rollback") // a connection that cannot is thrown away
}

// committed returns an error when PostgreSQL rolled back instead, because a statement failed.
func committed(tag pgconn.CommandTag) error {
	if tag.String() != "COMMIT" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// Exec implements Querier.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := tx.begin(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return tx.conn.Exec(ctx, sql, args...)
}

// Query implements Querier.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := tx.begin(ctx); err != nil {
		return nil, err
	}
	return tx.conn.Query(ctx, sql, args...)
}

// QueryRow implements Querier.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := tx.begin(ctx); err != nil {
		return failedRow{err}
	}
	return tx.conn.QueryRow(ctx, sql, args...)
}

type failedRow struct{ err error }

// Scan implements pgx.Row.
func (r failedRow) Scan(...any) error { return r.err }

// SendBatch implements Querier.
func (tx *Tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if tx.begun {
		return tx.conn.SendBatch(ctx, b)
	}
	tx.begun = true // also when it fails: then the rollback finds nothing to do
	first := []*pgx.QueuedQuery{{SQL: begin}}
	if tx.setting != "" {
		first = append(first, &pgx.QueuedQuery{SQL: tx.setting})
	}
	b.QueuedQueries = slices.Insert(b.QueuedQueries, 0, first...)
	results := tx.conn.SendBatch(ctx, b)
	for range first {
		_, _ = results.Exec() // its fault comes back from Close
	}
	return results
}

// CopyFrom implements Querier.
func (tx *Tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if err := tx.begin(ctx); err != nil {
		return 0, err
	}
	return tx.conn.CopyFrom(ctx, table, columns, rows)
}

// Script runs several statements without arguments. They are not prepared, and their plans are
// not kept.
func (tx *Tx) Script(ctx context.Context, sql string) error {
	if err := tx.begin(ctx); err != nil {
		return err
	}
	_, err := tx.conn.Conn().PgConn().Exec(ctx, sql).ReadAll()
	return err
}
