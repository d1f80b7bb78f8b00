package enrollment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// sweepBatch is how many students one transaction takes, which bounds how long it holds locks.
const sweepBatch = 100

// Sweep notifies receivers of what passing time has changed: enrollments that began, went into
// their grace period, ended or will end soon, and students who left with their last one. It
// returns how many students it checked. Any number of sweeps may run at once: one skips the
// students whom another transaction has locked.
func (o *Service) Sweep(ctx context.Context) (students int, err error) {
	today := o.today()
	var busy []id.User
	for {
		n, skipped, err := o.sweepSome(ctx, today, busy)
		if err != nil {
			return students, fmt.Errorf("notifying of what time has changed: %w", err)
		}
		students += n
		busy = append(busy, skipped...)
		if n+len(skipped) == 0 {
			return students, nil
		}
	}
}

// dueStudent is a student of a batch, with the snapshot that was read under the lock.
type dueStudent struct {
	course.Due
	locked   bool
	snapshot notify.Snapshot
}

func (o *Service) sweepSome(ctx context.Context, today clock.Date, busy []id.User) (done int, skipped []id.User, err error) {
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		done, skipped = 0, nil
		due, err := course.DueOn(ctx, tx, today, busy, sweepBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		batch, err := tryLock(ctx, tx, due)
		if err != nil {
			return err
		}
		for _, f := range batch {
			if !f.locked {
				skipped = append(skipped, f.User)
			}
		}
		batch = slices.DeleteFunc(batch, func(f *dueStudent) bool { return !f.locked })
		done = len(batch)
		return o.notify(ctx, tx, batch, today)
	})
	return done, skipped, err
}

// tryLock takes the locks that are free. It waits for none: waiting for one lock while holding
// others is how deadlocks come about.
func tryLock(ctx context.Context, tx *pg.Tx, due []course.Due) ([]*dueStudent, error) {
	batch := make([]*dueStudent, len(due))
	var b pg.Batch
	for i, d := range due {
		batch[i] = &dueStudent{Due: d}
		b.TryLock(pg.LockEmail, d.Email, &batch[i].locked)
	}
	return batch, b.Send(ctx, tx)
}

// notify reads the students again, now that nobody else changes them, records the events that
// are due, and stores that receivers know. There are none when another sweep was faster.
func (o *Service) notify(ctx context.Context, tx *pg.Tx, batch []*dueStudent, today clock.Date) error {
	var read, write pg.Batch
	for _, f := range batch {
		load(&read, f.Organization, f.User, &f.snapshot)
	}
	if err := read.Send(ctx, tx); err != nil {
		return err
	}
	// A student whose address changed meanwhile has another lock now, and stays due.
	batch = slices.DeleteFunc(batch, func(f *dueStudent) bool { return string(f.snapshot.Account.Email) != f.Email })
	now := o.Clock()
	events := map[id.Organization][]webhook.Event{}
	back := map[id.Organization][]id.User{}
	var order []id.Organization
	for _, f := range batch {
		if _, known := events[f.Organization]; !known {
			order = append(order, f.Organization)
		}
		events[f.Organization] = slices.Concat(events[f.Organization], notify.Changes(f.snapshot, f.snapshot, today), notify.Expiring(f.snapshot, today))
		saveNotified(&write, f, today, now)
		if notify.Rejoins(f.snapshot, f.snapshot, today, today) {
			back[f.Organization] = append(back[f.Organization], f.User)
		}
	}
	if err := write.Send(ctx, tx); err != nil {
		return err
	}
	for _, in := range order {
		if err := webhook.Record(ctx, tx, in, now, events[in]...); err != nil {
			return err
		}
	}
	var relist pg.Batch
	notify.RelistAll(&relist, back)
	return relist.Send(ctx, tx)
}

// saveNotified stores every enrollment of the student, changed or not: the day on which it is
// due next may have changed.
func saveNotified(b *pg.Batch, f *dueStudent, today clock.Date, now time.Time) {
	for _, e := range f.snapshot.Enrollments {
		if e.DaysLeft(today) > 0 {
			e = e.MarkExpiring()
		}
		course.Save(b, f.Organization, e.MarkNotified(today), today, now)
	}
}

// load queues the reading of a snapshot.
func load(b *pg.Batch, in id.Organization, user id.User, l *notify.Snapshot) {
	student.LoadByID(b, in, user, &l.Account)
	org.LoadMember(b, in, user, &l.Member)
	course.LoadEnrollments(b, in, user, &l.Enrollments)
}
