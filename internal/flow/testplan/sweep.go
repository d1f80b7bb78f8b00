package testplan

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// How many plans one transaction of the daily pass decides, and how many transactions run at once: one
// computes while another waits for the database.
const (
	sweepBatch = 200
	sweepers   = 3
)

// Sweep decides every plan whose time has come, many in a transaction, and returns how many. Several
// may sweep at once: each plan is decided by one of them. A plan that cannot be decided is put off and
// does not stop the others.
func (o *Service) Sweep(ctx context.Context) (decided int, err error) {
	first, err := o.sweepOn(ctx, 1)
	if err != nil || first < sweepBatch {
		return first, err // the usual case: little is due
	}
	var all atomic.Int64
	group, within := errgroup.WithContext(ctx)
	at := sweepers
	if o.InTurn {
		at = 1
	}
	for range at {
		group.Go(func() error {
			n, err := o.sweepOn(within, math.MaxInt)
			all.Add(int64(n))
			return err
		})
	}
	err = group.Wait()
	return first + int(all.Load()), err
}

// sweepOn decides up to that many batches of plans, until no more are due.
func (o *Service) sweepOn(ctx context.Context, batches int) (decided int, err error) {
	for range batches {
		ids, err := o.sweepSome(ctx)
		if err != nil && len(ids) > 0 && ctx.Err() == nil && !pg.Away(err) { // with no ids, the search itself failed
			err = o.oneByOne(ctx, ids)
		}
		decided += len(ids)
		if err != nil || len(ids) < sweepBatch {
			return decided, err
		}
	}
	return decided, nil
}

func (o *Service) sweepSome(ctx context.Context) (ids []id.Plan, err error) {
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		now := o.Clock()
		due, err := plan.LockDue(ctx, tx, now, sweepBatch)
		if err != nil || len(due) == 0 {
			ids = nil
			return err
		}
		ids = idsOf(due)
		works := make([]work, len(due))
		for i, s := range due {
			works[i] = work{plan: s}
		}
		_, err = o.step(ctx, tx, now, false, works...)
		return err
	})
	return ids, err
}

// oneByOne decides each plan in its own transaction, so that one that fails does not stop the others.
func (o *Service) oneByOne(ctx context.Context, ids []id.Plan) error {
	for _, one := range ids {
		failures := 0
		err := o.DB.InTx(ctx, func(tx *pg.Tx) error {
			stored, err := plan.Lock(ctx, tx, one)
			if err != nil {
				return err
			}
			failures = stored.Failures
			_, err = o.step(ctx, tx, o.Clock(), false, work{plan: stored})
			return err
		})
		if err == nil {
			continue
		}
		if ctx.Err() != nil || pg.Away(err) {
			return err
		}
		o.Log.ErrorContext(ctx, "a test plan could not be decided; it is tried again later", "plan", one, "failures", failures+1, "error", err)
		if err := plan.Postpone(ctx, o.DB, one, o.Clock().Add(backoff(failures))); err != nil {
			return err
		}
	}
	return nil
}

// backoff is one minute, doubled with each failure, up to 256 minutes.
func backoff(failures int) time.Duration { return time.Minute << min(failures, 8) }
