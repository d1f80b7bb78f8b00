package webhook

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// MakePartitions gives each of the days from first on (in UTC) the partitions of its own
// that it lacks.
func MakePartitions(ctx context.Context, q pg.Querier, first clock.Date, days int) error {
	return makePartitions(ctx, q, first, days)
}
