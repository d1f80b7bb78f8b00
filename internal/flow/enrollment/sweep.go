package enrollment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// sweepBatch bounds a transaction of the sweep, and so how long it holds a student's lock.
const sweepBatch = 100

// Sweep tells what the calendar has done up to now: enrollments that began, went into
// their grace period, are over or will be soon, and students who left with the last one.
// It may run any number of times at once: a student whom somebody else works on is left
// to them or to the next sweep. It returns how many students it looked at.
func (o *Service) Sweep(ctx context.Context) (students int, err error) {
	today := o.today()
	var busy []id.User
	for {
		n, skipped, err := o.sweepSome(ctx, today, busy)
		if err != nil {
			return students, fmt.Errorf("telling what the calendar did: %w", err)
		}
		students += n
		busy = append(busy, skipped...)
		if n+len(skipped) == 0 {
			return students, nil
		}
	}
}

// dueStudent is a student of the batch, with what is known under the lock.
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

// tryLock takes the locks that are free. One that is not is never waited for: who waits
// for one lock with others in hand is how deadlocks come about.
func tryLock(ctx context.Context, tx *pg.Tx, due []course.Due) ([]*dueStudent, error) {
	batch := make([]*dueStudent, len(due))
	var b pg.Batch
	for i, d := range due {
		batch[i] = &dueStudent{Due: d}
		b.TryLock(pg.LockEmail, d.Email, &batch[i].locked)
	}
	return batch, b.Send(ctx, tx)
}

// notify reads the students anew, now that nobody else changes them, and tells and
// remembers what is new. Who was told in the meantime has nothing new.
func (o *Service) notify(ctx context.Context, tx *pg.Tx, batch []*dueStudent, today clock.Date) error {
	var read, write pg.Batch
	for _, f := range batch {
		load(&read, f.Organization, f.User, &f.snapshot)
	}
	if err := read.Send(ctx, tx); err != nil {
		return err
	}
	// Who got another address meanwhile has another lock now, and stays due.
	batch = slices.DeleteFunc(batch, func(f *dueStudent) bool { return string(f.snapshot.Account.Email) != f.Email })
	now := o.Clock()
	events := map[id.Organization][]webhook.Event{}
	var order []id.Organization
	for _, f := range batch {
		if _, known := events[f.Organization]; !known {
			order = append(order, f.Organization)
		}
		events[f.Organization] = slices.Concat(events[f.Organization], notify.Changes(f.snapshot, f.snapshot, today), notify.Expiring(f.snapshot, today))
		saveNotified(&write, f, today, now)
		if notify.Rejoins(f.snapshot, f.snapshot, today, today) {
			result.QueueRejoin(&write, f.Organization, now, f.User)
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
	return nil
}

// saveNotified writes every enrollment of the student, changed or not: its next day may be
// one that was not known yet.
func saveNotified(b *pg.Batch, f *dueStudent, today clock.Date, now time.Time) {
	for _, e := range f.snapshot.Enrollments {
		if e.DaysLeft(today) > 0 {
			e = e.MarkExpiring()
		}
		course.Save(b, f.Organization, e.MarkNotified(today), today, now)
	}
}

// load queues the reading of what the organization has of the user.
func load(b *pg.Batch, in id.Organization, user id.User, l *notify.Snapshot) {
	student.LoadByID(b, user, &l.Account)
	org.LoadMember(b, in, user, &l.Member)
	course.LoadEnrollments(b, in, user, &l.Enrollments)
}
