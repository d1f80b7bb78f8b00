package page

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const (
	// patience is how long a page waits for transactions that keep rows from it.
	patience   = 2 * time.Second
	firstPause = 2 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Settled reads a page of a list whose positions are drawn with next_position (migration 00026). Writers
// draw them in one order and commit in another, so read must return no row behind until: nothing is
// committed up to there any more, and a reader who stores the page's last position misses nothing.
//
// A page of fewer than limit rows may lack committed ones, because of transactions under way that drew
// before them. It waits for these, but not for long, so that callers find what they have written.
func Settled[T any](
	ctx context.Context, reads *pg.Reads, org id.Organization, limit int, read func(db *pg.DB, until int64) ([]T, error),
) (rows []T, err error) {
	// Who is under way the primary alone knows.
	until, drawn, err := selectSettled(ctx, reads.Primary(), org)
	if err != nil {
		return nil, err
	}
	rowsUntil := func(until int64) (rows []T, err error) {
		err = reads.Do(ctx, func(db *pg.DB) (err error) {
			rows, err = read(db, until)
			return err
		})
		return rows, err
	}
	rows, err = rowsUntil(until)
	if err != nil || len(rows) >= limit || until >= drawn {
		return rows, err
	}
	before := until
	if until, err = awaitSettled(ctx, reads.Primary(), org, drawn); err != nil || until == before {
		return rows, err
	}
	return rowsUntil(until)
}

// awaitSettled waits until everything up to the position is settled, or for as long as patience, and
// returns what is settled then.
func awaitSettled(ctx context.Context, db *pg.DB, org id.Organization, position int64) (int64, error) {
	over := time.After(patience)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		last := false
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-over:
			last = true
		case <-time.After(pause):
		}
		until, _, err := selectSettled(ctx, db, org)
		if err != nil || last || until >= position {
			return until, err
		}
	}
}
