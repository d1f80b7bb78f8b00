package journal

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Measurement is the state of all deliveries, for metrics.
type Measurement struct {
	Backlogs    []Backlog // of the organizations with the largest, MostBacklogs at most
	Others      Backlog   // of all other organizations together
	InFlight    int       // handed to senders
	On, Off     int       // URLs
	Probing     int       // of those that are on
	Allowance   float64   // what URLs that are on may have in flight, on average
	Unaccounted int       // see Measure
}

// Backlog is what waits for the URLs of an organization.
type Backlog struct {
	Organization string // its slug
	Waiting      int    // counted up to a hundred thousand a URL
	Oldest       time.Duration
}

// MostBacklogs bounds how many organizations are told apart.
const MostBacklogs = 50

// Measure reads the state in a few index walks. Unaccounted counts deliveries that nothing
// would ever bring further: leased ones without a lease or whose lease ran out ten minutes
// ago, and ones that wait for a URL which is gone. It is 0 in a system that works.
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
		if len(m.Backlogs) < MostBacklogs {
			m.Backlogs = append(m.Backlogs, b)
			continue
		}
		m.Others.Waiting += b.Waiting
		m.Others.Oldest = max(m.Others.Oldest, b.Oldest)
	}
	return m, nil
}
