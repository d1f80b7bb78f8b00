// Package enrollment changes enrollments and memberships other than by provisioning: an
// administrator or the organization's own key changes one, or time passes (reference: courses#enrollment-status,
// students#membership, webhooks#events). The transaction that makes a change also records
// its events, once each.
//
// A change holds the lock of the student's address, as a provisioning call does, so that only
// one at a time compares what receivers were notified of with what is true.
package enrollment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
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

// Service changes enrollments and memberships. It must not be copied.
type Service struct {
	DB    *pg.DB
	Clock clock.Clock
	Zone  *time.Location // the platform's: decides today
	// InTurn has Sweep take one page after the other, so that the same enrollments always give the same events in the
	// same order.
	InTurn bool

	once  sync.Once
	calls *gather.Group[id.Organization, gathered, outcome]
}

// Enrollment is an enrollment with its student, after a change.
type Enrollment struct {
	Student wire.Person
	wire.Enrollment
	State course.State
}

// ChangeEnrollment changes an enrollment's state and dates. A new end date moves the end of the
// grace period, by the organization's grace days. NotFound outside the organization;
// Invalid for dates in the wrong order.
func (o *Service) ChangeEnrollment(ctx context.Context, by audit.Actor, in org.Organization, which id.Enrollment, c course.Change) (Enrollment, error) {
	e, _, err := o.changeEnrollment(ctx, audit.Entry{Actor: by, Action: "changed enrollment"}, in, which,
		func(e course.Enrollment, t course.Terms, _ clock.Date) (course.Enrollment, error) {
			return c.Apply(e, t)
		})
	return e, err
}

// End ends the access of an enrollment today, or on an earlier end date than it has, if end is not the zero
// Date. changed says whether there was anything to do. NotFound outside the organization; Invalid and
// Conflict as for course.End and course.Shorten.
func (o *Service) End(ctx context.Context, by audit.Actor, in org.Organization, which id.Enrollment, end clock.Date) (e Enrollment, changed bool, err error) {
	if end.IsZero() {
		return o.changeEnrollment(ctx, audit.Entry{Actor: by, Action: "ended access"}, in, which, course.End)
	}
	return o.changeEnrollment(ctx, audit.Entry{Actor: by, Action: "shortened access"}, in, which, course.Shorten(end))
}

// Suspend takes the access of an enrollment away until Resume; see End.
func (o *Service) Suspend(ctx context.Context, by audit.Actor, in org.Organization, which id.Enrollment) (e Enrollment, changed bool, err error) {
	return o.changeEnrollment(ctx, audit.Entry{Actor: by, Action: "suspended enrollment"}, in, which, course.Suspend)
}

// Resume lifts a suspension by Suspend; see End.
func (o *Service) Resume(ctx context.Context, by audit.Actor, in org.Organization, which id.Enrollment) (e Enrollment, changed bool, err error) {
	return o.changeEnrollment(ctx, audit.Entry{Actor: by, Action: "resumed enrollment"}, in, which, course.Resume)
}

// rule is what a change makes of an enrollment on the day today.
type rule func(e course.Enrollment, t course.Terms, today clock.Date) (course.Enrollment, error)

func (o *Service) changeEnrollment(ctx context.Context, entry audit.Entry, in org.Organization, which id.Enrollment, apply rule) (
	e Enrollment, changed bool, err error,
) {
	user, err := course.Holder(ctx, o.DB, in.ID, which)
	if err != nil {
		return Enrollment{}, false, err
	}
	var after course.Enrollment
	var differs bool
	entry.Organization = in.ID
	snapshot, err := o.change(ctx, entry, user, func(l *notify.Snapshot, _ *pg.Batch, now time.Time) (_ string, err error) {
		differs = false // the transaction may run again
		i := slices.IndexFunc(l.Enrollments, func(e course.Enrollment) bool { return e.ID == which })
		if i < 0 {
			return "", fault.New(fault.NotFound, "not_found", "the organization has no enrollment %d", which)
		}
		before := l.Enrollments[i]
		terms := course.Terms{AccessMonths: in.Defaults.AccessMonths, GraceDays: in.Defaults.GracePeriodDays}
		after, err = apply(before, terms, clock.DateIn(now, o.Zone))
		if err != nil || !after.Differs(before) {
			return "", err
		}
		l.Enrollments[i], differs = after, true
		return fmt.Sprintf("%s in %s", l.Account.Email, after.Course.Label()), nil
	})
	if err != nil { // it may still be under way, and write after
		return Enrollment{}, false, err
	}
	return Enrollment{wire.NewPerson(snapshot.Account), wire.NewEnrollment(after, o.today()), after.State}, differs, nil
}

// Member is a membership with its person.
type Member struct {
	wire.Person
	Membership wire.Membership
}

// SetMember makes a membership active or inactive. NotFound when the user has none.
func (o *Service) SetMember(ctx context.Context, by audit.Actor, in id.Organization, user id.User, status org.MemberStatus) (Member, error) {
	entry := audit.Entry{Organization: in, Actor: by, Action: "deactivated member"}
	if status == org.MemberActive {
		entry.Action = "activated member"
	}
	snapshot, err := o.change(ctx, entry, user, func(l *notify.Snapshot, b *pg.Batch, now time.Time) (string, error) {
		if l.Member.Role == "" {
			return "", errNoMember(user)
		}
		if l.Member.Status == status {
			return "", nil
		}
		org.SetMemberStatus(b, in, user, status, now)
		l.Member.Status = status
		return string(l.Account.Email), nil
	})
	return Member{wire.NewPerson(snapshot.Account), wire.Membership{Role: snapshot.Member.Role, Status: snapshot.Member.Status}}, err
}

