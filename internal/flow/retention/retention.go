// Package retention drops what has been kept for as long as it is to be (reference: limits#retention), where that
// is not an area's own affair, as with the partitions of deliveries and of activity.
package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Days says for how many days each kind is kept; 0: for ever.
type Days struct {
	Mails   int // that are sent, or will not be
	Plans   int // the history of plans that are closed
	Rosters int // runs that are over
	Audit   int // LeastAudit at least
}

// LeastAudit is for how many days the audit log is kept at least; the database drops nothing younger.
const LeastAudit = 366

// batch is about how many rows a transaction drops.
const batch = 1000

// Drop drops the oldest rows of each kind, in small transactions, and can be repeated and broken off at any time.
// Only histories have an index by age. Other rows are looked at in the order in which they were made, up to the
// first batch of which nothing is old enough.
func Drop(ctx context.Context, db *pg.DB, keep Days, now time.Time) error {
	for _, k := range []struct {
		name string
		days int
		some func(ctx context.Context, q pg.Querier, before time.Time, most int) (int64, error)
	}{
		{"mails", keep.Mails, dropMails},
		{"histories of plans", keep.Plans, dropHistories},
		{"roster runs", keep.Rosters, dropRuns},
		{"audit log", keep.Audit, dropAudit},
	} {
		for dropped := int64(1); k.days > 0 && dropped > 0; {
			var err error
			if dropped, err = k.some(ctx, db, now.AddDate(0, 0, -k.days), batch); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	return nil
}
