package activity

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Receipt is the answer to reported events.
type Receipt struct {
	Accepted int          // late ones included
	Late     int          // of the accepted: their day is closed, and they count when it is compiled again
	LateDays []clock.Date // the days of the late ones, in order
	Refused  []Refusal    // the others, in the order of the call
}

// Refusal is one event that was not accepted.
type Refusal struct {
	Index int
	Fault *fault.Error
}

// Record stores the correct events and returns a fault for each other one: a wrong kind or time, an unknown
// organization, or a user who is no student of the organization. The same call may be repeated.
func Record(ctx context.Context, db *pg.DB, reports []Report, now time.Time) (Receipt, error) {
	receipt := Receipt{}
	sound := make([]Report, 0, len(reports))
	for _, r := range reports {
		if f := r.check(now); f != nil {
			receipt.refuse(r, f)
			continue
		}
		sound = append(sound, r)
	}
	checked := receipt
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		receipt = checked // the function may run again
		receipt.Refused = slices.Clone(checked.Refused)
		return receipt.store(ctx, tx, sound)
	})
	slices.SortFunc(receipt.Refused, func(a, b Refusal) int { return cmp.Compare(a.Index, b.Index) })
	return receipt, err
}

func (c *Receipt) refuse(r Report, f *fault.Error) {
	c.Refused = append(c.Refused, Refusal{r.Index, f})
}

func (c *Receipt) store(ctx context.Context, tx *pg.Tx, reports []Report) error {
	if len(reports) == 0 {
		return nil
	}
	people, index := gather(reports)
	closed, err := readScope(ctx, tx, people)
	if err != nil {
		return err
	}
	rows := make([]row, 0, len(reports))
	late := map[clock.Date]int{}
	for i, r := range reports {
		p := people[index[i]]
		if f := p.refusal(); f != nil {
			c.refuse(r, f)
			continue
		}
		rows = append(rows, row{p.org, r.User, r.Event})
		if day := clock.DateIn(r.At, Zone); !day.After(closed) {
			late[day]++
		}
	}
	c.Accepted = len(rows)
	for day, n := range late {
		c.Late += n
		c.LateDays = append(c.LateDays, day)
	}
	slices.SortFunc(c.LateDays, clock.Date.Compare)
	return copyEvents(ctx, tx, rows)
}

// person is a user in an organization, as a call names them, and what the database has of both.
type person struct {
	slug    string
	user    id.User
	org     id.Organization // 0: there is none
	student bool
}

func (p person) refusal() *fault.Error {
	switch {
	case p.org == 0:
		return fault.Field("organization", "not_found", "organization: there is no organization %q", p.slug)
	case !p.student:
		return fault.Field("user_id", "not_a_student", "user_id: user %d is no student of the organization %q", p.user, p.slug)
	}
	return nil
}

// gather returns the people that the reports name, each once, and for each report the index of its person.
func gather(reports []Report) (people []person, index []int) {
	type key struct {
		slug string
		user id.User
	}
	known := make(map[key]int)
	index = make([]int, len(reports))
	for i, r := range reports {
		k := key{r.Organization, r.User}
		at, ok := known[k]
		if !ok {
			at = len(people)
			known[k] = at
			people = append(people, person{slug: r.Organization, user: r.User})
		}
		index[i] = at
	}
	return people, index
}