// RemoveMember ends a membership. Enrollments, and what was done in them, stay. NotFound
// when the user has none.
func (o *Service) RemoveMember(ctx context.Context, by audit.Actor, in id.Organization, user id.User) error {
	entry := audit.Entry{Organization: in, Actor: by, Action: "removed member"}
	_, err := o.change(ctx, entry, user, func(l *notify.Snapshot, b *pg.Batch, _ time.Time) (string, error) {
		if l.Member.Role == "" {
			return "", errNoMember(user)
		}
		org.RemoveMember(b, in, user)
		l.Member = org.Member{}
		return string(l.Account.Email), nil
	})
	return err
}

func errNoMember(user id.User) error {
	return fault.New(fault.NotFound, "not_found", "user %d is no member of the organization", user)
}

func (o *Service) today() clock.Date { return clock.DateIn(o.Clock(), o.Zone) }

// errMoved means that the person's address changed while this waited for the lock of the old
// one.
var errMoved = errors.New("the person's address has changed")

// maxMoves is how often a change is tried when that happens.
const maxMoves = 5

// edit changes a snapshot of a person, and queues what is not about enrollments. It returns what
// it has changed as the audit log calls it, or "" for nothing.
type edit func(l *notify.Snapshot, b *pg.Batch, now time.Time) (target string, err error)

// change lets do change a snapshot of the person in the entry's organization, under the person's
// lock, then stores what is different, records its events and writes the audit entry. Changes of an organization
// that come while one is made go together into the next transaction.
func (o *Service) change(ctx context.Context, entry audit.Entry, user id.User, do edit) (notify.Snapshot, error) {
	o.once.Do(func() { o.calls = gather.New[id.Organization](o.together) })
	made, err := o.calls.Do(ctx, entry.Organization, gathered{entry, user, do, obs.Traceparent(ctx)})
	if err != nil || !made.alone {
		return made.after, cmp.Or(err, made.err)
	}
	return o.changeAlone(ctx, entry, user, do)
}

// changeAlone waits for the person's lock.
func (o *Service) changeAlone(ctx context.Context, entry audit.Entry, user id.User, do edit) (after notify.Snapshot, err error) {
	for range maxMoves {
		if after, err = o.changeOnce(ctx, entry, user, do); !errors.Is(err, errMoved) {
			break
		}
	}
	return after, err
}

func (o *Service) changeOnce(ctx context.Context, entry audit.Entry, user id.User, do edit) (after notify.Snapshot, err error) {
	in := entry.Organization
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		now := o.Clock()
		today := clock.DateIn(now, o.Zone)
		before, err := lock(ctx, tx, in, user)
		if err != nil {
			return err
		}
		after = before
		after.Enrollments = slices.Clone(before.Enrollments)
		var b pg.Batch
		entry.At = now
		if entry.Target, err = do(&after, &b, now); err != nil {
			return err
		}
		events := notify.Changes(before, after, today)
		save(&b, in, before, after, today, now)
		if err := b.Send(ctx, tx); err != nil {
			return fmt.Errorf("writing a change: %w", err)
		}
		if err := touchPlans(ctx, tx, in, before, after, now); err != nil {
			return err
		}
		if entry.Target != "" {
			if err := audit.Write(ctx, tx, entry); err != nil {
				return err
			}
		}
		if err := webhook.Record(ctx, tx, in, now, events...); err != nil {
			return err
		}
		var relist pg.Batch
		if notify.Rejoins(before, after, today, notify.CommitDay(now, o.Zone)) {
			notify.Relist(&relist, in, user)
		}
		return relist.Send(ctx, tx)
	})
	return after, err
}

// touchPlans queues a check of the test plans whose course now gives other access.
func touchPlans(ctx context.Context, tx *pg.Tx, in id.Organization, before, after notify.Snapshot, now time.Time) error {
	changed := touchedBy(before, after)
	if len(changed) == 0 {
		return nil
	}
	return plan.TouchEnrollments(ctx, tx, in, now, changed...)
}

// touchedBy are the enrollments that now give other access.
func touchedBy(before, after notify.Snapshot) (changed []id.Enrollment) {
	for i, e := range after.Enrollments {
		if b := before.Enrollments[i]; e.State != b.State || e.Window != b.Window {
			changed = append(changed, e.ID)
		}
	}
	return changed
}

// lock takes the person's lock and reads a snapshot. errMoved when the lock is of an old address.
func lock(ctx context.Context, tx *pg.Tx, in id.Organization, user id.User) (l notify.Snapshot, err error) {
	a, err := student.Find(ctx, tx, user)
	if err != nil {
		return l, err
	}
	var b pg.Batch
	b.Lock(pg.LockEmail, string(a.Email))
	load(&b, in, user, &l)
	if err := b.Send(ctx, tx); err != nil {
		return l, err
	}
	if l.Account.Email != a.Email {
		return l, errMoved
	}
	return l, nil
}

// save queues every enrollment that differs from what is stored, as notified.
func save(b *pg.Batch, in id.Organization, before, after notify.Snapshot, today clock.Date, now time.Time) {
	for i, e := range after.Enrollments {
		e = e.MarkNotified(today)
		if e.Differs(before.Enrollments[i]) {
			course.Save(b, in, e, today, now)
		}
	}
}

// load queues the reading of a snapshot.
func load(b *pg.Batch, in id.Organization, user id.User, l *notify.Snapshot) {
	student.LoadByID(b, in, user, &l.Account)
	org.LoadMember(b, in, user, &l.Member)
	course.LoadEnrollments(b, in, user, &l.Enrollments)
}
