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

// A receiver that stumbles once must not be switched off, however many requests it had in flight.
// So, in every run of failures:
//
//   - Failures of attempts that were handed out before the first failure was recorded count
//     MaxEarly together.
//   - Each failure of an attempt that was handed out later counts. At most maxTroubled such attempts
//     are in flight until ProbeAfter failures have been counted, and then one, probePause after
//     the last.
//
// A burst, however large, thus counts MaxEarly + maxTroubled at most, which is less than
// SwitchOffAfter: what switches a URL off is a failed probe. And fifty failures one after the other
// are fifty.
const (
	// ProbeAfter is how many failures in a row start the probing of a URL: one attempt at a
	// time, at least probePause apart.
	ProbeAfter = 5
	probePause = time.Second
	// MaxEarly and maxTroubled: see above.
	MaxEarly    = 40
	maxTroubled = 8
)

// MaxAllowance is the most deliveries of one URL that may be in flight. A receiver that answers
// in 100 ms then takes 2,560 a second.
const (
	MaxAllowance = 256
	minAllowance = 1
)

// Health sums up the outcomes of a URL.
type Health struct {
	// Allowance is how many deliveries may be in flight. A success adds one to it, a failure
	// halves it.
	Allowance   float64
	Failures    int       // in a row
	Runs        int       // of failures, that began so far
	Early       int       // of Failures: attempts handed out before the run was known
	NextProbeAt time.Time // no attempt before this; zero when the URL is not probed
	LastSuccess time.Time
	LastFailure time.Time
}

// Probing says whether the URL gets only one attempt at a time.
func (h Health) Probing() bool { return h.Failures >= ProbeAfter }

// Limit is how many deliveries may be in flight now.
func (h Health) Limit() int {
	switch {
	case h.Probing():
		return 1
	case h.Failures > 0:
		return min(int(h.Allowance), maxTroubled)
	}
	return int(h.Allowance)
}

// Run is what a lease that is made now carries: the number of the run of failures that is known, 0 for
// none.
func (h Health) Run() int {
	if h.Failures == 0 {
		return 0
	}
	return h.Runs
}

// After adds one outcome of the given time to the health; run is what Run was when the attempt was
// handed out. off is true for exactly the outcome that switches the URL off.
func (h Health) After(success bool, at time.Time, run int) (next Health, off bool) {
	if success {
		h.Failures, h.Early, h.NextProbeAt, h.LastSuccess = 0, 0, time.Time{}, later(h.LastSuccess, at)
		h.Allowance = min(h.Allowance+1, MaxAllowance)
		return h, false
	}
	if h.Failures == 0 {
		h.Runs++
	}
	h.LastFailure = later(h.LastFailure, at)
	h.Allowance = max(h.Allowance/2, minAllowance)
	if run != h.Runs {
		if h.Early == MaxEarly {
			return h, false
		}
		h.Early++
	}
	h.Failures++
	if h.Probing() {
		h.NextProbeAt = later(h.NextProbeAt, at.Add(probePause))
	}
	return h, h.Failures == SwitchOffAfter
}

// probed adds a failure to the health that does not count.
func (h Health) probed(at time.Time) Health {
	h.LastFailure, h.NextProbeAt = later(h.LastFailure, at), later(h.NextProbeAt, at.Add(probePause))
	return h
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
