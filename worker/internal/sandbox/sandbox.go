// Package sandbox moves the clock of a sandbox: whatever is due by then happens in its order, each at its own
// time, done by the same services that do it in real time.
//
// A Driver is the only process that works on its sandbox, and does one thing after the other. It looks for the
// next thing that is due, of any kind, sets the clock to that time and does it. What it does is recorded by the
// services' own transactions, so a Driver that ends in the middle is followed by one that goes on with the same
// thing at the same time.
package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/reset"
	"github.com/registrar-dev/registrar/internal/flow/retention"
	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/worker/internal/handler"
)

// Config is what a Driver needs of its worker.
type Config struct {
	Box              *seal.Box
	Zone             *time.Location // the platform's
	From             netmail.Address
	PublicURL        string
	WebhookRetention int // days
	Keep             retention.Days
	MaxSize          int64 // of the database, in bytes
	Log              *slog.Logger
	Real             clock.Clock // answers to repeats of a request are kept by it

	// Send attempts what a lease holds, for sandbox.Real, and returns when that is recorded.
	Send func(context.Context, task.Deliver) error
}

// Driver works on one sandbox.
type Driver struct {
	Config
	db  *pg.DB
	org id.Organization

	mover    sandbox.Mover
	now      time.Time
	receiver sandbox.Receiver
	kept     clock.Date
	still    bool // the clock is not moved

	works       *work.Service
	assignments *assign.Service

	kinds [simulate.Kinds]kind
	tasks map[task.Kind]queue.Handler
}

// New makes the driver of the organization in db, which is the sandbox's database.
func New(db *pg.DB, org id.Organization, c Config) *Driver {
	d := &Driver{Config: c, db: db, org: org}
	now := clock.Clock(func() time.Time { return d.now })
	mails := email.Service{Box: c.Box, Caught: true}
	sender := &email.Sender{DB: db, Box: c.Box, From: c.From, PublicURL: c.PublicURL, Zone: c.Zone, Clock: now, Log: c.Log, Catch: d.catch}
	plans := &testplan.Service{DB: db, Mail: mails, Clock: now, Log: c.Log, Zone: c.Zone, PublicURL: c.PublicURL, InTurn: true}
	resets := &reset.Service{DB: db, Mail: mails, Clock: now, PublicURL: c.PublicURL}
	importer := &rosterimport.Importer{DB: db, Clock: now, Zone: c.Zone, Log: c.Log, Turns: rosterimport.NewTurns(1)}
	enrollments := &enrollment.Service{DB: db, Clock: now, Zone: c.Zone, InTurn: true}
	d.assignments = &assign.Service{DB: db, Clock: now, Zone: c.Zone}
	d.works = &work.Service{DB: db, Clock: now, Zone: c.Zone, PublicURL: c.PublicURL}
	d.tasks = handler.Maintenance{DB: db, Clock: now}.Handlers()
	d.tasks[task.EmailSend] = handler.Outbox(sender.Deliver)
	d.tasks[task.PasswordReset] = handler.Outbox(resets.Answer)
	d.tasks[task.PlanStep] = handler.Plan(plans)
	d.tasks[task.RosterRun] = handler.Outbox(importer.Run)
	d.kinds = [simulate.Kinds]kind{
		simulate.Calendar: {"the calendar of enrollments", func(ctx context.Context) (bool, error) {
			n, err := enrollments.Sweep(ctx)
			return n > 0, err
		}},
		simulate.Overdue: {"overdue and expired work", d.overdue},
		simulate.Planned: {"test plans", func(ctx context.Context) (bool, error) {
			n, err := plans.Sweep(ctx)
			return n > 0, err
		}},
		simulate.Task:     {"tasks", d.task},
		simulate.Delivery: {"webhooks", d.deliver},
		simulate.Daily:    {"daily work", d.daily},
	}
	return d
}

// kind is a kind of things that happen by the clock.
type kind struct {
	name string
	// do does what is due. It says whether there was anything.
	do func(context.Context) (bool, error)
}

// What is due and finds nothing to do is in somebody else's hands: those of a call, or of a process that moved the clock
// before and stands still, with its locks. The clock stands until they are over; PostgreSQL ends who stands still.
const (
	// retry is when a kind is looked at again that had nothing to do although nobody else was at work: a sweep in real
	// time would come by then, too.
	retry = time.Minute
	// mostWaits is for how many times 10 s others are waited for at one moment.
	mostWaits = 12
)

// sizeEvery is after how many things the size of the database is looked at. Whoever asked for the move has looked at it, too.
const sizeEvery = 500

