package webhook

import (
	"fmt"
	"time"
)

// MaxTries is how often a delivery is tried before it is exhausted (reference: webhooks#delivery-and-retries).
const MaxTries = 12

// SwitchOffAfter is how many failed attempts in a row switch a URL off.
const SwitchOffAfter = 50

// Pause is the wait after the given number of failed tries (1 and up): 1, 2, 4, 8, 16, 32
// minutes, then 60. ok is false when no try is left.
func Pause(tries int) (pause time.Duration, ok bool) {
	switch {
	case tries >= MaxTries:
		return 0, false
	case tries > 6:
		return time.Hour, true
	}
	return time.Minute << (tries - 1), true
}

// pauseWith lengthens the schedule's pause to what the receiver asked for with
// Retry-After, up to twice the step; it never shortens it.
func pauseWith(pause, retryAfter time.Duration) time.Duration {
	return max(pause, min(retryAfter, 2*pause))
}

// Probing: after this many failures in a row a URL gets one attempt at a time, at least
// probePause apart, so that SwitchOffAfter in a row means an outage and not one burst.
const (
	// ProbeAfter is how many failures in a row put a URL on probation.
	ProbeAfter = 5
	probePause = time.Second
)

// The allowance is how many deliveries of a URL may be in flight. It grows by one a
// success and halves a failure. MaxAllowance stays below SwitchOffAfter - ProbeAfter, so
// that the attempts in flight when a receiver dies cannot switch it off on their own.
const (
	minAllowance = 1
	// MaxAllowance is the most that are in flight to one URL.
	MaxAllowance = 40
)

// Health is what the outcomes of a URL add up to.
type Health struct {
	Failures    int // in a row
	Allowance   float64
	NextProbeAt time.Time // no attempt before it while probing; zero when not
	LastSuccess time.Time
	LastFailure time.Time
}

// Probing says whether the URL gets one attempt at a time.
func (h Health) Probing() bool { return h.Failures >= ProbeAfter }

// After folds one outcome that came at the given time into the health. off is true when
// this very outcome is the one that switches the URL off.
func (h Health) After(success bool, at time.Time) (next Health, off bool) {
	if success {
		h.Failures, h.NextProbeAt, h.LastSuccess = 0, time.Time{}, later(h.LastSuccess, at)
		h.Allowance = min(h.Allowance+1, MaxAllowance)
		return h, false
	}
	h.Failures++
	h.LastFailure = later(h.LastFailure, at)
	h.Allowance = max(h.Allowance/2, minAllowance)
	if h.Probing() {
		h.NextProbeAt = later(h.NextProbeAt, at.Add(probePause))
	}
	return h, h.Failures == SwitchOffAfter
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// offReason is the sentence the webhook page shows.
func offReason(cause string, at time.Time) string {
	return fmt.Sprintf("%d failed attempts in a row, the last at %s: %s", SwitchOffAfter, at.UTC().Format("2006-01-02 15:04:05 UTC"), Explain(cause))
}
