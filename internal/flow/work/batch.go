package work

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// batch holds the records of one transaction, of one organization or several.
type batch struct {
	*Service
	now      time.Time
	targets  []target
	outcomes []Outcome // of all records of the call

	// read from the database, and then updated by each record
	assignments map[assignment.Key]assignment.Assignment
	results     map[result.Key]result.Result
	people      map[result.Member]result.Person
	items       map[id.Item]catalog.Item // of all organizations of the batch

	// decided
	was   map[result.Key]result.Result // the changed results as they were read
	order []result.Key                 // of the changed results, in the order of their last record
	moved map[assignment.Key]bool

	traces map[result.Key]string // the traceparents of their last records
}

// read locks what the records can change, assignments before results and each in the order that all
// transactions use, and reads what they name. What has been read may name more: the assignment of a
// quiz its student and item, a known result its assignment. So it reads until nothing is missing. In a
// hurry the transaction waits for no lock for long.
func (b *batch) read(ctx context.Context, tx *pg.Tx, hurry bool) error {
	b.assignments, b.results = map[assignment.Key]assignment.Assignment{}, map[result.Key]result.Result{}
	b.people, b.items = map[result.Member]result.Person{}, map[id.Item]catalog.Item{}
	orgs := map[id.Organization]bool{}
	for _, t := range b.targets {
		orgs[t.org] = true
	}
	in, today := slices.Sorted(maps.Keys(orgs)), clock.DateIn(b.now, b.Zone)
	var read pg.Batch
	if hurry {
		read.Hurry()
	}
	asked := b.names(named{})
	for more := asked; !more.none(); more = b.names(asked) {
		assignment.QueueLock(&read, slices.Collect(maps.Keys(more.assignments)), b.assignments)
		result.Lock(&read, slices.Collect(maps.Keys(more.results)), b.results)
		result.People(&read, slices.Collect(maps.Keys(more.members)), today, b.people)
		catalog.QueueLoad(&read, in, slices.Collect(maps.Keys(more.items)), b.items)
		if err := read.Send(ctx, tx); err != nil {
			return err
		}
		asked.add(more)
		read = pg.Batch{}
	}
	return nil
}

// named is what is read of the database.
type named struct {
	assignments map[assignment.Key]bool
	results     map[result.Key]bool
	members     map[result.Member]bool
	items       map[id.Item]bool
}

func (n named) none() bool {
	return len(n.assignments)+len(n.results)+len(n.members)+len(n.items) == 0
}

func (n named) add(more named) {
	maps.Copy(n.assignments, more.assignments)
	maps.Copy(n.results, more.results)
	maps.Copy(n.members, more.members)
	maps.Copy(n.items, more.items)
}

// names returns what the records name, by themselves or by what has been read, and was not asked for.
func (b *batch) names(asked named) named {
	n := named{map[assignment.Key]bool{}, map[result.Key]bool{}, map[result.Member]bool{}, map[id.Item]bool{}}
	for i := range b.targets {
		t := &b.targets[i]
		if a, ok := b.assignments[t.given(t.assignment)]; ok && t.Kind != catalog.Test {
			t.assume(a)
		}
		r := b.results[t.key()]
		t.inherit(r)
		for _, a := range []id.Assignment{t.assignment, r.Assignment} {
			if k := t.given(a); a != 0 && !asked.assignments[k] {
				n.assignments[k] = true
			}
		}
		if t.ref != "" && !asked.results[t.key()] {
			n.results[t.key()] = true
		}
		if t.User != 0 && !asked.members[t.member()] {
			n.members[t.member()] = true
		}
		if t.Item != 0 && !asked.items[t.Item] {
			n.items[t.Item] = true
		}
	}
	return n
}

// key names the record's result.
func (t *target) key() result.Key { return result.Key{Organization: t.org, Ref: t.ref} }

// member is the student in the record's organization.
func (t *target) member() result.Member { return result.Member{Organization: t.org, User: t.User} }

