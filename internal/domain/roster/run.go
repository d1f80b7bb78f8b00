package roster

import (
	"context"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// State is how far a run has come.
type State string

// The states.
const (
	Uploading State = "uploading"
	Queued    State = "queued"   // waits for its turn, or is being planned
	Applying  State = "applying" // planned; its changes are being carried out
	Applied   State = "applied"
	Previewed State = "previewed" // a dry run: planned, and nothing more
	Held      State = "held"      // a guard wants a person to look at it
	Discarded State = "discarded" // by that person, or by itself
	Refused   State = "refused"   // the file cannot be used
	Undone    State = "undone"    // applied, and taken back by another run
)

// Over says whether the run is over, or waits for a person.
func (s State) Over() bool { return s != Uploading && s != Queued && s != Applying }

// Counts are how many people, classes and seats in classes a run changes.
type Counts struct {
	Create     int
	Update     int // deactivations included
	Skip       int
	Deactivate int

	ClassesCreated     int
	ClassesRenamed     int
	ClassesRescheduled int
	SeatsAdded         int
	SeatsRemoved       int
}

// OfClasses is how many changes of classes and of seats in them there are.
func (c Counts) OfClasses() int {
	return c.ClassesCreated + c.ClassesRenamed + c.ClassesRescheduled + c.SeatsAdded + c.SeatsRemoved
}

// Run is an import, a preview, or the undoing of an import.
type Run struct {
	ID           id.RosterRun
	Organization id.Organization
	Source       Source       `db:"-"`
	Undoes       id.RosterRun // 0: an import
	Mode         Mode
	DryRun       bool
	Form         Form
	State        State
	RequestedBy  string
	Size         int64 // bytes of the upload
	Counts
	Issues         int // all that were found; fewer may be stored
	HasEnrollments bool
	PeopleFile     string // how the file calls its section of people, once it is planned
	Reasons        []Reason
	FaultCode      string // of a refused run
	Fault          string
	Stamp          time.Time `db:"-"` // when it was planned: the updated_at of all that it writes
	PeopleDone     int64     // the number of the last change that is carried out
	ClassesDone    int64
	DecidedBy      string
	Approved       *Approved `db:"-"` // nil: nobody has
	CreatedAt      time.Time
	FinishedAt     time.Time `db:"-"` // zero: not finished
}

// Draft says what a run is to do.
type Draft struct {
	Source Source
	Mode   Mode
	DryRun bool
	Form   Form
	Size   int64 // bytes of the upload
}

// maxUnfinished is how many runs of an organization may wait.
const maxUnfinished = 8

// Submit queues a run whose upload is complete, and makes its source when that is new. Runs of
// one organization are carried out one after the other. Unavailable when too many are waiting.
func Submit(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, run id.RosterRun, d Draft, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) (err error) {
		if err := lockOrganization(ctx, tx, org); err != nil { // before the source, to which whoever has this lock refers
			return err
		}
		draft := d // the source that it gets may be rolled back
		if draft.Source.ID == 0 {
			if draft.Source, err = lockSource(ctx, tx, org, draft.Source.Name, now); err != nil {
				return err
			}
		}
		if err := queue(ctx, tx, org, run, draft, now); err != nil {
			return err
		}
		action := "submitted roster import"
		if d.DryRun {
			action = "submitted roster preview"
		}
		return audit.Write(ctx, tx, entryOf(by, org, action, run, now))
	})
}

func entryOf(by audit.Actor, org id.Organization, action string, run id.RosterRun, now time.Time) audit.Entry {
	return audit.Entry{Organization: org, Actor: by, Action: action, Target: strconv.FormatInt(int64(run), 10), At: now}
}

// queue has a run wait for its turn. The caller has locked the organization.
func queue(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, d Draft, now time.Time) error {
	waiting, err := countUnfinished(ctx, tx, org)
	if err != nil {
		return err
	}
	if waiting >= maxUnfinished {
		return fault.New(fault.Unavailable, "too_many_runs", "%d imports of this organization are waiting already; send the same file again later", waiting)
	}
	if err := setQueued(ctx, tx, org, run, d, now); err != nil {
		return err
	}
	wakeSource(tx, d.Source.ID)
	if waiting > 0 {
		return nil // its turn comes when those are over
	}
	return outbox.Add(ctx, tx, task.RosterRun, int64(run), org, now)
}

func lockOrganization(ctx context.Context, tx *pg.Tx, org id.Organization) error {
	return pg.Lock(ctx, tx, pg.LockRoster, strconv.FormatInt(int64(org), 10))
}

// Finish stores that a run is over, or held, with the state that r has. It wakes requests that
// wait for the run and queues the organization's next one.
func Finish(ctx context.Context, tx *pg.Tx, r Run, now time.Time) error {
	if err := lockOrganization(ctx, tx, r.Organization); err != nil {
		return err
	}
	if err := setFinished(ctx, tx, r, now); err != nil {
		return err
	}
	if r.State != Held {
		if err := deleteChunks(ctx, tx, r.ID); err != nil {
			return err
		}
	}
	tx.Wake(Channel, strconv.FormatInt(int64(r.ID), 10))
	wakeSource(tx, r.Source.ID)
	next, err := selectNext(ctx, tx, r.Organization)
	if pg.None(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return outbox.Add(ctx, tx, task.RosterRun, int64(next), r.Organization, now)
}

// Approve has a held run planned again and applied. NotFound; Conflict when it is not held, or
// when a newer run of the source was applied or will be.
func Approve(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, run id.RosterRun, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		r, err := decide(ctx, tx, org, run, Held, Newer)
		if err != nil {
			return err
		}
		if err := setApproved(ctx, tx, r, by.Name, now); err != nil {
			return err
		}
		if err := queue(ctx, tx, org, run, r.draft(), now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, entryOf(by, org, "approved roster import", run, now))
	})
}

