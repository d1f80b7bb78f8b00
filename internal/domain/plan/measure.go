package plan

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Lag is how far the daily pass over the plans of all organizations is behind.
type Lag struct {
	Due     int           // have to be decided by now
	Oldest  time.Duration // how long the first of them has waited; 0 where none does
	Failing int           // could not be decided, and are tried again later
}

// Measure tells how late the plans are.
func Measure(ctx context.Context, q pg.Querier, now time.Time) (Lag, error) {
	l, since, err := selectLate(ctx, q, now)
	l.Oldest = now.Sub(since)
	return l, err
}
