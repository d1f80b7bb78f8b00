// Package assign gives work to students and takes it back, and sends the events of overdue work. An assignment and its event
// are one transaction (reference: assignments#assign-work).
package assign

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/gather"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service assigns work. It must not be copied.
type Service struct {
	DB        *pg.DB
	Mail      email.Service
	Clock     clock.Clock
	Zone      *time.Location // the platform's; decides today, and when a due date ends
	PublicURL string         // the base of every link, without a slash at its end

	once  sync.Once
	calls *gather.Group[id.Organization, gathered, given]
}

// Command is one call of POST /assignments/.
type Command struct {
	Who     student.Ref
	Kind    catalog.Kind
	Item    id.Item
	DueDate string         // a date, which ends with its day, or a timestamp; "": none
	Zone    *time.Location // of a timestamp without an offset; nil: it needs one
	Notify  bool           // mail the student, if the work is a test

	// By is the person of the staff who gives the work; the zero Actor: an API key does, which leaves no entry in the audit log.
	By audit.Actor
}

// Assign gives the work to the student and returns it with created true. If the student has the same work
// open, it returns that assignment unchanged, whatever has become of the due date or the access since.
// Invalid for a due date that cannot be read or has passed; NotFound for a student or an item that the
// organization does not have; Conflict (no_access) for a student without access today.
func (d *Service) Assign(ctx context.Context, o org.Organization, c Command) (shown wire.Assignment, created bool, err error) {
	now := d.Clock()
	due, err := d.due(c)
	if err != nil {
		return shown, false, err
	}
	var over error // decided only once no such work is open
	if due != nil && !due.After(now) {
		over = fault.Field("due_date", "in_the_past", "due_date: %s is over; send a later one or leave it out", strings.TrimSpace(c.DueDate))
	}
	a, item, err := d.find(ctx, o.ID, c)
	if over != nil && fault.KindOf(err) == fault.NotFound {
		return shown, false, over
	}
	if err != nil {
		return shown, false, err
	}
	open, err := assignment.Open(ctx, d.DB, o.ID, a.ID, item.ID)
	if err == nil {
		shown, _ = notify.Assigned(open, a, item, now)
		return shown, false, nil
	}
	if fault.KindOf(err) != fault.NotFound {
		return shown, false, err
	}
	if over != nil {
		return shown, false, over
	}
	if err := d.checkAccess(ctx, o.ID, a.ID, clock.DateIn(now, d.Zone)); err != nil {
		return shown, false, err
	}
	g := gathered{org: o.ID, account: a, item: item, by: c.By, traceparent: obs.Traceparent(ctx), draft: assignment.Draft{User: a.ID, Item: item.ID,
		Kind: string(item.Kind), Source: assignment.ViaAPI, Notify: c.Notify, DueAt: due}}
	if c.By.Kind != "" {
		g.draft.Source = assignment.ViaApp
	}
	if c.Notify && item.Kind == catalog.Test { // made before the transaction, in which others wait for the organization's next position
		m, err := d.message(ctx, o, a, item, due)
		if err != nil {
			return shown, false, err
		}
		g.mail = &m
	}
	d.once.Do(func() { d.calls = gather.New[id.Organization](d.together) })
	made, err := d.calls.Do(ctx, o.ID, g)
	return made.shown, made.created, err
}

// Withdraw takes back work that the student has not begun. withdrawn is false for work that has expired
// already. ref is the assignment's id on the wire. NotFound outside the organization; Conflict as for
// assignment.Withdraw. There is no event of it.
func (d *Service) Withdraw(ctx context.Context, by audit.Actor, in id.Organization, ref string) (shown wire.Assignment, withdrawn bool, err error) {
	kind, which, err := assignment.SplitRef(ref)
	if err != nil {
		return shown, false, err
	}
	now := d.Clock()
	err = d.DB.InTx(ctx, func(tx *pg.Tx) error {
		locked, err := assignment.Lock(ctx, tx, in, []id.Assignment{which})
		if err != nil {
			return err
		}
		a, ok := locked[which]
		if !ok || a.Kind != kind {
			return assignment.ErrNone(ref)
		}
		if a, withdrawn, err = a.Withdraw(); err != nil {
			return err
		}
		l, err := assignment.Show(ctx, tx, in, which)
		if err != nil {
			return err
		}
		l.Assignment = a
		shown = wire.NewAssignment(l, now, time.UTC)
		if !withdrawn {
			return nil
		}
		if err := assignment.Save(ctx, tx, in, []assignment.Assignment{a}, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: in, Actor: by, Action: "withdrew assignment",
			Target: ref + " of " + l.Email, At: now})
	})
	return shown, withdrawn, err
}

// message is the mail about an assigned test.
func (d *Service) message(ctx context.Context, o org.Organization, a student.Account, item catalog.Item, due *time.Time) (email.Message, error) {
	browser, err := plan.SafeExamBrowser(ctx, d.DB, o.ID, a.ID)
	about := email.TestAssigned{
		FirstName:    a.FirstName,
		LastName:     a.LastName,
		Organization: o.Name,
		Exam:         catalog.TypeLabel(item.Type),
		Title:        item.Title,
		TimeZone:     d.Zone.String(),
		SafeBrowser:  browser,
		LoginURL:     wire.SignInURL(d.PublicURL, o.Slug),
	}
	if due != nil {
		about.Due = *due
	}
	return email.Message{Organization: o.ID, User: a.ID, Recipient: string(a.Email), Content: about}, err
}

// find reads the student and the item.
func (d *Service) find(ctx context.Context, org id.Organization, c Command) (student.Account, catalog.Item, error) {
	a, err := student.Resolve(ctx, d.DB, org, c.Who)
	if err != nil {
		return a, catalog.Item{}, err
	}
	item, err := catalog.Find(ctx, d.DB, org, c.Kind, c.Item)
	return a, item, err
}

// checkAccess is Conflict (no_access) for a student without access today.
func (d *Service) checkAccess(ctx context.Context, org id.Organization, user id.User, today clock.Date) error {
	held, err := course.OfStudent(ctx, d.DB, org, user)
	if err != nil {
		return err
	}
	for _, e := range held {
		if e.HasAccess(today) {
			return nil
		}
	}
	return fault.New(fault.Conflict, "no_access",
		"the student has no access to a course today; renew the access with POST /provision/student/ first")
}

// due reads a due date: a date, which ends with its last second in the platform's zone, or an instant.
func (d *Service) due(c Command) (*time.Time, error) {
	text := strings.TrimSpace(c.DueDate)
	if text == "" {
		return nil, nil
	}
	at, err := clock.ParseInstant(text, c.Zone)
	if day, wrong := clock.ParseDate(text); wrong == nil {
		at, err = clock.DayStart(day.AddDays(1), d.Zone).Add(-time.Second), nil
	}
	if err != nil || at.Year() > 9998 {
		return nil, fault.Field("due_date", "not_a_date",
			"due_date: send a date such as 2026-12-31, or a timestamp such as 2026-12-31T18:00:00+00:00; its offset may be left out where tz is sent")
	}
	return &at, nil
}

// batch limits how many assignments one transaction of a sweep takes.
const batch = 500

// Sweep sends the event of every assignment whose due date has passed, once, and expires those that are
// overdue for assignment.ExpireAfter. It goes on until nothing is left to do.
func (d *Service) Sweep(ctx context.Context) error {
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

func (d *Service) sweepSome(ctx context.Context) (taken int, err error) {
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