// Discard ends a held run without applying it. NotFound; Conflict when it is not held.
func Discard(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, run id.RosterRun, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		r, err := lockIn(ctx, tx, org, run, Held)
		if err != nil {
			return err
		}
		if err := setDiscarded(ctx, tx, r, by.Name, now); err != nil {
			return err
		}
		if err := deleteChunks(ctx, tx, run); err != nil {
			return err
		}
		wakeSource(tx, r.Source.ID)
		return audit.Write(ctx, tx, entryOf(by, org, "discarded roster import", run, now))
	})
}

// HeldDays is for how many days a held run waits for a decision.
const HeldDays = 30

// EndStale discards the held runs of all organizations of whose source a newer run was applied, and those that have
// waited since before the time. A run that somebody decides about meanwhile is left alone.
func EndStale(ctx context.Context, db *pg.DB, waited, now time.Time) error {
	for {
		org, run, err := selectStale(ctx, db, waited)
		if pg.None(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := Discard(ctx, db, audit.Scheduled, org, run, now); err != nil && fault.KindOf(err) != fault.Conflict {
			return err
		}
	}
}

// Undo makes and submits a run that takes back what an applied one did, wherever nothing has
// changed since. NotFound; Conflict when the run was not applied, or a later one of the source has
// changed something or may still do so.
func Undo(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, run id.RosterRun, now time.Time) (undo id.RosterRun, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		r, err := decide(ctx, tx, org, run, Applied, NewerChange)
		if err != nil {
			return err
		}
		if r.Undoes != 0 {
			return fault.New(fault.Conflict, "run_state", "run %d took another one back and is not taken back itself; import the file again", run)
		}
		if undo, err = insertRun(ctx, tx, org, run, by.Name, now); err != nil {
			return err
		}
		if err := queue(ctx, tx, org, undo, Draft{Source: r.Source, Mode: r.Mode}, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, entryOf(by, org, "took back roster import", run, now))
	})
	return undo, err
}

func (r Run) draft() Draft {
	return Draft{Source: r.Source, Mode: r.Mode, DryRun: r.DryRun, Form: r.Form, Size: r.Size}
}

// decide is lockIn for a decision that Conflicts with the newer run of the same source that find finds.
func decide(
	ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, want State,
	find func(context.Context, pg.Querier, Run) (id.RosterRun, error),
) (Run, error) {
	r, err := lockIn(ctx, tx, org, run, want)
	if err != nil {
		return r, err
	}
	newer, err := find(ctx, tx, r)
	if err == nil && newer != 0 {
		err = fault.New(fault.Conflict, "run_outdated", "run %d of the same source is newer; this one can only be discarded or left as it is", newer)
	}
	return r, err
}

// lockIn takes the organization's lock and then the run's. Conflict when the run is not in the
// state, which is found out without waiting for the run: its worker may hold it for long, and
// wants the organization's lock at its end.
func lockIn(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, want State) (r Run, err error) {
	if err := lockOrganization(ctx, tx, org); err != nil {
		return Run{}, err
	}
	if r, err = Find(ctx, tx, org, run); err == nil {
		err = r.want(want)
	}
	if err == nil {
		r, err = Lock(ctx, tx, org, run)
	}
	if err == nil {
		err = r.want(want)
	}
	return r, err
}

// missing makes NotFound of an error that says there is no such row.
func missing(err error, run id.RosterRun) error {
	if pg.None(err) {
		return fault.New(fault.NotFound, "not_found", "the organization has no roster run %d", run)
	}
	return err
}

func (r Run) want(s State) error {
	if r.State != s {
		return fault.New(fault.Conflict, "run_state", "run %d is %s and not %s", r.ID, r.State, s)
	}
	return nil
}

// NewWatch is for Await.
func NewWatch(db *pg.DB) *wake.Watch { return wake.NewWatch(db.Wakes, Channel) }

// Await waits until the run is over or held, for the limit at most: context.DeadlineExceeded
// after it.
func Await(ctx context.Context, q pg.Querier, w *wake.Watch, org id.Organization, run id.RosterRun, limit time.Duration) (r Run, err error) {
	err = w.Until(ctx, strconv.FormatInt(int64(run), 10), limit, func(ctx context.Context) (bool, error) {
		r, err = Find(ctx, q, org, run)
		return r.State.Over(), err
	})
	return r, err
}

// Lag is how many runs of all organizations are held, and for how long the oldest of them.
type Lag struct {
	Held   int
	Oldest time.Duration // 0: none is held
}

// ReviewURL is the address of a run's page in the console; base is the public base address.
func ReviewURL(base, slug string, run id.RosterRun) string {
	return base + "/console/" + slug + "/roster-runs/" + strconv.FormatInt(int64(run), 10) + "/"
}
