package roster

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Lag is how many runs of all organizations wait for a person, and how long the first has.
type Lag struct {
	Held   int
	Oldest time.Duration // 0 where none waits
}

// Measure counts the held runs.
func Measure(ctx context.Context, q pg.Querier, now time.Time) (Lag, error) {
	n, since, err := selectHeld(ctx, q)
	if err != nil || n == 0 {
		return Lag{}, err
	}
	return Lag{n, max(0, now.Sub(since))}, nil
}
