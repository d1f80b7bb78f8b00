package org

import "time"

// recent remembers values for one to two periods, at most twice so many. What it does costs the same
// however many there are.
type recent[V any] struct {
	period time.Duration
	most   int

	young, old map[string]V
	since      time.Time
}

func (r *recent[V]) get(key string, now time.Time) (v V, ok bool) {
	r.turn(now)
	if v, ok = r.young[key]; !ok {
		v, ok = r.old[key]
	}
	return v, ok
}

func (r *recent[V]) put(key string, v V, now time.Time) {
	r.turn(now)
	if _, ok := r.young[key]; !ok && len(r.young) >= r.most {
		r.rotate(now)
	}
	r.young[key] = v
}

// turn forgets what is too old.
func (r *recent[V]) turn(now time.Time) {
	switch age := now.Sub(r.since); {
	case r.young == nil || age >= 2*r.period:
		r.young, r.old, r.since = map[string]V{}, nil, now
	case age >= r.period:
		r.rotate(now)
	}
}

func (r *recent[V]) rotate(now time.Time) { r.young, r.old, r.since = map[string]V{}, r.young, now }
