package simulate

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// The kinds of things that happen by the clock, in the order in which they happen at one moment.
const (
	Calendar = iota
	Overdue
	Planned
	Task
	Delivery
	Daily
	Kinds
)

// names are the kinds on the wire.
var names = [Kinds]string{"enrollments", "assignments", "plans", "tasks", "webhooks", "housekeeping"}

// dailyAfter is how long after the start of the attendance register's day the daily work is done.
const dailyAfter = time.Hour

// Times is when each kind is due first in the sandbox of q; a zero time: never, as far as it is known now.
func Times(ctx context.Context, q pg.Querier, org id.Organization, kept clock.Date, zone *time.Location) (times [Kinds]time.Time, err error) {
	found, err := selectDue(ctx, q, org)
	if err != nil {
		return times, err
	}
	times = found.times(zone)
	times[Daily] = DailyOn(kept.AddDays(1))
	return times, nil
}

// DailyOn is when the daily work of a day is done.
func DailyOn(day clock.Date) time.Time { return clock.DayStart(day, activity.Zone).Add(dailyAfter) }

// Next is what happens next.
type Next struct {
	Kind string
	At   time.Time
}

// NextOf tells what happens next in the sandbox of q, housekeeping aside. nil: nothing, until a call changes
// something.
func NextOf(ctx context.Context, q pg.Querier, org id.Organization, c sandbox.Clock, zone *time.Location) (next *Next, err error) {
	times, err := Times(ctx, q, org, c.KeptOn, zone)
	if err != nil {
		return nil, err
	}
	for kind, at := range times[:Daily] {
		if at.IsZero() {
			continue
		}
		if at.Before(c.Now) {
			at = c.Now
		}
		if next == nil || at.Before(next.At) {
			next = &Next{names[kind], at}
		}
	}
	return next, nil
}

// Due says whether something is due in the sandbox of q that happens although nobody moves the clock.
func Due(ctx context.Context, q pg.Querier, org id.Organization, c sandbox.Clock, zone *time.Location) (bool, error) {
	next, err := NextOf(ctx, q, org, c, zone)
	return next != nil && next.Kind != names[Delivery] && !next.At.After(c.Now), err
}
