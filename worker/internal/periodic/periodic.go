// Package periodic does what is due by the clock and by nobody's call. One worker at a time
// does it (pg.Lead).
package periodic

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/replay"
)

// Job is one thing to do again and again. It must be safe to repeat, and catch up by
// itself after it was not done for days.
type Job struct {
	Name  string
	Every time.Duration
	Run   func(ctx context.Context, now time.Time) error
}

// partitionsAhead is how many days of rows have their partitions made before
// they are needed.
const partitionsAhead = 7

// How long an upload that is never completed stays, and for how many days the details of a
// roster run can be looked at and the run taken back.
const (
	uploadKept = 2 * time.Hour
	rosterKept = 90
)

// All lists the duties; zone is the platform's, which decides today, and webhookDays how many
// days of deliveries are kept.
func All(db *pg.DB, zone *time.Location, webhookDays int) []Job {
	return []Job{
		{Name: "telling of overdue assignments", Every: 10 * time.Second, Run: func(ctx context.Context, now time.Time) error {
			return (&assign.Service{DB: db, Clock: clock.At(now), Zone: zone}).Sweep(ctx)
		}},
		{Name: "placing results of students who came back", Every: 10 * time.Second, Run: func(ctx context.Context, now time.Time) error {
			return (&work.Service{DB: db, Clock: clock.At(now), Zone: zone}).Sweep(ctx)
		}},
		{Name: "making partitions for activity", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			return activity.MakePartitions(ctx, db, clock.DateIn(now, activity.Zone), partitionsAhead)
		}},
		{Name: "compiling the attendance register", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			return compileRegister(ctx, db, now)
		}},
		{Name: "forgetting the nonces of LMS launches", Every: 15 * time.Minute, Run: func(ctx context.Context, now time.Time) error {
			return lti.DropUsedNonces(ctx, db, now)
		}},
		{Name: "dropping expired activity", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			return activity.DropExpired(ctx, db, now)
		}},
		// One after the other: each locks partitions that the other needs.
		{Name: "making partitions ahead and dropping old deliveries", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			today := clock.DateIn(now, time.UTC)
			if err := webhook.MakePartitions(ctx, db, today, partitionsAhead); err != nil {
				return err
			}
			_, err := journal.Drop(ctx, db, today.AddDays(-webhookDays))
			return err
		}},
		{Name: "putting deliveries of switched-off and deleted URLs right", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			return journal.Tidy(ctx, db, now)
		}},
		{Name: "clearing what roster runs leave", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			return roster.Clear(ctx, db, now.Add(-uploadKept), now.AddDate(0, 0, -rosterKept))
		}},
		{Name: "dropping expired set-password links", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			_, err := student.DropExpiredLinks(ctx, db, now)
			return err
		}},
		{Name: "telling what the calendar did to enrollments", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			_, err := (&enrollment.Service{DB: db, Clock: clock.At(now), Zone: zone}).Sweep(ctx)
			return err
		}},
		{Name: "dropping expired idempotency keys", Every: time.Hour, Run: func(ctx context.Context, _ time.Time) error {
			_, err := replay.DropExpired(ctx, db)
			return err
		}},
		{Name: "dropping expired sessions", Every: time.Hour, Run: func(ctx context.Context, _ time.Time) error {
			_, err := student.DropExpiredSessions(ctx, db)
			return err
		}},
	}
}

// Plans is the daily pass over test plans, as each plan's zone begins its day. It also
// catches up with what could not be done while no worker ran.
func Plans(o *testplan.Service) Job {
	return Job{Name: "deciding test plans", Every: 10 * time.Second, Run: func(ctx context.Context, _ time.Time) error {
		_, err := o.Sweep(ctx)
		return err
	}}
}

func compileRegister(ctx context.Context, db *pg.DB, now time.Time) error {
	days, err := activity.CompileDue(ctx, db, now)
	for _, d := range days {
		slog.InfoContext(ctx, "compiled a day of the attendance register", "date", d.Date.String(), "rows", d.Rows, "events", d.Events)
	}
	return err
}

// Run does each duty at once and then at its interval, until ctx ends. A duty that fails
// is logged and done again at the next turn.
func Run(ctx context.Context, now clock.Clock, log *slog.Logger, jobs []Job) {
	var wg sync.WaitGroup
	for _, d := range jobs {
		wg.Go(func() { d.run(ctx, now, log) })
	}
	wg.Wait()
}

func (d Job) run(ctx context.Context, now clock.Clock, log *slog.Logger) {
	tick := time.NewTicker(d.Every)
	defer tick.Stop()
	for {
		if err := d.Run(ctx, now()); err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "a periodic duty failed", "duty", d.Name, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
