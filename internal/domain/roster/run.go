package roster

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
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
	Waiting   State = "held"      // a guard wants a person to look at it
	Discarded State = "discarded" // by that person
	Refused   State = "refused"   // the file cannot be used
	Undone    State = "undone"    // applied, and taken back by another run
)

// Over says whether the run has come to an end or waits for a person.
func (s State) Over() bool { return s != Uploading && s != Queued && s != Applying }

// Source is where rosters come from.
type Source struct {
	ID                   id.RosterSource
	Name                 string
	AuthoritativeEnabled bool
	HadEnrollments       bool
}

// DefaultSource is the source of an upload that names none.
const DefaultSource = "default"

const maxSource = 100

// ParseSource reads a source's label; "" is the default one. Invalid when it is too long or
// has characters that cannot be shown.
func ParseSource(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return DefaultSource, nil
	case utf8.RuneCountInString(text) > maxSource:
		return "", fault.Field("source", "too_long", "source: send at most %d characters", maxSource)
	case !utf8.ValidString(text) || strings.IndexFunc(text, unicode.IsControl) >= 0:
		return "", fault.Field("source", "invalid", "source: contains characters that cannot be shown; remove them")
	}
	return text, nil
}

// PutSource makes a source or changes whether it may send authoritative snapshots; nil
// keeps what is there.
func PutSource(ctx context.Context, q pg.Querier, org id.Organization, name string, enabled *bool, now time.Time) (Source, error) {
	return upsertSource(ctx, q, org, name, enabled, now)
}

// FindSource reads a source by its name; the zero Source, which may not send snapshots,
// when nothing came from it yet.
func FindSource(ctx context.Context, q pg.Querier, org id.Organization, name string) (Source, error) {
	s, err := selectSource(ctx, q, org, name)
	if pg.None(err) {
		return Source{Name: name}, nil
	}
	return s, err
}

// ErrNotEnabled refuses a snapshot from a source that may not send any.
var ErrNotEnabled = fault.New(fault.Forbidden, "authoritative_not_enabled",
	"mode: authoritative_snapshot is not enabled for this source; have a platform administrator enable it, or send additive_only")

// Counts are how many people, and places in classes, a run changes.
type Counts struct {
	Create     int
	Update     int // deactivations included
	Skip       int
	Deactivate int

	ClassesCreated int
	ClassesRenamed int
	SeatsAdded     int
	SeatsRemoved   int
}

// Run is one import, preview or undoing.
type Run struct {
	ID             id.RosterRun
	Organization   id.Organization
	Source         Source
	Undoes         id.RosterRun // 0: an import
	Mode           Mode
	DryRun         bool
	Form           Form
	State          State
	RequestedBy    string
	Size           int64 // bytes of the upload
	Counts         Counts
	Issues         int // all of them, also where fewer are kept
	HasEnrollments bool
	Reasons        []Reason
	FaultCode      string // of a refused one
	Fault          string
	Stamp          time.Time
	PeopleDone     int64
	ClassesDone    int64
	DecidedBy      string
	Approved       *int // the deactivations that whoever approved was shown
	CreatedAt      time.Time
	FinishedAt     time.Time
}

// Draft is what a run is asked to do.
type Draft struct {
	Source Source
	Mode   Mode
	DryRun bool
	Form   Form
	Size   int64 // bytes of the upload
}

// Begin makes a run that waits for its upload; what it is to do comes with Submit.
func Begin(ctx context.Context, q pg.Querier, org id.Organization, by string, now time.Time) (id.RosterRun, error) {
	return insertRun(ctx, q, org, 0, by, now)
}

// maxUnfinished is how many runs of an organization may wait.
const maxUnfinished = 8

// Submit hands a run over once its upload is complete. Runs of one organization go one by
// one. Unavailable when too many wait already.
func Submit(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, d Draft, now time.Time) error {
	if err := lock(ctx, tx, org); err != nil {
		return err
	}
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
	if waiting > 0 {
		return nil // its turn comes when those are over
	}
	return outbox.Add(ctx, tx, task.RosterRun, int64(run), org, now)
}

func lock(ctx context.Context, tx *pg.Tx, org id.Organization) error {
	return pg.Lock(ctx, tx, pg.LockRoster, strconv.FormatInt(int64(org), 10))
}

// Drop forgets a run whose upload failed.
func Drop(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun) error {
	return deleteUploading(ctx, q, org, run)
}

// Find reads a run. NotFound when the organization has no such.
func Find(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun) (Run, error) {
	r, err := selectRun(ctx, q, org, run)
	if pg.None(err) {
		return Run{}, fault.New(fault.NotFound, "not_found", "the organization has no roster run %d", run)
	}
	return r, err
}

// List reads runs, the newest first, from below the given one on (0: the newest).
func List(ctx context.Context, q pg.Querier, org id.Organization, below id.RosterRun, limit int) ([]Run, error) {
	return selectRuns(ctx, q, org, below, limit)
}

// WaitingRuns reads the runs that wait for a decision, the newest first, at most so many.
func WaitingRuns(ctx context.Context, q pg.Querier, org id.Organization, limit int) ([]Run, error) {
	return selectWaiting(ctx, q, org, limit)
}