// given names an assignment in the record's organization.
func (t *target) given(a id.Assignment) assignment.Key {
	return assignment.Key{Organization: t.org, ID: a}
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
	b.was, b.moved, b.traces = map[result.Key]result.Result{}, map[assignment.Key]bool{}, map[result.Key]string{}
	for _, t := range b.targets {
		t.inherit(b.results[t.key()]) // again, as an earlier record of the call may have made it
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
	v.result, v.known = b.results[t.key()]
	if p, ok := b.people[t.member()]; ok {
		v.person = &p
	}
	if i, ok := b.items[t.Item]; ok && (i.Organization == 0 || i.Organization == t.org) {
		v.item = &i
	}
	if a, ok := b.assignments[t.given(t.assignment)]; ok {
		v.assignment = &a
	}
	return v
}

// take keeps the result of a record for those after it.
func (b *batch) take(t target, r result.Result) {
	key := t.key()
	old, known := b.results[key]
	first, changed := b.was[key]
	if !changed {
		first = old
	}
	b.outcomes[t.index] = Outcome{Status: Applied, Result: r, New: !known && !changed}
	given := t.given(r.Assignment)
	if a, ok := b.assignments[given]; ok {
		if next, moves := progress(a, r); moves {
			b.assignments[given], b.moved[given] = next, true
		}
	}
	if known && old.Same(r) {
		b.outcomes[t.index].Status = Unchanged
		return
	}
	b.results[key], b.was[key], b.traces[key] = r, first, t.traceparent
	if changed {
		b.order = slices.DeleteFunc(b.order, func(k result.Key) bool { return k == key })
	}
	b.order = append(b.order, key)
}

// write queues what is stored: assignments and events, and last the results.
func (b *batch) write(ctx context.Context, tx *pg.Tx) (*pg.Batch, error) {
	changes := make([]result.Change, len(b.order))
	for i, k := range b.order {
		changes[i] = finish(b.was[k], b.results[k], b.now)
		changes[i].Organization = k.Organization
	}
	if err := b.touchPlans(ctx, tx, changes); err != nil {
		return nil, err
	}
	if err := b.settleBrowsers(ctx, tx); err != nil {
		return nil, err
	}
	moved := make(map[assignment.Key]assignment.Assignment, len(b.moved))
	for k := range b.moved {
		moved[k] = b.assignments[k]
	}
	var all pg.Batch
	assignment.QueueSave(&all, moved, b.now)
	if err := b.record(ctx, &all, changes); err != nil {
		return nil, err
	}
	b.sendMarks(&all, changes)
	result.Save(&all, changes, b.now)
	return &all, nil
}

// touchPlans queues a decision of the test plans whose tests were worked on.
func (b *batch) touchPlans(ctx context.Context, tx *pg.Tx, changes []result.Change) error {
	var orgs []id.Organization
	var tests []id.Assignment
	for _, c := range changes {
		if b.assignments[assignment.Key{Organization: c.Organization, ID: c.Assignment}].Source == assignment.ViaPlan {
			orgs, tests = append(orgs, c.Organization), append(tests, c.Assignment)
		}
	}
	if len(tests) == 0 {
		return nil
	}
	return plan.TouchTests(ctx, tx, orgs, b.now, tests...)
}

// settleBrowsers adds to the outcomes whether sessions of assigned tests need the secure exam browser.
func (b *batch) settleBrowsers(ctx context.Context, tx *pg.Tx) error {
	var sessions []plan.Session
	var of []*Outcome
	for _, t := range b.targets {
		if o := &b.outcomes[t.index]; o.Err == nil && o.Result.Kind == string(catalog.Test) && o.Result.Assignment != 0 {
			sessions = append(sessions, plan.Session{Organization: t.org, Ref: t.ref, User: o.Result.User, Begins: o.New})
			of = append(of, o)
		}
	}
	only, err := plan.BrowserSessions(ctx, tx, sessions)
	for i := range only {
		of[i].SafeExamBrowser = only[i]
	}
	return err
}

// sendMarks queues the sending of results that became final to the LMSes that wait for them.
func (b *batch) sendMarks(all *pg.Batch, changes []result.Change) {
	var scores []lms.Score
	for _, c := range changes {
		if c.Places && c.Assignment != 0 && c.Score != nil && c.MaxScore != nil && b.people[result.Member{Organization: c.Organization, User: c.User}].InScope {
			scores = append(scores, lms.Score{Organization: c.Organization, User: c.User, Item: c.Item, Value: *c.Score, Max: *c.MaxScore, At: *c.FinalAt})
		}
	}
	lms.Scored(all, scores, b.now)
}

// record queues the events of results that became final, of students in scope only.
func (b *batch) record(ctx context.Context, all *pg.Batch, changes []result.Change) error {
	events := map[id.Organization][]webhook.Event{}
	for _, c := range changes {
		p := b.people[result.Member{Organization: c.Organization, User: c.User}]
		if !c.Places || !p.InScope {
			continue
		}
		shown := wire.NewFinalResult(&result.Listed{Result: c.Result, Email: p.Email, FirstName: p.FirstName, LastName: p.LastName,
			ItemTitle: b.items[c.Item].Title}, b.PublicURL, time.UTC)
		events[c.Organization] = append(events[c.Organization], webhook.Event{Type: webhook.ResultFinal, User: c.User, Data: shown,
			Traceparent: b.traces[result.Key{Organization: c.Organization, Ref: c.Ref}]})
	}
	return webhook.WriteAll(ctx, all, b.now, events)
}
