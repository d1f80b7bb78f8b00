package journal

import (
	"context"
	"errors"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// RecoveryStatus is the state of a recovery.
type RecoveryStatus string

// The states of recoveries.
const (
	RecoveryRunning RecoveryStatus = "running"
	RecoveryDone    RecoveryStatus = "done"
	RecoveryStopped RecoveryStatus = "stopped" // the URL was switched off
)

// Recovery makes the undelivered events of a period due again, in order.
type Recovery struct {
	ID           id.Recovery
	Organization id.Organization
	Endpoint     id.Endpoint
	Since, Until time.Time
	Events       []webhook.Type // none: all
	ManagedBy    string         // the resource that began it; "" for people and programs
	Status       RecoveryStatus
	Total        int // undelivered when it began
	PutBack      int // made due again so far; they are sent one after the other
	Waiting      int // of those, not attempted yet
	CreatedAt    time.Time
	FinishedAt   *time.Time
}

const (
	// recoverBatch is how many deliveries one step puts back.
	recoverBatch = 200
	// recoverAhead is how many may wait when a step begins, so that a recovery of months
	// neither floods the receiver nor delays the events of today.
	recoverAhead = 100
	// recoverPause is between two steps.
	recoverPause = 500 * time.Millisecond
	// recoverHold is how long a step may take.
	recoverHold = time.Minute
)

// Recover starts a recovery of the deliveries of r.Events to r.Endpoint of r.Organization that were
// recorded from r.Since on, before r.Until, and were declined, exhausted or skipped. Faults:
// NotFound; Conflict "switched_off" when the URL is off, "recovery_running" while the URL has
// another recovery; Invalid on until or events.
func Recover(ctx context.Context, db *pg.DB, by audit.Actor, r Recovery, now time.Time) (Recovery, error) {
	if !r.Since.Before(r.Until) {
		return Recovery{}, fault.Field("until", "empty_range", "until: it must be after since")
	}
	for _, e := range r.Events {
		if !webhook.Known(e) {
			return Recovery{}, fault.Field("events", "unknown_event", "events: %q is no event", e)
		}
	}
	r.CreatedAt = now
	var made Recovery
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		on, url, err := selectOn(ctx, tx, r.Organization, r.Endpoint)
		switch {
		case pg.None(err):
			return fault.New(fault.NotFound, "not_found", "the organization has no webhook URL with the id %d", r.Endpoint)
		case err != nil:
			return err
		case !on:
			return fault.New(fault.Conflict, "switched_off", "the URL is switched off; turn it on first")
		}
		if made, err = insertRecovery(ctx, tx, r); err != nil {
			return err
		}
		const minute = "2006-01-02 15:04 UTC"
		target := url + ", " + r.Since.UTC().Format(minute) + " to " + r.Until.UTC().Format(minute)
		if err := audit.Write(ctx, tx, audit.Entry{Organization: r.Organization, Actor: by, Action: "recovered events", Target: target, At: now}); err != nil {
			return err
		}
		return outbox.Add(ctx, tx, task.WebhookRecover, int64(made.ID), r.Organization, now)
	})
	if pg.Violates(err, "webhook_recoveries_running") {
		return Recovery{}, fault.New(fault.Conflict, "recovery_running", "a recovery of this URL is under way; wait until it is done")
	}
	return made, err
}

// Stop ends the recoveries that the resource has begun and that are under way. What they made due again is sent.
func Stop(ctx context.Context, db *pg.DB, by audit.Actor, managedBy string, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		ended, err := stopRecoveries(ctx, tx, managedBy, now)
		if err != nil {
			return err
		}
		for _, r := range ended {
			entry := audit.Entry{Organization: r.Organization, Actor: by, Action: "stopped recovery of events", Target: r.URL, At: now}
			if err := audit.Write(ctx, tx, entry); err != nil {
				return err
			}
		}
		return nil
	})
}

// Step does one step of the recovery that the task is about, and postpones the task to the
// next. All of a step is one transaction, so that a crash repeats nothing.
func Step(ctx context.Context, db *pg.DB, ref task.Outbox, now time.Time) error {
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		claimed, err := outbox.Hold(ctx, tx, ref, now.Add(recoverHold))
		if err != nil {
			return err
		}
		over, err := step(ctx, tx, id.Recovery(claimed.Subject), now)
		if err != nil {
			return err
		}
		if over {
			return outbox.Done(ctx, tx, ref)
		}
		return outbox.Postpone(ctx, tx, ref, now.Add(recoverPause))
	})
	if errors.Is(err, outbox.ErrLost) {
		return nil
	}
	return err
}

func step(ctx context.Context, tx *pg.Tx, recovery id.Recovery, now time.Time) (over bool, err error) {
	state, err := lockRecovery(ctx, tx, recovery)
	if pg.None(err) {
		return true, nil // it has ended, or its URL was removed
	}
	switch {
	case err != nil:
		return false, err
	case !state.SwitchedOn:
		return true, finishRecovery(ctx, tx, recovery, RecoveryStopped, now)
	case state.Waiting >= recoverAhead:
		return false, nil
	}
	n, err := putBack(ctx, tx, state, now, recoverBatch)
	if err != nil {
		return false, err
	}
	webhook.Wake(tx, state.Organization)
	if n < recoverBatch {
		return true, finishRecovery(ctx, tx, recovery, RecoveryDone, now)
	}
	return false, nil
}
