// Package assign gives work to students and tells when it is overdue: the assignment and
// its event are one transaction (contract: POST /assignments/).
package assign

import (
	"context"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Desk is where work is assigned.
type Desk struct {
	DB    *pg.DB
	Clock clock.Clock
	Zone  *time.Location // the platform's: decides today, and when a due date ends
}

// Command is one call of POST /assignments/.
type Command struct {
	Who     student.Who
	Kind    catalog.Kind
	Item    id.Item
	DueDate string // a date, which ends with its day, or a timestamp with an offset; "": none
	Notify  bool
}

// Assign gives the work to the student, or finds it open already; created says which.
// Invalid for a due date that is none or over; NotFound for a student or an item that the
// organization does not have; Conflict (no_access) for a student without access today.
func (d *Desk) Assign(ctx context.Context, org id.Organization, c Command) (shown wire.Assignment, created bool, err error) {
	now := d.Clock()
	due, err := d.due(c.DueDate, now)
	if err != nil {
		return shown, false, err
	}
	a, item, err := d.find(ctx, org, c, clock.DateIn(now, d.Zone))
	if err != nil {
		return shown, false, err
	}
	err = d.DB.InTx(ctx, func(tx *pg.Tx) error {
		made, fresh, err := assignment.Assign(ctx, tx, org, assignment.Draft{User: a.ID, Item: item.ID, Kind: string(item.Kind),
			Source: assignment.ViaAPI, Notify: c.Notify, DueAt: due}, now)
		if err != nil {
			return err
		}
		var event webhook.Event
		shown, event = wire.Assigned(made, a, item, now)
		if created = fresh; !created {
			return nil
		}
		return webhook.Record(ctx, tx, org, now, event)
	})
	return shown, created, err
}

// find reads the student and the work, and asks whether the one may do the other.
func (d *Desk) find(ctx context.Context, org id.Organization, c Command, today clock.Date) (student.Account, catalog.Item, error) {
	a, err := student.Resolve(ctx, d.DB, org, c.Who)
	if err != nil {
		return a, catalog.Item{}, err
	}
	item, err := catalog.Find(ctx, d.DB, org, c.Kind, c.Item)
	if err != nil {
		return a, item, err
	}
	held, err := course.OfStudent(ctx, d.DB, org, a.ID)
	if err != nil {
		return a, item, err
	}
	for _, e := range held {
		if e.HasAccess(today) {
			return a, item, nil
		}
	}
	return a, item, fault.New(fault.Conflict, "no_access",
		"the student has no access to a course today; renew the access with POST /provision/student/ first")
}

// due reads a due date: the last second of a date in the platform's zone, or an instant.
func (d *Desk) due(text string, now time.Time) (*time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if day, wrong := clock.ParseDate(text); wrong == nil {
		at, err = clock.DayStart(day.AddDays(1), d.Zone).Add(-time.Second), nil
	}
	if err != nil || at.Year() > 9998 {
		return nil, fault.Field("due_date", "not_a_date",
			"due_date: send a date such as 2026-12-31, or a timestamp with an offset such as 2026-12-31T18:00:00+00:00")
	}
	if !at.After(now) {
		return nil, fault.Field("due_date", "in_the_past", "due_date: %s is over; send a later one or leave it out", text)
	}
	return &at, nil
}

// batch bounds how many assignments one transaction of a sweep takes.
const batch = 500

// Sweep tells of every assignment whose due date has passed, once, and expires those that
// have been overdue for long. It goes on until nothing is left to do.
func (d *Desk) Sweep(ctx context.Context) error {
	for {
		taken, err := d.sweepSome(ctx)
		if err != nil {
			return err
		}
		expired, err := assignment.Expire(ctx, d.DB, d.Clock(), batch)
		if err != nil {
			return err
		}
		if taken < batch && expired < batch {
			return nil
		}
	}
}

func (d *Desk) sweepSome(ctx context.Context) (taken int, err error) {
	err = d.DB.InTx(ctx, func(tx *pg.Tx) error {
		now := d.Clock()
		var due []assignment.Due
		due, taken, err = assignment.TakeOverdue(ctx, tx, now, clock.DateIn(now, d.Zone), batch)
		if err != nil {
			return err
		}
		for _, of := range due {
			events := make([]webhook.Event, len(of.Listed))
			for i, l := range of.Listed {
				events[i] = webhook.Event{Type: webhook.AssignmentOverdue, User: l.User, Data: wire.NewAssignment(l, now, time.UTC)}
			}
			if err := webhook.Record(ctx, tx, of.Organization, now, events...); err != nil {
				return err
			}
		}
		return nil
	})
	return taken, err
}
