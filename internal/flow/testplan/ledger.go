package testplan

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// ledger gathers what the plans of one step write, and what they share of the reading.
type ledger struct {
	*Office
	tx    *pg.Tx
	now   time.Time
	today clock.Date

	batch   pg.Batch
	looked  []id.Plan // plans that stay as they are
	lookAt  []time.Time
	events  []webhook.Event // of organization eventsOf
	eventOf id.Organization

	organizations map[id.Organization]org.Organization
	accounts      map[id.User]student.Account
	items         map[itemKey]catalog.Item
}

type itemKey struct {
	org  id.Organization
	item id.Item
}

func (l *ledger) looks(plan id.Plan, at time.Time) {
	l.looked, l.lookAt = append(l.looked, plan), append(l.lookAt, at)
}

// close writes what was gathered.
func (l *ledger) close(ctx context.Context) error {
	if err := l.tell(ctx); err != nil {
		return err
	}
	if len(l.looked) > 0 {
		plan.Look(&l.batch, l.looked, l.lookAt)
	}
	return l.batch.Send(ctx, l.tx)
}

// event tells of a change; those of one organization leave together.
func (l *ledger) event(ctx context.Context, o id.Organization, e webhook.Event) error {
	if l.eventOf != o {
		if err := l.tell(ctx); err != nil {
			return err
		}
	}
	l.eventOf, l.events = o, append(l.events, e)
	return nil
}

func (l *ledger) tell(ctx context.Context) error {
	events := l.events
	l.events = nil
	return webhook.Record(ctx, l.tx, l.eventOf, l.now, events...)
}

func (l *ledger) organization(ctx context.Context, o id.Organization) (org.Organization, error) {
	return remembered(&l.organizations, o, func() (org.Organization, error) { return org.Read(ctx, l.tx, o) })
}

func (l *ledger) account(ctx context.Context, user id.User) (student.Account, error) {
	return remembered(&l.accounts, user, func() (student.Account, error) { return student.Find(ctx, l.tx, user) })
}

func (l *ledger) item(ctx context.Context, o id.Organization, item id.Item) (catalog.Item, error) {
	return remembered(&l.items, itemKey{o, item}, func() (catalog.Item, error) {
		found, err := catalog.Load(ctx, l.tx, o, []id.Item{item})
		return found[item], err
	})
}

func remembered[K comparable, V any](all *map[K]V, key K, read func() (V, error)) (V, error) {
	if v, ok := (*all)[key]; ok {
		return v, nil
	}
	v, err := read()
	if err == nil {
		if *all == nil {
			*all = map[K]V{}
		}
		(*all)[key] = v
	}
	return v, err
}

// assign gives the student a paper until the end of its due day, and tells of it.
func (j *job) assign(ctx context.Context, t plan.Test, zone *time.Location) (assignment.Assignment, catalog.Item, error) {
	due := plan.DueAt(t.DueOn, zone)
	item, err := j.item(ctx, j.plan.Organization, id.Item(t.Paper))
	if err != nil {
		return assignment.Assignment{}, item, err
	}
	a, err := j.account(ctx, j.plan.User)
	if err != nil {
		return assignment.Assignment{}, item, err
	}
	made, created, err := assignment.Assign(ctx, j.tx, j.plan.Organization, assignment.Draft{User: j.plan.User, Item: item.ID,
		Kind: string(item.Kind), Source: assignment.ViaPlan, Notify: true, DueAt: &due}, j.now)
	if err != nil || !created {
		return made, item, err
	}
	shown := wire.NewAssignment(assignment.Listed{Assignment: made, Email: string(a.Email), FirstName: a.FirstName, LastName: a.LastName,
		ItemTitle: item.Title, ItemType: item.Type}, j.now, time.UTC)
	return made, item, j.event(ctx, j.plan.Organization, webhook.Event{Type: webhook.AssignmentCreated, User: a.ID, Data: shown})
}

func (j *job) openTest(ctx context.Context, a plan.Action, zone *time.Location) error {
	made, item, err := j.assign(ctx, a.Test, zone)
	if err != nil {
		return err
	}
	j.slot(a.Slot).Assignment = made.ID
	j.keep(a, "test_opened")
	return j.tellOpen(ctx, a.Test, item, plan.DueAt(a.Test.DueOn, zone))
}

func (j *job) drill(ctx context.Context, a plan.Action, zone *time.Location) error {
	made, item, err := j.assign(ctx, a.Test, zone)
	if err != nil {
		return err
	}
	plan.SaveDrill(&j.batch, j.plan.ID, a.Slot, a.Test, made.ID)
	j.note("drill", map[string]any{"slot": a.Slot, "section": a.Test.Section, "title": item.Title, "due_on": a.Test.DueOn})
	return nil
}

// takeBack ends an assignment that was not begun.
func (j *job) takeBack(ctx context.Context, given id.Assignment) error {
	found, err := assignment.Lock(ctx, j.tx, j.plan.Organization, []id.Assignment{given})
	if err != nil {
		return err
	}
	a, ok := found[given]
	if !ok || a.Status != assignment.Pending {
		return nil
	}
	a.Status = assignment.Expired
	return assignment.Save(ctx, j.tx, j.plan.Organization, []assignment.Assignment{a}, j.now)
}

func (j *job) redate(ctx context.Context, given id.Assignment, due time.Time) error {
	return assignment.Redate(ctx, j.tx, j.plan.Organization, given, due, j.now)
}
