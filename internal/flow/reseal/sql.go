package reseal

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// countOlder counts what another key than the one with the prefix sealed.
func countOlder(ctx context.Context, q pg.Querier, c seal.Column, primary []byte) (older int, err error) {
	err = q.QueryRow(ctx, `
		SELECT count(*) FROM `+c.Table+`
		WHERE sealed IS NOT NULL AND substr(sealed, 1, length($1::bytea)) <> $1`, primary).Scan(&older)
	return older, err
}

// row is a sealed value and where it is.
type row struct {
	Tuple   string
	Context string
	Sealed  []byte
}

// lockOlder locks some of the rows behind a tuple that another key sealed. Those that somebody else has
// locked are left for the next pass.
func lockOlder(ctx context.Context, tx *pg.Tx, c seal.Column, primary []byte, after string, most int) ([]row, error) {
	return pg.List[row](ctx, tx, `
		SELECT ctid::text AS tuple, `+c.Context+` AS context, sealed FROM `+c.Table+`
		WHERE ctid > $2::tid AND sealed IS NOT NULL AND substr(sealed, 1, length($1::bytea)) <> $1
		LIMIT $3 FOR UPDATE SKIP LOCKED`, primary, after, most)
}

// update stores the new values of rows that the transaction has locked, which so keep their tuples.
func update(ctx context.Context, tx *pg.Tx, c seal.Column, rows []row) error {
	tuples, values := make([]string, len(rows)), make([][]byte, len(rows))
	for i, r := range rows {
		tuples[i], values[i] = r.Tuple, r.Sealed
	}
	_, err := tx.Exec(ctx, `
		UPDATE `+c.Table+` t SET sealed = n.sealed
		FROM unnest($1::text[], $2::bytea[]) AS n(tuple, sealed)
		WHERE t.ctid = n.tuple::tid`, tuples, values)
	return err
}
