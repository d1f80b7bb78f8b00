package webhook

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// MakePartitions gives each of the days from first on (in UTC) the partitions of its own
// that it lacks, a table after the other: the locks that this takes on one are gone before
// the next, so that nobody who reads two of them is waited for and waits.
func MakePartitions(ctx context.Context, db *pg.DB, first clock.Date, days int) error {
	for _, parent := range []string{"webhook_events", "webhook_deliveries", "webhook_attempts"} {
		if err := makePartitions(ctx, db, parent, first, days); err != nil {
			return err
		}
	}
	return nil
}
