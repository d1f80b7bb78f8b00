// Package periodic runs jobs at fixed intervals, in one worker at a time (kit/lead).
package periodic

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/flow/alert"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/organization"
	"github.com/registrar-dev/registrar/internal/flow/person"
	"github.com/registrar-dev/registrar/internal/flow/reseal"
	"github.com/registrar-dev/registrar/internal/flow/retention"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/replay"
)

// Job is work to do at a fixed interval. It must be safe to repeat, and must catch up when it
// has not run for days.
type Job struct {
	Name  string
	Every time.Duration
	Run   func(ctx context.Context, now time.Time) error
}

// partitionsAhead is for how many days partitions are made in advance.
const partitionsAhead = 7

// How long an upload that is never completed is kept, and for how many days the details of a
// roster run can be read and the run reverted.
const (
	UploadKept = 2 * time.Hour
	RosterKept = 90
)

// All lists the jobs. zone is the platform's time zone, which decides what day it is;
// webhookDays is for how many days deliveries are kept.
func All(db *pg.DB, zone *time.Location, webhookDays int) []Job {
	return []Job{
		{Name: "recording overdue assignments", Every: 10 * time.Second, Run: func(ctx context.Context, now time.Time) error {
			return (&assign.Service{DB: db, Clock: clock.At(now), Zone: zone}).Sweep(ctx)
		}},
		{Name: "recording work of students who came back", Every: 10 * time.Second, Run: func(ctx context.Context, now time.Time) error {
			return (&work.Service{DB: db, Clock: clock.At(now), Zone: zone}).Sweep(ctx)
		}},
		{Name: "making partitions for activity", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			return activity.MakePartitions(ctx, db, clock.DateIn(now, activity.Zone), partitionsAhead)
		}},
		{Name: "compiling the attendance register", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			return compileRegister(ctx, db, now)
		}},
		{Name: "dropping what launches from LMSes leave", Every: 15 * time.Minute, Run: func(ctx context.Context, now time.Time) error {
			if err := lms.DropExpired(ctx, db, now); err != nil {
				return err
			}
			return lti.DropUsedNonces(ctx, db, now)
		}},
		{Name: "scheduling the rosters of LMSes", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			return lms.SchedulePulls(ctx, db, lastNight(now, zone), now)
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
		{Name: "ending deliveries to switched-off and deleted URLs", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			return journal.Tidy(ctx, db, now)
		}},
		{Name: "removing replaced signing secrets", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			return webhook.EndOverlaps(ctx, db, now)
		}},
		{Name: "moving deliveries of the version before", Every: time.Minute, Run: func(ctx context.Context, _ time.Time) error {
			return journal.Adopt(ctx, db)
		}},
		{Name: "dropping old roster uploads and details", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			return roster.Clear(ctx, db, now.Add(-UploadKept), now.AddDate(0, 0, -RosterKept))
		}},
		{Name: "ending held roster runs that nobody can or will approve", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			return roster.EndStale(ctx, db, now.AddDate(0, 0, -roster.HeldDays), now)
		}},
		{Name: "dropping expired set-password links", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			_, err := student.DropExpiredLinks(ctx, db, now)
			return err
		}},
		{Name: "recording what the calendar changed in enrollments", Every: time.Minute, Run: func(ctx context.Context, now time.Time) error {
			_, err := (&enrollment.Service{DB: db, Clock: clock.At(now), Zone: zone}).Sweep(ctx)
			return err
		}},
		{Name: "dropping expired idempotency keys", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
			_, err := replay.DropExpired(ctx, db, now)
			return err
		}},
		{Name: "dropping expired sessions", Every: time.Hour, Run: func(ctx context.Context, _ time.Time) error {
			_, err := student.DropExpiredSessions(ctx, db)
			return err
		}},
	}
}

// nightHour is when rosters of LMSes begin to be pulled.
const nightHour = 1

// lastNight is when the last night began, in the platform's zone.
func lastNight(now time.Time, zone *time.Location) time.Time {
	today := now.In(zone)
	night := time.Date(today.Year(), today.Month(), today.Day(), nightHour, 0, 0, 0, zone)
	if night.After(now) {
		night = time.Date(today.Year(), today.Month(), today.Day()-1, nightHour, 0, 0, 0, zone)
	}
	return night
}

// Plans is the daily pass over test plans, each at the start of the day in its own zone. It
// also catches up after a time without a worker.
func Plans(o *testplan.Service) Job {
	return Job{Name: "deciding test plans", Every: 10 * time.Second, Run: func(ctx context.Context, _ time.Time) error {
		_, err := o.Sweep(ctx)
		return err
	}}
}

// Alerts mails owners and admins about what one of them has to mend.
func Alerts(s *alert.Service) Job {
	return Job{Name: "mailing owners and admins", Every: time.Minute, Run: func(ctx context.Context, _ time.Time) error {
		_, err := s.Sweep(ctx)
		return err
	}}
}

// LMSKeys makes the next key for LMSes when its time has come, and drops those that are over.
func LMSKeys(k lms.Keys) Job {
	return Job{Name: "rotating the keys for LMSes", Every: time.Hour, Run: k.Rotate}
}

// Reseal encrypts what an older key sealed again, while the keyset has one.
func Reseal(s *reseal.Service) Job {
	return Job{Name: "encrypting secrets with the present key", Every: time.Minute, Run: func(ctx context.Context, _ time.Time) error {
		return s.Sweep(ctx)
	}}
}

// ErasePeople looks for what people were called who are being erased.
func ErasePeople(e *person.Eraser) Job {
	return Job{Name: "erasing people", Every: 10 * time.Second, Run: func(ctx context.Context, _ time.Time) error {
		return e.Sweep(ctx)
	}}
}

// EraseOrganizations deletes what organizations have that are being erased.
func EraseOrganizations(e *organization.Eraser) Job {
	return Job{Name: "erasing organizations", Every: 10 * time.Second, Run: func(ctx context.Context, _ time.Time) error {
		return e.Sweep(ctx)
	}}
}

// Retain drops what has been kept for as long as it is to be.
func Retain(db *pg.DB, keep retention.Days) Job {
	return Job{Name: "dropping what is kept no longer", Every: time.Hour, Run: func(ctx context.Context, now time.Time) error {
		return retention.Drop(ctx, db, keep, now)
	}}
}

func compileRegister(ctx context.Context, db *pg.DB, now time.Time) error {
	days, err := activity.CompileDue(ctx, db, now)
	for _, d := range days {
		slog.InfoContext(ctx, "compiled a day of the attendance register", "date", d.Date.String(), "rows", d.Rows, "events", d.Events)
	}
	return err
}

// Run runs each job at once and then at its interval, until ctx ends. A job that fails is
// logged and runs again at its next turn.
func Run(ctx context.Context, now clock.Clock, log *slog.Logger, jobs []Job) {
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() { j.run(ctx, now, log) })
	}
	wg.Wait()
}

func (j Job) run(ctx context.Context, now clock.Clock, log *slog.Logger) {
	tick := time.NewTicker(j.Every)
	defer tick.Stop()
	for {
		if err := j.Run(ctx, now()); err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, "a periodic job failed", "job", j.Name, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
