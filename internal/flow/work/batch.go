package work

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// batch holds the records of one organization in one transaction.
type batch struct {
	*Service
	org      id.Organization
	now      time.Time
	targets  []target
	outcomes []Outcome // of all records of the call

	// read from the database, and then updated by each record
	assignments map[id.Assignment]assignment.Assignment
	results     map[string]result.Result
	people      map[id.User]result.Person
	items       map[id.Item]catalog.Item

	// decided
	was   map[string]result.Result // the changed results as they were read
	order []string                 // the refs of the changed results, in the order of their last record
	moved map[id.Assignment]bool
}

// read locks what the records can change: assignments first and then results, each in the order that all
// transactions use.
func (b *batch) read(ctx context.Context, tx *pg.Tx) (err error) {
	named := map[id.Assignment]bool{}
	for _, t := range b.targets {
		if t.assignment != 0 {
			named[t.assignment] = true
		}
	}
	if b.assignments, err = assignment.Lock(ctx, tx, b.org, slices.Sorted(maps.Keys(named))); err != nil {
		return err
	}
	refs := make([]string, len(b.targets))
	for i := range b.targets {
		t := &b.targets[i]
		if a, ok := b.assignments[t.assignment]; ok && t.Kind != catalog.Test {
			t.assume(a)
		}
		refs[i] = t.ref
	}
	if b.results, err = result.Lock(ctx, tx, b.org, refs); err != nil {
		return err
	}
	if err := b.readKnown(ctx, tx); err != nil {
		return err
	}
	users, items := map[id.User]bool{}, map[id.Item]bool{}
	for i := range b.targets {
		t := &b.targets[i]
		t.inherit(b.results[t.ref])
		users[t.User], items[t.Item] = true, true
	}
	today := clock.DateIn(b.now, b.Zone)
	if b.people, err = result.People(ctx, tx, b.org, slices.Sorted(maps.Keys(users)), today); err != nil {
		return err
	}
	b.items, err = catalog.Load(ctx, tx, b.org, slices.Sorted(maps.Keys(items)))
	return err
}

// readKnown locks the assignments of known results whose records do not name them.
func (b *batch) readKnown(ctx context.Context, tx *pg.Tx) error {
	more := map[id.Assignment]bool{}
	for _, r := range b.results {
		if _, ok := b.assignments[r.Assignment]; !ok && r.Assignment != 0 {
			more[r.Assignment] = true
		}
	}
	found, err := assignment.Lock(ctx, tx, b.org, slices.Sorted(maps.Keys(more)))
	maps.Copy(b.assignments, found)
	return err
}

// assume fills in what the assignment of a quiz or an assessment says.
func (t *target) assume(a assignment.Assignment) {
	t.Item = a.Item
	if t.User == 0 {
		t.User = a.User
	}
	t.ref = t.Record.ref(a.ID)
}

// inherit fills in what an earlier record said.
func (t *target) inherit(r result.Result) {
	if t.User == 0 {
		t.User = r.User
	}
	if t.Item == 0 {
		t.Item = r.Item
	}
}

// decide handles the records one after the other. Each builds on the results of those before it.
func (b *batch) decide() {
	b.was, b.moved = map[string]result.Result{}, map[id.Assignment]bool{}
	for _, t := range b.targets {
		t.inherit(b.results[t.ref]) // again, as an earlier record of the call may have made it
		r, err := t.decide(b.before(t))
		if err != nil {
			b.outcomes[t.index] = Outcome{Status: Rejected, Err: err}
			continue
		}
		b.take(t, r)
	}
}

func (b *batch) before(t target) before {
	v := before{now: b.now}
	v.result, v.known = b.results[t.ref]
	if p, ok := b.people[t.User]; ok {
		v.person = &p
	}
	if i, ok := b.items[t.Item]; ok {
		v.item = &i
	}
	if a, ok := b.assignments[t.assignment]; ok {
		v.assignment = &a
	}
	return v
}

// take keeps the result of a record for those after it.
func (b *batch) take(t target, r result.Result) {
	old, known := b.results[t.ref]
	first, changed := b.was[t.ref]
	if !changed {
		first = old
	}
	o := Outcome{Status: Applied, Result: r, New: !known && !changed}
	b.outcomes[t.index] = o
	if a, ok := b.assignments[r.Assignment]; ok {
		if next, moves := progress(a, r); moves {
			b.assignments[a.ID], b.moved[a.ID] = next, true
		}
	}
	if known && old.Same(r) {
		b.outcomes[t.index].Status = Unchanged
		return
	}
	b.results[t.ref], b.was[t.ref] = r, first
	if changed {
		b.order = slices.DeleteFunc(b.order, func(ref string) bool { return ref == t.ref })
	}
	b.order = append(b.order, t.ref)
}

// write stores assignments and events, and last the results.
func (b *batch) write(ctx context.Context, tx *pg.Tx) error {
	moved := make([]assignment.Assignment, 0, len(b.moved))
	for _, a := range slices.Sorted(maps.Keys(b.moved)) {
		moved = append(moved, b.assignments[a])
	}
	if err := assignment.Save(ctx, tx, b.org, moved, b.now); err != nil {
		return err
	}
	changes := make([]result.Change, len(b.order))
	for i, ref := range b.order {
		r := b.results[ref]
		changes[i] = finish(b.was[ref], r, b.now)
	}
	if err := webhook.Record(ctx, tx, b.org, b.now, b.events(changes)...); err != nil {
		return err
	}
	if err := b.touchPlans(ctx, tx, changes); err != nil {
		return err
	}
	if err := b.settleBrowsers(ctx, tx); err != nil {
		return err
	}
	return result.Save(ctx, tx, b.org, changes, b.now)
}

// touchPlans queues a decision of the test plans whose tests were worked on.
func (b *batch) touchPlans(ctx context.Context, tx *pg.Tx, changes []result.Change) error {
	var tests []id.Assignment
	for _, c := range changes {
		if b.assignments[c.Assignment].Source == assignment.ViaPlan {
			tests = append(tests, c.Assignment)
		}
	}
	if len(tests) == 0 {
		return nil
	}
	return plan.TouchTests(ctx, tx, b.org, b.now, tests...)
}

// settleBrowsers adds to the outcomes whether sessions of assigned tests need the secure exam browser.
func (b *batch) settleBrowsers(ctx context.Context, tx *pg.Tx) error {
	var sessions []plan.Session
	for _, t := range b.targets {
		if o := b.outcomes[t.index]; o.Err == nil && o.Result.Kind == string(catalog.Test) && o.Result.Assignment != 0 {
			sessions = append(sessions, plan.Session{Ref: t.ref, User: o.Result.User, Begins: o.New})
		}
	}
	only, err := plan.BrowserSessions(ctx, tx, b.org, sessions)
	for _, t := range b.targets {
		b.outcomes[t.index].SafeExamBrowser = only[t.ref]
	}
	return err
}

// events returns the events of results that became final, of students in scope only.
func (b *batch) events(changes []result.Change) []webhook.Event {
	var events []webhook.Event
	for _, c := range changes {
		p := b.people[c.User]
		if !c.Places || !p.InScope {
			continue
		}
		shown := wire.NewFinalResult(&result.Listed{Result: c.Result, Email: p.Email, FirstName: p.FirstName, LastName: p.LastName,
			ItemTitle: b.items[c.Item].Title}, b.PublicURL, time.UTC)
		events = append(events, webhook.Event{Type: webhook.ResultFinal, User: c.User, Data: shown})
	}
	return events
}
