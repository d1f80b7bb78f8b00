package webhook

import (
	"fmt"
	"time"
)

// MaxTries is how often a delivery is tried before it is exhausted (reference: webhooks#delivery-and-retries).
const MaxTries = 12

// SwitchOffAfter is how many failed attempts in a row switch a URL off.
const SwitchOffAfter = 50

// Pause is how long to wait after the given number of failed tries (from 1 on): 1, 2, 4, 8,
// 16, 32 minutes, then 60. ok is false when no try is left.
func Pause(tries int) (pause time.Duration, ok bool) {
	switch {
	case tries >= MaxTries:
		return 0, false
	case tries > 6:
		return time.Hour, true
	}
	return time.Minute << (tries - 1), true
}

// pauseWith lengthens the schedule's pause to what the receiver asked for with Retry-After,
// to twice its length at most. It never shortens it.
func pauseWith(pause, retryAfter time.Duration) time.Duration {
	return max(pause, min(retryAfter, 2*pause))
}

const (
	// ProbeAfter is how many failures in a row start the probing of a URL: one attempt at a
	// time, at least probePause apart. SwitchOffAfter in a row then mean an outage and not
	// one burst.
	ProbeAfter = 5
	probePause = time.Second
)

// MaxAllowance is the most deliveries of one URL that may be in flight. It is below
// SwitchOffAfter - ProbeAfter, so that what is in flight when a receiver dies cannot alone
// switch the URL off.
const (
	MaxAllowance = 40
	minAllowance = 1
)

// Health sums up the outcomes of a URL.
type Health struct {
	// Allowance is how many deliveries may be in flight. A success adds one to it, a failure
	// halves it.
	Allowance   float64
	Failures    int       // in a row
	NextProbeAt time.Time // no attempt before this; zero when the URL is not probed
	LastSuccess time.Time
	LastFailure time.Time
}

// Probing says whether the URL gets only one attempt at a time.
func (h Health) Probing() bool { return h.Failures >= ProbeAfter }

// After adds one outcome of the given time to the health. off is true for exactly the
// outcome that switches the URL off.
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

// offReason is the sentence that the console shows.
func offReason(cause string, at time.Time) string {
	return fmt.Sprintf("%d failed attempts in a row, the last at %s: %s", SwitchOffAfter, at.UTC().Format("2006-01-02 15:04:05 UTC"), Explain(cause))
}
