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

// Drop forgets the days before the given one (in UTC), a table at a time. Days with
// deliveries that have not ended stay whole. It counts the tables.
func Drop(ctx context.Context, db *pg.DB, before clock.Date) (dropped int, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		dropped, err = dropPartitions(ctx, tx, before)
		return err
	})
	return dropped, err
}

// sweepBatch bounds one statement of a sweep.
const sweepBatch = 1000

// Tidy puts right what changed while a delivery was under way: deliveries that came back
// to a URL which is off are skipped, those of a URL that is gone are cancelled.
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

// erasing is how many events one transaction of Erase scrubs.
const erasing = 200

// Erase removes a person's data from the stored payloads, from what receivers answered to
// them, and ends deliveries of them that have not left. The rows stay as a record that
// something was sent. It counts the events. The audit entry is written with the first ones.
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
