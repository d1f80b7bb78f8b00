package dispatch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

// First attempts of one student's events to one URL are made in the order of the events. Those that
// are found together go into one lease, whose sender makes them one after the other. Those that are
// found later are held back while that lease is under way: the Picker remembers whose it holds. As events
// are committed in the order of their sequences, whoever finds one can find all that come before it.

const (
	// A URL with something that is held back is looked at again after a pause, which doubles from
	// the first to the last while nothing can be leased.
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// order is what a Picker remembers of first attempts to a URL that are under way.
type order struct {
	known    bool // what another process leased is among them
	students map[id.Delivery]id.User
	pause    time.Duration // the last one before another look; zero when nothing was held back
}

// keep forgets what is not leased any more.
func (o *order) keep(leased []id.Delivery) {
	if len(o.students) == 0 {
		return
	}
	still := make(map[id.Delivery]id.User, len(o.students))
	for _, d := range leased {
		if s := o.students[d]; s != 0 {
			still[d] = s
		}
	}
	o.students = still
}

func (o *order) note(d id.Delivery, student id.User) {
	if student == 0 {
		return
	}
	if o.students == nil {
		o.students = map[id.Delivery]id.User{}
	}
	o.students[d] = student
}

// busy are the students who have a first attempt under way.
func (o *order) busy() map[id.User]bool {
	busy := make(map[id.User]bool, len(o.students))
	for _, s := range o.students {
		busy[s] = true
	}
	return busy
}

// inSequence are the rows before and found with each student's in the order of the events.
func inSequence(before, found []picked) []picked {
	rows := slices.Concat(before, found)
	places := map[id.User][]int{}
	for i, r := range rows {
		if r.Student != 0 {
			places[r.Student] = append(places[r.Student], i)
		}
	}
	for _, at := range places {
		own := make([]picked, len(at))
		for n, i := range at {
			own[n] = rows[i]
		}
		slices.SortStableFunc(own, func(a, b picked) int { return cmp.Compare(a.Sequence, b.Sequence) })
		for n, i := range at {
			rows[i] = own[n]
		}
	}
	return rows
}

// divide takes from rows those that may be leased now: the given number at most, of a student who is not busy, and no
// more of one than a lease holds. Who has more is busy from then on.
func divide(rows []picked, busy map[id.User]bool, most int) (free, held []picked) {
	taken := map[id.User]int{}
	for _, r := range rows {
		switch {
		case r.Student == 0 && len(free) < most:
			free = append(free, r)
		case r.Student != 0 && !busy[r.Student] && len(free) < most && taken[r.Student] < maxLease:
			taken[r.Student]++
			free = append(free, r)
		default:
			held = append(held, r)
			if r.Student != 0 {
				busy[r.Student] = true
			}
		}
	}
	return free, held
}

// parts puts rows into parts of about size, each student's into one.
func parts(rows []picked, size int) (parts [][]picked) {
	var groups [][]picked
	of := map[id.User]int{} // index of the student's group
	for _, r := range rows {
		i, known := of[r.Student]
		if r.Student == 0 || !known {
			i = len(groups)
			of[r.Student], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	var part []picked
	for _, g := range groups {
		if len(part) > 0 && (len(part) >= size || len(part)+len(g) > maxLease) {
			parts, part = append(parts, part), nil
		}
		part = append(part, g...)
	}
	if len(part) > 0 {
		parts = append(parts, part)
	}
	return parts
}

// learn reads whose first attempts others have leased who led the shards of these URLs before.
func (p *Picker) learn(ctx context.Context, states []state) error {
	leased := 0
	for _, s := range states {
		leased += len(s.Leased)
	}
	if leased > 0 {
		found, err := selectStudents(ctx, p.db, states)
		if err != nil {
			return err
		}
		for _, f := range found {
			p.url(f.Endpoint).order.note(f.Delivery, f.Student)
		}
	}
	for _, s := range states {
		p.url(s.Endpoint).order.known = true
	}
	return nil
}

// Next is how long after now the Picker wants another Pass at the latest; limit when it has no wish before.
func (p *Picker) Next(now time.Time, limit time.Duration) time.Duration {
	if len(p.later) == 0 {
		return limit
	}
	return max(time.Millisecond, min(limit, p.later[0].at.Sub(now)))
}
