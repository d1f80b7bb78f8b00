package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Settle records a group of outcomes in the caller's transaction: the attempts, what
// becomes of their deliveries, and the health of their URLs. An attempt that is recorded
// already changes nothing, so a task that Redis or a crash brought twice counts once. The
// failure that completes SwitchOffAfter in a row switches its URL off in this same
// transaction.
func Settle(ctx context.Context, tx *pg.Tx, outcomes []Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	// Endpoints are locked in one order by everybody, and outcomes fold in the order in
	// which the attempts ended.
	slices.SortStableFunc(outcomes, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), a.at().Compare(b.at()))
	})
	healths, err := lockHealth(ctx, tx, endpointsOf(outcomes))
	if err != nil {
		return fmt.Errorf("locking health: %w", err)
	}
	outcomes = once(outcomes)
	known, err := insertAttempts(ctx, tx, outcomes)
	if err != nil {
		return fmt.Errorf("recording attempts: %w", err)
	}
	fresh := slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return !known[o.key()] })
	offs := fold(healths, fresh)
	if err := updateSettled(ctx, tx, healths, fresh); err != nil {
		return fmt.Errorf("settling deliveries: %w", err)
	}
	for _, off := range offs {
		if err := switchOff(ctx, tx, off); err != nil {
			return fmt.Errorf("switching off: %w", err)
		}
	}
	for _, o := range outcomes {
		Wake(tx, o.Organization)
	}
	return nil
}

func endpointsOf(outcomes []Outcome) []int64 {
	ids := make([]int64, 0, len(outcomes))
	for _, o := range outcomes {
		ids = append(ids, int64(o.Endpoint))
	}
	return slices.Compact(ids)
}

// attemptKey is an attempt's identity: what makes Settle idempotent.
type attemptKey struct {
	delivery id.Delivery
	number   int
}

func (o Outcome) key() attemptKey { return attemptKey{o.Delivery, o.Number} }

// off is a URL that has just been switched off.
type off struct {
	endpoint     id.Endpoint
	organization id.Organization
	at           time.Time
	reason       string
}

// once leaves out repeats of an attempt: two tasks may have made it at the same time while
// PostgreSQL was away, and end up in one group.
func once(outcomes []Outcome) []Outcome {
	seen := make(map[attemptKey]bool, len(outcomes))
	return slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool {
		repeated := seen[o.key()]
		seen[o.key()] = true
		return repeated
	})
}

// fold applies fresh outcomes to the healths, and tells which URLs that switches off. A
// ping that fails says nothing about the run of failures, nor does what our own proxy kept
// from leaving; a ping that arrives ends it. An endpoint without a health row was removed.
func fold(healths map[id.Endpoint]*Health, fresh []Outcome) []off {
	var offs []off
	for _, o := range fresh {
		h := healths[o.Endpoint]
		if h == nil || (o.Ping && o.Verdict != Delivered) || o.Cause == ProxyAway {
			continue
		}
		next, isOff := h.After(o.Verdict == Delivered, o.at())
		*h = next
		if isOff {
			offs = append(offs, off{o.Endpoint, o.Organization, o.at(), offReason(o.Cause, o.at())})
		}
	}
	return offs
}

// switchOff turns the URL off and owes the task that marks its waiting deliveries as
// skipped.
func switchOff(ctx context.Context, tx *pg.Tx, o off) error {
	changed, err := updateOff(ctx, tx, o)
	if err != nil || !changed {
		return err
	}
	wakeEndpoint(tx, o.endpoint)
	return outbox.Add(ctx, tx, task.WebhookSkip, int64(o.endpoint), o.organization, o.at)
}

// Skip marks the waiting deliveries of a switched-off URL as skipped, a batch a
// statement, as long as it is off. Skipped deliveries stay listed and can be recovered.
func Skip(ctx context.Context, q pg.Querier, endpoint id.Endpoint, now time.Time) error {
	for {
		n, err := skipSome(ctx, q, endpoint, now, cancelBatch)
		if err != nil || n < cancelBatch {
			return err
		}
	}
}
