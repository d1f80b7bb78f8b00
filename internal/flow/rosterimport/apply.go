package rosterimport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// A batch is short, so that calls about the same people wait for a moment only. It locks up to
// two addresses a person, and PostgreSQL as it comes has room for some 12,000 locks in all: six
// batches at once, of as many workers, would leave none to others.
const (
	batchSize     = 1000
	seatBatch     = 4000
	batchesAtOnce = 2
	// A batch with so few addresses does not count: it need not wait for those of large files.
	fewAddresses = 50
	// personRows is how many rows of a turn a person costs who is written.
	personRows = turnRows / batchSize
)

// applyPeople carries out the changes of people that are not carried out yet.
func (i *Importer) applyPeople(ctx context.Context, ref task.Outbox, run roster.Run, turn *turn) (roster.Run, error) {
	read := func(ctx context.Context, after int64) ([]roster.Change, int64, error) {
		changes, err := diff.NextChanges(ctx, i.DB, run.ID, after, batchSize)
		if len(changes) > 0 {
			after = changes[len(changes)-1].N
		}
		return changes, after, err
	}
	err := ahead(ctx, run.PeopleDone, read, func(changes []roster.Change, last int64) error {
		if err := turn.next(ctx); err != nil {
			return err
		}
		turn.did(personRows * len(changes))
		run.PeopleDone = last
		err := i.applyBatch(ctx, ref, run, changes, false)
		if pg.Duplicate(err) { // another transaction has made one of the new people
			err = i.applyBatch(ctx, ref, run, changes, true)
		}
		if err != nil {
			return fmt.Errorf("changes to %d: %w", last, err)
		}
		return nil
	})
	return run, err
}

func (i *Importer) applyBatch(ctx context.Context, ref task.Outbox, run roster.Run, changes []roster.Change, careful bool) error {
	return i.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := outbox.Postpone(ctx, tx, ref, i.until()); err != nil {
			return err
		}
		b := &batch{Importer: i, tx: tx, run: run, today: clock.DateIn(i.Clock(), i.Zone), careful: careful}
		if err := b.apply(ctx, changes); err != nil {
			return err
		}
		return roster.SaveProgress(ctx, tx, run)
	})
}

func (i *Importer) applyClasses(ctx context.Context, ref task.Outbox, run roster.Run, turn *turn) (roster.Run, error) {
	read := func(ctx context.Context, after int64) ([]roster.ClassChange, int64, error) {
		changes, err := diff.NextClassChanges(ctx, i.DB, run.ID, after, seatBatch)
		if len(changes) > 0 {
			after = changes[len(changes)-1].N
		}
		return changes, after, err
	}
	err := ahead(ctx, run.ClassesDone, read, func(changes []roster.ClassChange, last int64) error {
		if err := turn.next(ctx); err != nil {
			return err
		}
		turn.did(len(changes))
		run.ClassesDone = last
		err := i.DB.InTx(ctx, func(tx *pg.Tx) error {
			if err := outbox.Postpone(ctx, tx, ref, i.until()); err != nil {
				return err
			}
			if err := roster.SaveClasses(ctx, tx, run, changes); err != nil {
				return err
			}
			return roster.SaveProgress(ctx, tx, run)
		})
		if err != nil {
			return fmt.Errorf("class changes to %d: %w", last, err)
		}
		return nil
	})
	return run, err
}

