package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
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

// Tidy ends pending deliveries that cannot be sent: it skips those to a URL that was switched
// off while they were in flight, and cancels those to a URL that was removed.
func Tidy(ctx context.Context, q pg.Querier, now time.Time) error {
	off, gone, err := selectStopped(ctx, q)
	if err != nil {
		return err
	}
	for _, e := range off {
		if err := webhook.Skip(ctx, q, e, now); err != nil {
			return err
		}
	}
	for _, e := range gone {
		if err := webhook.Cancel(ctx, q, e, now); err != nil {
			return err
		}
	}
	return nil
}

// Adopt moves what the version before left in webhook_deliveries and webhook_attempts to the queue and
// to the journal: what waits first, and last what its senders have had in hand. It can be repeated, and
// finds nothing once all is moved and no program of that version runs any more.
func Adopt(ctx context.Context, q pg.Querier) error {
	const batch = 500
	for _, which := range []string{
		`d.status = 'waiting'`,
		`d.status <> 'leased' OR d.lease_until IS NULL OR d.lease_until < now() - interval '1 minute'`,
	} {
		for {
			n, err := adopt(ctx, q, which, batch)
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
	return erase(ctx, db, user, now, false, func(tx *pg.Tx) error {
		return audit.Write(ctx, tx, audit.Entry{Actor: by, Action: "erased webhook data", Target: fmt.Sprintf("user %d", user), At: now})
	})
}

// EraseUser is Erase for a person who is erased whole. With again the events keep the person's number, so that a
// second call finds the responses, too, that come of attempts which were under way.
func EraseUser(ctx context.Context, db *pg.DB, user id.User, now time.Time, again bool) error {
	_, err := erase(ctx, db, user, now, again, func(*pg.Tx) error { return nil })
	return err
}

func erase(ctx context.Context, db *pg.DB, user id.User, now time.Time, again bool, begin func(*pg.Tx) error) (events int, err error) {
	if err := Adopt(ctx, db); err != nil {
		return 0, err
	}
	for first := true; ; first = false {
		var n int
		err := db.InTx(ctx, func(tx *pg.Tx) error {
			if n, err = eraseSome(ctx, tx, user, now, again, erasing); err != nil || !first {
				return err
			}
			return begin(tx)
		})
		if events += n; err != nil || n < erasing {
			return events, err
		}
	}
}
