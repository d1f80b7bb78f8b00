package enrollment

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// How many enrollments one transaction takes, which bounds how long it holds locks, and how many transactions run at
// once: one computes while another waits for the database.
const (
	sweepBatch = 500
	sweepers   = 3
)

// Sweep notifies receivers of what passing time has changed: enrollments that began, went into
// their grace period, ended or will end soon, and students who left with their last one. It
// returns how many students it notified of, and can be repeated at any time. Any number of sweeps may run at once: one
// leaves to the next sweep the students whom another transaction has locked.
func (o *Service) Sweep(ctx context.Context) (students int, err error) {
	p := &pages{today: o.today()}
	first, err := p.next(ctx, o)
	if err == nil && len(first) > 0 {
		students, err = o.sweepSome(ctx, p.today, first)
	}
	if err != nil || p.over { // the usual case: little is due
		return students, sweepError(err)
	}
	var all atomic.Int64
	group, within := errgroup.WithContext(ctx)
	at := sweepers
	if o.InTurn {
		at = 1
	}
	for range at {
		group.Go(func() error {
			for {
				page, err := p.next(within, o)
				if err != nil || len(page) == 0 {
					return err
				}
				n, err := o.sweepSome(within, p.today, page)
				if err != nil {
					return err
				}
				all.Add(int64(n))
			}
		})
	}
	err = group.Wait()
	return students + int(all.Load()), sweepError(err)
}

func sweepError(err error) error {
	if err != nil {
		return fmt.Errorf("notifying of what time has changed: %w", err)
	}
	return nil
}

// pages gives what is due to several who work on it at once, each page to one.
type pages struct {
	today clock.Date

	mu    sync.Mutex
	after course.DuePosition
	over  bool
}

// next is empty after the last page.
func (p *pages) next(ctx context.Context, o *Service) ([]course.Due, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, nil
	}
	due, err := course.DueOn(ctx, o.DB, p.today, p.after, sweepBatch)
	if err != nil {
		return nil, err
	}
	if len(due) > 0 {
		p.after = due[len(due)-1].DuePosition
	}
	p.over = len(due) < sweepBatch
	return due, nil
}

// sweepSome notifies of the students of a page whose locks are free, and says how many that are. It
// waits for none: waiting for one lock while holding others is how deadlocks come about.
func (o *Service) sweepSome(ctx context.Context, today clock.Date, due []course.Due) (students int, err error) {
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		emails := make([]string, len(due))
		for i, d := range due {
			emails[i] = d.Email
		}
		locked, err := pg.TryLockAll(ctx, tx, pg.LockEmail, emails)
		if err != nil {
			return err
		}
		free := make(map[string]bool, len(locked))
		for _, email := range locked {
			free[email] = true
		}
		seen := make(map[who]bool, len(due))
		batch := slices.DeleteFunc(slices.Clone(due), func(d course.Due) bool {
			again := seen[whose(d)]
			seen[whose(d)] = true
			return again || !free[d.Email]
		})
		students = len(batch)
		return o.notify(ctx, tx, batch, today)
	})
	return students, err
}

// who is a student of one organization.
type who struct {
	org  id.Organization
	user id.User
}

func whose(d course.Due) who { return who{d.Organization, d.User} }

// notify reads the students again, now that nobody else changes them, records the events that
// are due, and stores that receivers know. There are none when another sweep was faster.
func (o *Service) notify(ctx context.Context, tx *pg.Tx, batch []course.Due, today clock.Date) error {
	snapshots, err := read(ctx, tx, batch)
	if err != nil {
		return err
	}
	now := o.Clock()
	events := map[id.Organization][]webhook.Event{}
	back := map[id.Organization][]id.User{}
	var orgs []id.Organization // of saved
	var saved []course.Enrollment
	var warned []bool
	for i, d := range batch {
		s := snapshots[i]
		// A student whose address changed meanwhile has another lock now, and stays due.
		if string(s.Account.Email) != d.Email {
			continue
		}
		events[d.Organization] = append(events[d.Organization], slices.Concat(notify.Changes(s, s, today), notify.Expiring(s, today))...)
		// Every enrollment, changed or not: the day on which it is due next may have changed.
		for _, e := range s.Enrollments {
			warn := e.DaysLeft(today) > 0
			if warn {
				e = e.MarkExpiring()
			}
			orgs, saved, warned = append(orgs, d.Organization), append(saved, e.MarkNotified(today)), append(warned, warn)
		}
		if notify.Rejoins(s, s, today, today) {
			back[d.Organization] = append(back[d.Organization], d.User)
		}
	}
	if err := course.SaveNotified(ctx, tx, orgs, saved, warned, today, now); err != nil {
		return err
	}
	var rest pg.Batch
	if err := webhook.WriteAll(ctx, &rest, now, events); err != nil {
		return err
	}
	notify.RelistAll(&rest, back) // last, as it locks the organizations' positions
	return rest.Send(ctx, tx)
}

// read reads the snapshots of the batch.
func read(ctx context.Context, tx *pg.Tx, batch []course.Due) ([]notify.Snapshot, error) {
	orgs, users := make([]id.Organization, len(batch)), make([]id.User, len(batch))
	for i, d := range batch {
		orgs[i], users[i] = d.Organization, d.User
	}
	accounts, err := student.FindCalled(ctx, tx, orgs, users)
	if err != nil {
		return nil, err
	}
	members, err := org.MembersOf(ctx, tx, orgs, users)
	if err != nil {
		return nil, err
	}
	held, err := course.EnrollmentsOf(ctx, tx, orgs, users)
	if err != nil {
		return nil, err
	}
	called := make(map[who]student.Account, len(accounts))
	for _, c := range accounts {
		called[who{c.Organization, c.ID}] = c.Account
	}
	all := make([]notify.Snapshot, len(batch))
	for i, d := range batch {
		all[i] = notify.Snapshot{Account: called[whose(d)].SeenBy(d.Organization), Member: members[i], Enrollments: held[i]}
	}
	return all, nil
}