// ahead uses one page after the other while the next one is being read. read returns the page
// after a number, and the number of its last row; an empty page is the end.
func ahead[T any](ctx context.Context, after int64, read func(context.Context, int64) ([]T, int64, error), use func([]T, int64) error) error {
	type page struct {
		rows []T
		last int64
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	next := make(chan page, 1)
	fetch := func(after int64) {
		var p page
		p.rows, p.last, p.err = read(ctx, after)
		next <- p
	}
	go fetch(after)
	for {
		p := <-next
		if p.err != nil || len(p.rows) == 0 {
			cancel()
			return p.err
		}
		go fetch(p.last)
		if err := use(p.rows, p.last); err != nil {
			cancel()
			<-next
			return err
		}
	}
}

// batch is a number of changes in one transaction. The data may have changed since they were
// planned, so each write repeats the condition under which it was planned.
type batch struct {
	*Importer
	tx    *pg.Tx
	run   roster.Run
	today clock.Date

	careful  bool                              // accounts that the run was to make may exist
	accounts map[student.Email]student.Account // made by this batch
	joined   []id.User
	back     []id.User // of joined, those who had an account
	left     []id.User
}

func (b *batch) apply(ctx context.Context, changes []roster.Change) error {
	if err := b.lock(ctx, changes); err != nil {
		return err
	}
	changes, err := b.checkAddresses(ctx, changes)
	if err != nil {
		return fmt.Errorf("people found by their address: %w", err)
	}
	if changes, err = b.keepEnrolled(ctx, changes); err != nil {
		return fmt.Errorf("people with a course: %w", err)
	}
	if !b.careful {
		if changes, err = b.createNew(ctx, changes); err != nil {
			return fmt.Errorf("new people: %w", err)
		}
	}
	if err := b.createAccounts(ctx, changes); err != nil {
		return fmt.Errorf("accounts: %w", err)
	}
	if err := b.changeProfiles(ctx, changes); err != nil {
		return fmt.Errorf("profiles: %w", err)
	}
	ended, err := b.changeMembers(ctx, changes)
	if err != nil {
		return fmt.Errorf("memberships: %w", err)
	}
	if err := b.changeIdentities(ctx, changes, ended); err != nil {
		return fmt.Errorf("external ids: %w", err)
	}
	if err := b.record(ctx); err != nil {
		return err
	}
	var relist pg.Batch // last, as it locks the organization's positions
	notify.Relist(&relist, b.run.Organization, b.back...)
	return relist.Send(ctx, b.tx)
}

// touches are the effects on accounts and memberships.
const touches = roster.CreateAccount | roster.ChangeProfile | roster.CreateMembership | roster.Activate | roster.Deactivate

// lock takes the address locks of the people whose account or membership the batch makes or
// changes, as provisioning does, so that an account is made once and only one transaction at a
// time notifies receivers of a person. It fails soon where another transaction keeps an address for
// long: the batch must not keep those of a thousand others meanwhile.
func (b *batch) lock(ctx context.Context, changes []roster.Change) error {
	var addresses []string
	for _, c := range changes {
		if c.Effects&touches != 0 {
			addresses = append(addresses, c.Email)
		}
		if c.Effects.Has(roster.ChangeProfile) && c.BeforeEmail != c.Email {
			addresses = append(addresses, c.BeforeEmail)
		}
	}
	if len(addresses) > fewAddresses {
		if err := pg.Lock(ctx, b.tx, pg.LockBatch, strconv.Itoa(rand.N(batchesAtOnce))); err != nil {
			return err
		}
	}
	if err := pg.GiveWay(ctx, b.tx); err != nil {
		return err
	}
	return pg.LockAll(ctx, b.tx, pg.LockEmail, addresses)
}

// isNew are the effects of a person who has no account yet.
const isNew = roster.CreateAccount | roster.CreateMembership | roster.CreateIdentity

// createNew makes the people who have no account, and returns the other changes.
func (b *batch) createNew(ctx context.Context, changes []roster.Change) (others []roster.Change, err error) {
	var drafts []student.Draft
	var identities []roster.Identity
	for _, c := range changes {
		if c.Effects != isNew {
			others = append(others, c)
			continue
		}
		drafts = append(drafts, b.draft(c))
		identities = append(identities, roster.Identity{ExternalID: c.ExternalID})
	}
	users, err := student.CopyAll(ctx, b.tx, drafts, b.run.Stamp)
	if err != nil {
		return nil, err
	}
	for i, u := range users {
		identities[i].User = u
	}
	b.joined = users // changeMembers makes their memberships
	return others, roster.CopyIdentities(ctx, b.tx, b.run, identities)
}

func (b *batch) draft(c roster.Change) student.Draft {
	return student.Draft{Email: student.Email(c.Email), FirstName: c.FirstName, LastName: c.LastName,
		CreatedBy: b.run.Organization, CreatedVia: student.ViaRoster}
}

func (b *batch) createAccounts(ctx context.Context, changes []roster.Change) error {
	var drafts []student.Draft
	for _, c := range changes {
		if c.Effects.Has(roster.CreateAccount) {
			drafts = append(drafts, b.draft(c))
		}
	}
	made, err := student.CreateAll(ctx, b.tx, drafts, b.run.Stamp)
	b.accounts = made
	return err
}

// user is the person of a change; 0 when the account could not be made.
func (b *batch) user(c roster.Change) id.User {
	if c.User != 0 {
		return c.User
	}
	return b.accounts[student.Email(c.Email)].ID
}

func (b *batch) changeProfiles(ctx context.Context, changes []roster.Change) error {
	var profiles []student.Profile
	for _, c := range changes {
		if c.Effects.Has(roster.ChangeProfile) {
			profiles = append(profiles, student.Profile{User: c.User, Before: student.Email(c.BeforeEmail),
				Email: student.Email(c.Email), FirstName: c.FirstName, LastName: c.LastName})
		}
	}
	return student.ChangeProfiles(ctx, b.tx, b.run.Organization, profiles, b.run.Stamp)
}

// changeMembers makes, ends and revives memberships, also those of createNew, and returns whose it ended.
func (b *batch) changeMembers(ctx context.Context, changes []roster.Change) (map[id.User]bool, error) {
	var make, revive, end []id.User
	var names []student.Name
	for _, c := range changes {
		switch user := b.user(c); {
		case user == 0:
		case c.Effects.Has(roster.CreateMembership):
			make = append(make, user)
			names = append(names, student.Name{User: user, FirstName: c.FirstName, LastName: c.LastName})
		case c.Effects.Has(roster.Activate):
			revive = append(revive, user)
		case c.Effects.Has(roster.Deactivate):
			end = append(end, user)
		}
	}
	o := b.run.Organization
	var called pg.Batch
	student.SetNames(&called, o, names...)
	if err := called.Send(ctx, b.tx); err != nil {
		return nil, err
	}
	if err := org.CopyMembers(ctx, b.tx, o, b.joined, org.ViaRoster, b.run.Stamp); err != nil {
		return nil, err
	}
	made, err := org.AddMembers(ctx, b.tx, o, make, org.ViaRoster, b.run.Stamp)
	if err != nil {
		return nil, err
	}
	endings, err := roster.Endings(ctx, b.tx, o, revive)
	if err != nil {
		return nil, err
	}
	users, since := endingArrays(endings)
	revived, err := org.ReviveMembers(ctx, b.tx, o, users, since, b.run.Stamp)
	if err != nil {
		return nil, err
	}
	ended, err := org.EndMembers(ctx, b.tx, o, end, org.ViaRoster, b.run.Stamp)
	if err != nil {
		return nil, err
	}
	b.back = append(made, revived...)
	b.joined, b.left = append(b.joined, b.back...), ended
	return setOf(ended), nil
}

func endingArrays(endings []roster.Ending) (users []id.User, since []time.Time) {
	for _, e := range endings {
		users, since = append(users, e.User), append(since, e.At)
	}
	return users, since
}

func setOf(users []id.User) map[id.User]bool {
	set := make(map[id.User]bool, len(users))
	for _, u := range users {
		set[u] = true
	}
	return set
}

func (b *batch) changeIdentities(ctx context.Context, changes []roster.Change, ended map[id.User]bool) error {
	var all []roster.Identity
	for _, c := range changes {
		if user := b.user(c); user != 0 {
			all = append(all, roster.Identity{ExternalID: c.ExternalID, BeforeID: c.BeforeID, User: user, Effects: c.Effects, Ended: ended[user]})
		}
	}
	return roster.SaveIdentities(ctx, b.tx, b.run, all)
}

// record makes the events of the people who joined and left.
func (b *batch) record(ctx context.Context) error {
	if len(b.joined)+len(b.left) == 0 {
		return nil
	}
	people, err := b.read(ctx)
	if err != nil {
		return err
	}
	var notified pg.Batch
	events := append(b.notify(&notified, people, b.joined, org.MemberInactive), b.notify(&notified, people, b.left, org.MemberActive)...)
	if err := notified.Send(ctx, b.tx); err != nil {
		return fmt.Errorf("storing what receivers know of enrollments: %w", err)
	}
	return webhook.Record(ctx, b.tx, b.run.Organization, b.Clock(), events...)
}

// notify lists the events of people whose membership had the status was before, and queues
// what receivers know of their enrollments afterwards: changes by the calendar that they were
// not notified of yet are among the events.
func (b *batch) notify(notified *pg.Batch, people map[id.User]notify.Snapshot, users []id.User, was org.MemberStatus) (events []webhook.Event) {
	for _, u := range users {
		after := people[u]
		before := after
		before.Member.Status = was
		events = append(events, notify.Changes(before, after, b.today)...)
		for _, e := range after.Enrollments {
			if marked := e.MarkNotified(b.today); marked.Differs(e) {
				course.Save(notified, b.run.Organization, marked, b.today, b.run.Stamp)
			}
		}
	}
	return events
}

func (b *batch) read(ctx context.Context) (map[id.User]notify.Snapshot, error) {
	users := append(append([]id.User{}, b.joined...), b.left...)
	accounts, err := student.FindAll(ctx, b.tx, b.run.Organization, users)
	if err != nil {
		return nil, err
	}
	members, err := org.Members(ctx, b.tx, b.run.Organization, users)
	if err != nil {
		return nil, err
	}
	held, err := course.OfStudents(ctx, b.tx, b.run.Organization, users)
	if err != nil {
		return nil, err
	}
	people := make(map[id.User]notify.Snapshot, len(users))
	for _, u := range users {
		people[u] = notify.Snapshot{Account: accounts[u].SeenBy(b.run.Organization), Member: members[u], Enrollments: held[u]}
	}
	return people, nil
}
