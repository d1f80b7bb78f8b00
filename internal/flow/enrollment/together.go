package enrollment

import (
	"context"
	"maps"
	"slices"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// gathered is a change that others are gathered with: a person who comes back into the scope of lists takes
// the organization's next positions, which are locked until the commit, so its calls share one.
type gathered struct {
	entry       audit.Entry
	user        id.User
	do          edit
	traceparent string
}

// outcome is the answer to it.
type outcome struct {
	after notify.Snapshot
	err   error
	alone bool // nothing was done: it would have had to wait for somebody else's call about the person
}

// together makes the changes of several calls in one transaction, but those that would have to wait for a person's
// lock. If they are of several organizations, it waits for no lock for long: none shall wait because of another one.
func (o *Service) together(ctx context.Context, all []gathered) (outcomes []outcome, err error) {
	several := slices.ContainsFunc(all, func(g gathered) bool { return g.entry.Organization != all[0].entry.Organization })
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		outcomes = make([]outcome, len(all))
		s := set{Service: o, all: all, outcomes: outcomes, before: make([]notify.Snapshot, len(all))}
		if err := s.read(ctx, tx, several); err != nil {
			return err
		}
		return s.write(ctx, tx)
	})
	return outcomes, err
}

// set is the changes of one transaction.
type set struct {
	*Service
	all      []gathered
	outcomes []outcome
	before   []notify.Snapshot // under the person's lock
}

// read takes the locks that are free and reads the snapshots. Each person is changed once in a transaction.
func (s *set) read(ctx context.Context, tx *pg.Tx, hurry bool) error {
	var people, snapshots pg.Batch
	if hurry {
		people.Hurry()
	}
	accounts, locked := make([]student.Account, len(s.all)), make([]bool, len(s.all))
	for i, g := range s.all {
		student.LoadByID(&people, g.entry.Organization, g.user, &accounts[i])
	}
	if err := people.Send(ctx, tx); err != nil {
		return err
	}
	seen := map[id.User]bool{0: true}
	for i, g := range s.all {
		if who := accounts[i].ID; !seen[who] {
			seen[who] = true
			snapshots.TryLock(pg.LockEmail, string(accounts[i].Email), &locked[i])
			load(&snapshots, g.entry.Organization, g.user, &s.before[i])
		}
	}
	if err := snapshots.Send(ctx, tx); err != nil {
		return err
	}
	for i := range s.all {
		s.outcomes[i].alone = !locked[i] || s.before[i].Account.Email != accounts[i].Email
	}
	return nil
}

// write makes the changes. A change that is refused writes nothing, and keeps no other from being made.
func (s *set) write(ctx context.Context, tx *pg.Tx) error {
	now := s.Clock()
	today, commitDay := clock.DateIn(now, s.Zone), notify.CommitDay(now, s.Zone)
	events, back, touched := map[id.Organization][]webhook.Event{}, map[id.Organization][]id.User{}, map[id.Organization][]id.Enrollment{}
	var changes, last pg.Batch
	for i, g := range s.all {
		out := &s.outcomes[i]
		if out.alone {
			continue
		}
		in, before := g.entry.Organization, s.before[i]
		after := before
		after.Enrollments = slices.Clone(before.Enrollments)
		entry := g.entry
		entry.At = now
		if entry.Target, out.err = g.do(&after, &changes, now); out.err != nil {
			continue
		}
		out.after = after
		for _, e := range notify.Changes(before, after, today) {
			e.Traceparent = g.traceparent
			events[in] = append(events[in], e)
		}
		save(&changes, in, before, after, today, now)
		if entry.Target != "" {
			audit.Queue(&changes, entry)
		}
		touched[in] = append(touched[in], touchedBy(before, after)...)
		if notify.Rejoins(before, after, today, commitDay) {
			back[in] = append(back[in], g.user)
		}
	}
	if err := webhook.WriteAll(ctx, &changes, now, events); err != nil {
		return err
	}
	if err := changes.Send(ctx, tx); err != nil {
		return err
	}
	for _, in := range slices.Sorted(maps.Keys(touched)) {
		if len(touched[in]) > 0 {
			if err := plan.TouchEnrollments(ctx, tx, in, now, touched[in]...); err != nil {
				return err
			}
		}
	}
	notify.RelistAll(&last, back)
	return last.Commit(ctx, tx)
}
