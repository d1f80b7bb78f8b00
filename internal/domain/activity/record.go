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

// Receipt says what became of reported events.
type Receipt struct {
	Accepted int          // late ones included
	Late     int          // of those: their day is closed, and must be compiled again for them to count
	LateDays []clock.Date // the days of the late ones, in order
	Refused  []Refusal    // the others, in the order of the call
}

// Refusal is one event that was not taken.
type Refusal struct {
	Index int
	Fault *fault.Error
}

// Record takes the events that are right and says of each other one what is wrong with
// it: its kind or time, an organization that there is not, or a user who is no student
// of it. The same call may be made again.
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
	people, place := gather(reports)
	closed, err := readScope(ctx, tx, people)
	if err != nil {
		return err
	}
	rows := make([]row, 0, len(reports))
	late := map[clock.Date]int{}
	for i, r := range reports {
		p := people[place[i]]
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

// person is a user in an organization, as a call names them, and what was found.
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

// gather lists the people that the reports name, each once; place is where each report's is.
func gather(reports []Report) (people []person, place []int) {
	type key struct {
		slug string
		user id.User
	}
	known := make(map[key]int)
	place = make([]int, len(reports))
	for i, r := range reports {
		k := key{r.Organization, r.User}
		at, ok := known[k]
		if !ok {
			at = len(people)
			known[k] = at
			people = append(people, person{slug: r.Organization, user: r.User})
		}
		place[i] = at
	}
	return people, place
}
