package main

import (
	"fmt"
	"slices"
	"time"
)

// Times are how long calls took, sorted.
type times []time.Duration

// sorted takes the durations as they came.
func sorted(all []time.Duration) times {
	slices.Sort(all)
	return all
}

// At is the time that a share of the calls did not exceed; 0 of none.
func (t times) At(share float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return t[min(len(t)-1, int(float64(len(t))*share))]
}

// Last is the longest.
func (t times) Last() time.Duration { return t.At(1) }

// round leaves as many digits as a reader wants.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}

// measured is what a load came to.
type measured struct {
	took  time.Duration
	times times
}

// Rate is how many calls were made a second.
func (m measured) rate() float64 {
	if m.took == 0 {
		return 0
	}
	return float64(len(m.times)) / m.took.Seconds()
}

// repeat measures the call n times, after two that are not counted.
func repeat(n int, call func(i int) (time.Duration, error)) (times, error) {
	var all times
	for i := range n + 2 {
		took, err := call(i)
		if err != nil {
			return nil, err
		}
		if i >= 2 {
			all = append(all, took)
		}
	}
	return sorted(all), nil
}

func (t times) String() string {
	return fmt.Sprintf("p50 %s, p90 %s, p99 %s, max %s", round(t.At(.5)), round(t.At(.9)), round(t.At(.99)), round(t.Last()))
}
