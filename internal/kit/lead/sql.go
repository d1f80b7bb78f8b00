package lead

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// renew says that the candidate is alive, keeps what it holds and reads its share of the job's
// names. The oldest candidates get what cannot be divided, so that a new one takes nothing from
// them that it could not keep. kept are the names that it still holds.
func (c *candidate) renew(ctx context.Context, held []Lease) (kept []string, share int, err error) {
	err = c.db.InTx(ctx, func(tx *pg.Tx) error {
		var b pg.Batch
		unhurried(&b)
		b.Queue(`
			INSERT INTO leader_candidates (job, holder, since, expires)
			VALUES ($1, $2, clock_timestamp(), clock_timestamp() + $3::interval)
			ON CONFLICT (job, holder) DO UPDATE SET expires = EXCLUDED.expires`, c.job, c.holder, leaseTerm)
		b.Queue(`
			DELETE FROM leader_candidates
			WHERE (job, holder) IN (
				SELECT job, holder FROM leader_candidates WHERE job = $1 AND expires < clock_timestamp() FOR UPDATE SKIP LOCKED)`, c.job)
		keep(&b, c.holder, held, &kept)
		b.Queue(`
			SELECT ($3 / live + CASE WHEN nth <= $3 % live THEN 1 ELSE 0 END)::integer
			FROM (
				SELECT holder, row_number() OVER (ORDER BY since, holder) AS nth, count(*) OVER () AS live
				FROM leader_candidates
				WHERE job = $1 AND expires >= clock_timestamp()) AS candidates
			WHERE holder = $2`, c.job, c.holder, len(c.names)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&share) })
		return b.Commit(ctx, tx)
	})
	return kept, share, err
}

// keepOnly is renew for a candidate that leaves: it takes nothing more, and others need not leave
// it a share.
func (c *candidate) keepOnly(ctx context.Context, held []Lease) (kept []string, share int, err error) {
	err = c.db.InTx(ctx, func(tx *pg.Tx) error {
		var b pg.Batch
		unhurried(&b)
		b.Queue(`DELETE FROM leader_candidates WHERE job = $1 AND holder = $2`, c.job, c.holder)
		keep(&b, c.holder, held, &kept)
		return b.Commit(ctx, tx)
	})
	return kept, 0, err
}

// keep moves the end of leases that are still the holder's.
func keep(b *pg.Batch, holder string, held []Lease, kept *[]string) {
	names, tokens := split(held)
	b.Queue(`
		UPDATE leaders AS l
		SET expires = clock_timestamp() + $4::interval
		FROM unnest($2::text[], $3::bigint[]) AS mine (name, token)
		WHERE l.name = mine.name AND l.token = mine.token AND l.holder = $1
		RETURNING l.name`, holder, names, tokens, leaseTerm).
		Query(func(rows pgx.Rows) (err error) {
			*kept, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
}

// take takes over at most n of the job's names that nobody leads, none of except. A name whose
// last holder has a fenced transaction under way is not free until that has ended.
func (c *candidate) take(ctx context.Context, except []string, n int) (taken []Lease, err error) {
	err = c.db.InTx(ctx, func(tx *pg.Tx) error {
		var b pg.Batch
		unhurried(&b)
		b.Queue(`
			INSERT INTO leaders (name, holder, token, expires)
			SELECT name, '', 0, '-infinity' FROM unnest($1::text[]) AS name
			ON CONFLICT (name) DO NOTHING`, c.names)
		b.Queue(`
			UPDATE leaders AS l
			SET holder = $3,
				token = l.token + 1,
				expires = clock_timestamp() + $4::interval
			FROM (
				SELECT name
				FROM leaders
				WHERE name = ANY($1) AND name <> ALL($2) AND expires < clock_timestamp()
				ORDER BY name
				LIMIT $5
				FOR UPDATE SKIP LOCKED) AS free
			WHERE l.name = free.name
			RETURNING l.name, l.token`, c.names, except, c.holder, leaseTerm, n).
			Query(func(rows pgx.Rows) (err error) {
				taken, err = pgx.CollectRows(rows, pgx.RowToStructByNameLax[Lease])
				return err
			})
		return b.Commit(ctx, tx)
	})
	for i := range taken {
		taken[i].holder = c.holder
	}
	return taken, err
}

// release makes leases free at once that are still the holder's.
func (c *candidate) release(ctx context.Context, over []Lease) error {
	if len(over) == 0 {
		return nil
	}
	names, tokens := split(over)
	return c.db.InTx(ctx, func(tx *pg.Tx) error {
		var b pg.Batch
		unhurried(&b)
		b.Queue(`
			UPDATE leaders AS l
			SET holder = '', expires = '-infinity'
			FROM unnest($2::text[], $3::bigint[]) AS mine (name, token)
			WHERE l.name = mine.name AND l.token = mine.token AND l.holder = $1`, c.holder, names, tokens)
		return b.Commit(ctx, tx)
	})
}

func split(leases []Lease) (names []string, tokens []int64) {
	for _, l := range leases {
		names, tokens = append(names, l.Name), append(tokens, l.Token)
	}
	return names, tokens
}

// unhurried lets the transaction's commit not wait for the disk or a standby. A lease that is
// lost with the server is another's afterwards, and whatever was committed under it is lost too
// or was written to the log behind it.
func unhurried(b *pg.Batch) { b.Queue(`SELECT set_config('synchronous_commit', 'off', true)`) }

// Fence queues a statement that makes the transaction fail unless the leases are still their
// holder's; see Lost. Nobody else takes over until the transaction has ended. It belongs in front
// of all others: what comes before it may be older than another holder's work.
func Fence(b *pg.Batch, leases ...Lease) {
	names, tokens := split(leases)
	holders := make([]string, len(leases))
	for i, l := range leases {
		holders[i] = l.holder
	}
	b.Queue(`
		SELECT lead_fence(name, holder, token)
		FROM unnest($1::text[], $2::text[], $3::bigint[]) AS u(name, holder, token)`, names, holders, tokens)
}