// Take reads a run for whoever works on it, under a lock that keeps a second worker out.
func Take(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun) (Run, error) {
	return lockRun(ctx, tx, org, run)
}

// Plan stores what a run's planning came to; the run's changes are stored before.
func Plan(ctx context.Context, tx *pg.Tx, r Run, now time.Time) error {
	return updatePlan(ctx, tx, r, now)
}

// Finish ends a run, or halts it, in the state it has in r; it wakes who waits for it and
// gives the organization's next run its turn.
func Finish(ctx context.Context, tx *pg.Tx, r Run, now time.Time) error {
	if err := lock(ctx, tx, r.Organization); err != nil {
		return err
	}
	if err := setFinished(ctx, tx, r, now); err != nil {
		return err
	}
	if r.State != Waiting {
		if err := deleteChunks(ctx, tx, r.ID); err != nil {
			return err
		}
	}
	tx.Wake(Channel, strconv.FormatInt(int64(r.ID), 10))
	next, err := selectNext(ctx, tx, r.Organization)
	if pg.None(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return outbox.Add(ctx, tx, task.RosterRun, int64(next), r.Organization, now)
}

// Approve lets a held run be planned again and applied. NotFound; Conflict when it is not
// held, or when the source has sent something newer that was applied.
func Approve(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, by string, now time.Time) error {
	r, err := decide(ctx, tx, org, run, Waiting)
	if err != nil {
		return err
	}
	if err := setApproved(ctx, tx, r, by, now); err != nil {
		return err
	}
	return Submit(ctx, tx, org, run, r.draft(), now)
}

// Discard ends a held run without applying it. Faults as Approve's.
func Discard(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, by string, now time.Time) error {
	r, err := lockIn(ctx, tx, org, run, Waiting)
	if err != nil {
		return err
	}
	if err := setDiscarded(ctx, tx, r, by, now); err != nil {
		return err
	}
	return deleteChunks(ctx, tx, run)
}

// Undo makes and submits a run that takes an applied one back, wherever nothing has
// changed since. Faults as Approve's.
func Undo(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, by string, now time.Time) (id.RosterRun, error) {
	r, err := decide(ctx, tx, org, run, Applied)
	if err != nil {
		return 0, err
	}
	if r.Undoes != 0 {
		return 0, fault.New(fault.Conflict, "run_state", "run %d took another one back and is not taken back itself; import the file again", run)
	}
	undo, err := insertRun(ctx, tx, org, run, by, now)
	if err != nil {
		return 0, err
	}
	return undo, Submit(ctx, tx, org, undo, Draft{Source: r.Source, Mode: r.Mode}, now)
}

func (r Run) draft() Draft {
	return Draft{Source: r.Source, Mode: r.Mode, DryRun: r.DryRun, Form: r.Form, Size: r.Size}
}

// decide reads a run about which a person has decided something.
func decide(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, want State) (Run, error) {
	r, err := lockIn(ctx, tx, org, run, want)
	if err != nil {
		return r, err
	}
	newer, err := selectNewer(ctx, tx, r)
	if err == nil && newer != 0 {
		err = fault.New(fault.Conflict, "run_outdated", "run %d of the same source is newer; this one can only be discarded or left as it is", newer)
	}
	return r, err
}

// lockIn takes the organization's lock and then the run's, which has to be in the state. One
// that is not is found without waiting: the worker that has it in hand may keep it for long,
// and comes for the organization's lock at its end.
func lockIn(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun, want State) (r Run, err error) {
	if err := lock(ctx, tx, org); err != nil {
		return Run{}, err
	}
	if r, err = selectRun(ctx, tx, org, run); err == nil {
		err = r.want(want)
	}
	if err == nil {
		r, err = lockRun(ctx, tx, org, run)
	}
	if err == nil {
		err = r.want(want)
	}
	return r, missing(err, run)
}

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

// TakenBack marks the run that an undoing run has taken back.
func TakenBack(ctx context.Context, tx *pg.Tx, r Run, now time.Time) error {
	return setUndone(ctx, tx, r.Organization, r.Undoes, r.RequestedBy, now)
}

// Clear removes uploads that were never completed, and the details of runs that are older
// than kept; the runs themselves stay.
func Clear(ctx context.Context, q pg.Querier, abandoned, kept time.Time) error {
	return clearOld(ctx, q, abandoned, kept)
}

// NewWatch makes a watch by which requests wait for runs.
func NewWatch(db *pg.DB) *pg.Watch { return pg.NewWatch(db, Channel) }

// Await waits until the run has come to an end or a halt, for the limit at most:
// context.DeadlineExceeded after it.
func Await(ctx context.Context, q pg.Querier, w *pg.Watch, org id.Organization, run id.RosterRun, limit time.Duration) (r Run, err error) {
	err = w.Until(ctx, strconv.FormatInt(int64(run), 10), limit, func(ctx context.Context) (bool, error) {
		r, err = Find(ctx, q, org, run)
		return r.State.Over(), err
	})
	return r, err
}

// ReviewURL is the address of a run's page in the console; base is the public base address.
func ReviewURL(base, slug string, run id.RosterRun) string {
	return base + "/console/" + slug + "/roster-runs/" + strconv.FormatInt(int64(run), 10) + "/"
}
