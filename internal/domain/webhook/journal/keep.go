package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Drop drops the tables of the days before the given one, in UTC, and counts them. A day with
// deliveries that have not ended is kept whole.
func Drop(ctx context.Context, db *pg.DB, before clock.Date) (dropped int, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		dropped, err = dropPartitions(ctx, tx, before)
		return err
	})
	return dropped, err
}

// sweepBatch bounds one statement of a sweep.
const sweepBatch = 1000

// Tidy ends waiting deliveries that cannot be sent: it skips those to a URL that was switched
// off while they were in flight, and cancels those to a URL that was removed.
func Tidy(ctx context.Context, q pg.Querier, now time.Time) error {
	for _, sweep := range []func(context.Context, pg.Querier, time.Time, int) (int64, error){skipOff, cancelGone} {
		for {
			n, err := sweep(ctx, q, now, sweepBatch)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	}
	return nil
}

// erasing is how many events one transaction of Erase erases.
const erasing = 200

// Erase removes a person's data from events and from the responses to them, and cancels their
// deliveries that are waiting. The rows stay, as a record that something was sent. It counts
// the events, and writes its audit entry with the first of them.
func Erase(ctx context.Context, db *pg.DB, by audit.Actor, user id.User, now time.Time) (events int, err error) {
	for first := true; ; first = false {
		var n int
		err := db.InTx(ctx, func(tx *pg.Tx) error {
			if n, err = eraseSome(ctx, tx, user, now, erasing); err != nil || !first {
				return err
			}
			return audit.Write(ctx, tx, audit.Entry{Actor: by, Action: "erased webhook data", Target: fmt.Sprintf("user %d", user), At: now})
		})
		if events += n; err != nil || n < erasing {
			return events, err
		}
	}
}