// Move moves the clock to its target, if it has one. Without one it does what is due by now, but for webhooks: they
// wait for the next move, which says what becomes of them. It stops where it
// is once the sandbox is full (Config.MaxSize).
func (d *Driver) Move(ctx context.Context) error {
	// Whoever moved the clock before, and was killed, may have left locks of what is due.
	if _, err := pg.AwaitOthers(ctx, d.db); err != nil {
		return err
	}
	err := d.db.InTx(ctx, func(tx *pg.Tx) (err error) {
		d.mover, err = sandbox.Begin(ctx, tx, d.org)
		return err
	})
	if err != nil {
		return err
	}
	c, err := sandbox.Read(ctx, d.db, d.org)
	if err != nil {
		return err
	}
	d.now, d.receiver, d.kept, d.still = c.Now, c.Receiver, c.KeptOn, c.Target == nil
	target := c.Now
	if c.Target != nil {
		target = *c.Target
	}
	if err := d.works.Sweep(ctx); err != nil {
		return err
	}
	var notBefore [simulate.Kinds]time.Time
	var alone [simulate.Kinds]bool // had all others ended before a kind is looked at again
	waits := 0                     // for others, without anything done
	for n := 0; ; n++ {
		if n > 0 && n%sizeEvery == 0 {
			size, err := sandbox.Size(ctx, d.db)
			if err != nil {
				return err
			}
			if size > d.MaxSize {
				return d.arrive(ctx, d.now)
			}
		}
		which, at, err := d.next(ctx, notBefore, target)
		if err != nil {
			return err
		}
		if which == simulate.Kinds || at.After(target) {
			return d.arrive(ctx, target)
		}
		if at.After(d.now) {
			if err := sandbox.Set(ctx, d.db, d.mover, at, false); err != nil {
				return err
			}
			d.now = at
		}
		did, err := d.kinds[which].do(ctx)
		if err != nil {
			return fmt.Errorf("%s at %s: %w", d.kinds[which].name, clock.Format(d.now, time.UTC), err)
		}
		switch {
		case did:
			waits, alone = 0, [simulate.Kinds]bool{}
		case alone[which]:
			waits, alone[which], notBefore[which] = 0, false, d.now.Add(retry)
		case waits == mostWaits:
			return fmt.Errorf("%s at %s: somebody else has had it in hand for minutes", d.kinds[which].name, clock.Format(d.now, time.UTC))
		default:
			if alone[which], err = pg.AwaitOthers(ctx, d.db); err != nil {
				return err
			}
			waits++
		}
	}
}

// arrive ends the move, if there is one. A clock that stands still may be given a target at any moment.
func (d *Driver) arrive(ctx context.Context, at time.Time) error {
	if d.still {
		return nil
	}
	return sandbox.Set(ctx, d.db, d.mover, at, true)
}

// next is the kind that is due first, and when; simulate.Kinds where none ever is. Of days on which nothing but the
// daily work happens until the target, it is done on the last one, which does that of all.
func (d *Driver) next(ctx context.Context, notBefore [simulate.Kinds]time.Time, target time.Time) (which int, at time.Time, err error) {
	times, err := simulate.Times(ctx, d.db, d.org, d.kept, d.Zone)
	until := target
	for i, t := range times[:simulate.Daily] {
		if !t.IsZero() && (!d.still || i != simulate.Delivery) && t.Before(until) {
			until = t
		}
	}
	last := clock.DateIn(until, activity.Zone)
	if simulate.DailyOn(last).After(until) {
		last = last.AddDays(-1)
	}
	if last.After(d.kept) {
		times[simulate.Daily] = simulate.DailyOn(last)
	}
	which = simulate.Kinds
	for i, t := range times {
		if t.IsZero() || d.still && i == simulate.Delivery {
			continue
		}
		t = latest(t, notBefore[i], d.now)
		if which == simulate.Kinds || t.Before(at) {
			which, at = i, t
		}
	}
	return which, at, err
}

func latest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if o.After(t) {
			t = o
		}
	}
	return t
}

// overdue records what is overdue and expired. There was nothing to do when as much of it is left as a call has in
// hand.
func (d *Driver) overdue(ctx context.Context) (bool, error) {
	if err := d.assignments.Sweep(ctx); err != nil {
		return false, err
	}
	times, err := simulate.Times(ctx, d.db, d.org, d.kept, d.Zone)
	left := times[simulate.Overdue]
	return left.IsZero() || left.After(d.now), err
}

// task runs the task of the outbox that is due first.
func (d *Driver) task(ctx context.Context) (bool, error) {
	var t sandbox.Task
	err := d.db.InTx(ctx, func(tx *pg.Tx) (err error) {
		t, err = sandbox.Take(ctx, tx, d.mover, d.now)
		return err
	})
	if pg.None(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	work := d.tasks[t.Kind]
	if work == nil {
		return false, fmt.Errorf("there is nobody for tasks of the kind %s", t.Kind)
	}
	if err := work(ctx, task.Encode(t.Outbox)); err != nil {
		return false, err
	}
	return true, sandbox.Done(ctx, d.db, d.mover)
}

// catch keeps a mail instead of sending it.
func (d *Driver) catch(ctx context.Context, which id.Email, m mail.Message) error {
	return sandbox.Keep(ctx, d.db, d.org, sandbox.Mail{ID: which, SentAt: m.Date, Recipient: m.To.Address, Subject: m.Subject, Plain: m.Text, HTML: m.HTML})
}

// leaseTerm is the length of leases, by the sandbox's clock: nobody else asks for them.
const leaseTerm = time.Minute

// deliver attempts deliveries that are due.
func (d *Driver) deliver(ctx context.Context) (bool, error) {
	leases, _, err := dispatch.LeaseDue(ctx, d.db, d.now, leaseTerm, nil)
	if err != nil {
		return false, err
	}
	together, within := errgroup.WithContext(ctx)
	if d.receiver != sandbox.Real { // whose answers take no time
		together.SetLimit(1)
	}
	for _, l := range leases {
		together.Go(func() error { return d.attempt(within, l) })
	}
	return len(leases) > 0, together.Wait()
}
