package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Settle records outcomes in the caller's transaction: the attempts, what becomes of their
// deliveries, and the health of their URLs. It gives up the leases that they name. An attempt
// that is recorded already changes nothing, so a task that runs twice counts once. The last of
// SwitchOffAfter failures in a row switches its URL off, in the same transaction.
func Settle(ctx context.Context, tx *pg.Tx, outcomes []Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	// All callers lock endpoints in the same order. Outcomes count in the order in which the
	// attempts ended.
	slices.SortStableFunc(outcomes, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), a.at().Compare(b.at()))
	})
	endpoints := slices.Compact(each(outcomes, func(o Outcome) id.Endpoint { return o.Endpoint }))
	outcomes = once(outcomes)
	healths := make(map[id.Endpoint]*Health, len(endpoints))
	known := make(map[attemptKey]bool, len(outcomes))
	var first, second pgx.Batch
	// The lock comes first, so that of two callers with the same outcome the later one finds it
	// recorded.
	queueLockHealth(&first, endpoints, healths)
	if err := queueOutcomes(&first, outcomes, known); err != nil {
		return fmt.Errorf("recording attempts: %w", err)
	}
	if err := tx.SendBatch(ctx, &first).Close(); err != nil {
		return fmt.Errorf("recording attempts: %w", err)
	}
	fresh := slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return !known[o.key()] })
	offs := fold(healths, fresh)
	queueHealths(&second, healths)
	queueHours(&second, fresh)
	queueEndOfLeases(&second, outcomes)
	if err := tx.SendBatch(ctx, &second).Close(); err != nil {
		return fmt.Errorf("recording health: %w", err)
	}
	for _, off := range offs {
		if err := switchOff(ctx, tx, off); err != nil {
			return fmt.Errorf("switching off: %w", err)
		}
	}
	woken := map[id.Organization]bool{}
	for _, o := range outcomes {
		ends := o.More && o.Lease != ([16]byte{})
		if (ends || o.Verdict != Delivered) && !woken[o.Organization] {
			woken[o.Organization] = true
			Wake(tx, o.Organization)
		}
	}
	return nil
}

// attemptKey identifies an attempt, which makes Settle idempotent.
type attemptKey struct {
	Delivery id.Delivery
	Number   int
}

func (o Outcome) key() attemptKey { return attemptKey{o.Delivery, o.Number} }

// off is a URL that has just been switched off.
type off struct {
	endpoint     id.Endpoint
	organization id.Organization
	at           time.Time
	reason       string
}

// once removes repeats of an attempt: two tasks may have made it at the same time while
// PostgreSQL was away, and have reported it in one group.
func once(outcomes []Outcome) []Outcome {
	seen := make(map[attemptKey]bool, len(outcomes))
	return slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool {
		repeated := seen[o.key()]
		seen[o.key()] = true
		return repeated
	})
}

// fold adds fresh outcomes to the healths, and returns the URLs that this switches off. A
// failed ping does not count, nor does ProxyAway; a ping that was delivered counts as any
// success. Refusals while a secret replaces another slow a URL down, and do not switch it off. An
// endpoint without health has been removed.
func fold(healths map[id.Endpoint]*Health, fresh []Outcome) []off {
	var offs []off
	for _, o := range fresh {
		h := healths[o.Endpoint]
		if h == nil || (o.Ping && o.Verdict != Delivered) || o.Cause == ProxyAway {
			continue
		}
		if o.Overlap && refused(o.Status) && h.Probing() {
			*h = h.probed(o.at())
			continue
		}
		next, isOff := h.After(o.Verdict == Delivered, o.at(), o.Run)
		*h = next
		if isOff {
			offs = append(offs, off{o.Endpoint, o.Organization, o.at(), offReason(o.Cause, o.at())})
		}
	}
	return offs
}

// switchOff switches the URL off and adds the task that skips its pending deliveries.
func switchOff(ctx context.Context, tx *pg.Tx, o off) error {
	url, err := updateOff(ctx, tx, o)
	if pg.None(err) {
		return nil // it is off already
	} else if err != nil {
		return err
	}
	wakeEndpoint(tx, o.endpoint)
	entry := audit.Entry{Organization: o.organization, Actor: audit.Scheduled, Action: "switched off webhook URL", Target: url, At: o.at}
	if err := audit.Write(ctx, tx, entry); err != nil {
		return err
	}
	return outbox.Add(ctx, tx, task.WebhookSkip, int64(o.endpoint), o.organization, o.at)
}
