package journal

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Measurement sums up all deliveries, for metrics.
type Measurement struct {
	Backlogs    []Backlog `db:"-"` // of the organizations with the largest, mostBacklogs at most
	Others      Backlog   `db:"-"` // of all other organizations together
	InFlight    int       // leased to senders
	On, Off     int       // URLs
	Probing     int       // of those that are on
	Allowance   float64   // of the URLs that are on, on average
	Unaccounted int       // see Measure
}

// Backlog sums up the waiting deliveries of an organization.
type Backlog struct {
	Organization string        // its slug
	Waiting      int           // counted up to 100,000 a URL
	Oldest       time.Duration // the age of the oldest event
}

// mostBacklogs bounds how many organizations are listed by name.
const mostBacklogs = 50

// Measure reads the measurement in a few index walks. Unaccounted counts deliveries that
// nothing would ever continue: leased ones without a lease or whose lease ran out ten minutes
// ago, and ones that wait for a URL that was removed. It is 0 in a system that works.
func Measure(ctx context.Context, q pg.Querier, now time.Time) (Measurement, error) {
	m, err := selectMeasurement(ctx, q, now)
	if err != nil {
		return Measurement{}, err
	}
	backlogs, err := selectBacklogs(ctx, q, now)
	if err != nil {
		return Measurement{}, err
	}
	for _, b := range backlogs {
		if len(m.Backlogs) < mostBacklogs {
			m.Backlogs = append(m.Backlogs, b)
			continue
		}
		m.Others.Waiting += b.Waiting
		m.Others.Oldest = max(m.Others.Oldest, b.Oldest)
	}
	return m, nil
}
