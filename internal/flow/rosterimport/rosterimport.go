// Package rosterimport carries out roster runs: it plans the changes that a file leads to, and
// applies the plan in batches.
//
// The plan is made in one transaction that writes only the run's own rows, so a worker that
// dies leaves nothing of it. Its changes are then carried out in batches, one transaction each,
// which also stores how far the run has come: another worker continues after the last one.
// Each transaction renews the claim of the task, so a worker that lost its claim writes nothing.
package rosterimport

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Importer carries out runs.
type Importer struct {
	DB    *pg.DB
	Clock clock.Clock
	Zone  *time.Location // the platform's: decides which enrollments are current
	Log   *slog.Logger
	Lease time.Duration // how soon another worker takes over from one that died; 0 is 20 s
	Turns *Turns        // of the worker's runs; nil: each run works as if it were alone
}

const (
	defaultLease = 20 * time.Second
	// maxClaims is how often workers begin a run that fails, before it is given up: it must not
	// block the organization's other runs for ever.
	maxClaims = 20
	// firstPause is how soon a run that failed is begun again: it may have met another transaction,
	// or PostgreSQL may have been away for a moment. Each further pause is twice as long.
	firstPause = 250 * time.Millisecond
	maxPause   = 20 * time.Second
)

// Run carries out the claimed run until it is over or held. A lost claim is not an error.
func (i *Importer) Run(ctx context.Context, ref task.Outbox) error {
	job, err := outbox.Hold(ctx, i.DB, ref, i.until())
	if err == nil {
		err = i.hold(ctx, ref, func(ctx context.Context) error {
			return i.work(ctx, ref, job)
		})
	}
	if errors.Is(err, outbox.ErrLost) {
		return nil // another worker has it
	}
	if err != nil {
		i.handBack(ctx, ref, job.Claim)
	}
	return err
}

// handBack makes a run that failed due again, which it would otherwise be when the lease has run
// out: after a pause, or at once when the worker stops.
func (i *Importer) handBack(ctx context.Context, ref task.Outbox, claim int) {
	at := i.Clock()
	if ctx.Err() == nil {
		at = at.Add(min(firstPause<<min(max(claim-1, 0), maxClaims), maxPause))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := outbox.Postpone(ctx, i.DB, ref, at); err != nil && !errors.Is(err, outbox.ErrLost) {
		i.Log.WarnContext(ctx, "a failed roster run waits for the end of its lease", "error", err)
	}
}

func (i *Importer) lease() time.Duration {
	if i.Lease == 0 {
		return defaultLease
	}
	return i.Lease
}

func (i *Importer) until() time.Time { return i.Clock().Add(i.lease()) }

// hold renews the claim while work runs, and cancels work's context when the claim is lost.
func (i *Importer) hold(ctx context.Context, ref task.Outbox, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range clock.Ticks(ctx, i.lease()/4) {
			if err := outbox.Postpone(ctx, i.DB, ref, i.until()); errors.Is(err, outbox.ErrLost) {
				cancel(err)
				return
			}
		}
	}()
	err := work(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, outbox.ErrLost) {
		err = cause
	}
	cancel(nil)
	<-done
	return err
}

// part carries out the changes of people, or those of classes.
type part func(context.Context, task.Outbox, roster.Run, *turn) (roster.Run, error)

func (i *Importer) work(ctx context.Context, ref task.Outbox, job outbox.Task) error {
	turn, err := i.Turns.begin(ctx)
	if err != nil {
		return err
	}
	defer turn.end()
	run, err := i.plan(ctx, ref, job, turn)
	if err != nil || run.State != roster.Applying {
		return err
	}
	turn.planned = true
	parts := []part{i.applyPeople, i.applyClasses}
	if run.Undoes != 0 { // seats are found by external ids, some of which are removed with the people
		slices.Reverse(parts)
	}
	for _, part := range parts {
		if run, err = part(ctx, ref, run, turn); err != nil {
			return err
		}
	}
	run.State = roster.Applied
	return i.DB.InTx(ctx, func(tx *pg.Tx) error {
		// Locks are taken in the order of lockIn: the organization's, which finish takes, and then runs.
		if err := i.finish(ctx, tx, ref, run); err != nil || run.Undoes == 0 {
			return err
		}
		return roster.MarkUndone(ctx, tx, run, i.Clock())
	})
}

// plan plans a run, unless that was done before.
func (i *Importer) plan(ctx context.Context, ref task.Outbox, job outbox.Task, turn *turn) (run roster.Run, err error) {
	err = i.DB.InTx(ctx, func(tx *pg.Tx) error {
		if run, err = roster.Lock(ctx, tx, job.Organization, id.RosterRun(job.Subject)); err != nil {
			return err
		}
		if job.Claim > maxClaims {
			run.State, run.FaultCode, run.Fault = roster.Refused, faultGivenUp, "the import failed again and again; it was given up, perhaps half-way"
			i.Log.ErrorContext(ctx, "a roster run was given up", "run", int64(run.ID), "claims", job.Claim)
			return i.finish(ctx, tx, ref, run)
		}
		if run.State != roster.Queued {
			return nil
		}
		run.Stamp = i.Clock().Truncate(time.Microsecond)
		today := clock.DateIn(i.Clock(), i.Zone)
		if run.Undoes != 0 {
			run, err = planUndo(ctx, tx, run, turn, today)
		} else {
			run, err = plan(ctx, i.DB, tx, run, turn, today)
		}
		if err != nil {
			return err
		}
		if err := roster.SavePlan(ctx, tx, run, i.Clock()); err != nil {
			return err
		}
		if run.State != roster.Applying {
			return i.finish(ctx, tx, ref, run)
		}
		return outbox.Postpone(ctx, tx, ref, i.until())
	})
	return run, err
}

const faultGivenUp = "given_up"

// GivenUp says whether the run was given up for faults that are not the file's.
func GivenUp(r roster.Run) bool { return r.FaultCode == faultGivenUp }

// ErrGivenUp answers a request that waits for such a run.
var ErrGivenUp = fault.New(fault.Internal, faultGivenUp, "the import was given up")

func (i *Importer) finish(ctx context.Context, tx *pg.Tx, ref task.Outbox, run roster.Run) error {
	if err := outbox.Done(ctx, tx, ref); err != nil {
		return err
	}
	return roster.Finish(ctx, tx, run, i.Clock())
}
