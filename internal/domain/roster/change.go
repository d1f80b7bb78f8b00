package roster

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Change is what a run does about one person.
type Change struct {
	N                                    int64
	Line                                 int // of people.csv; 0 for who is missing from it
	Action                               Action
	Effects                              Effects
	User                                 id.User // 0: made by the run
	ExternalID                           string
	Email, FirstName, LastName           string // as the run leaves them
	BeforeID                             string // where ReplaceIdentity
	BeforeEmail, BeforeFirst, BeforeLast string // where ChangeProfile
}

// ClassAction is what a run does about a class.
type ClassAction string

// The actions: to a class, and to a student's place in one.
const (
	CreateClass ClassAction = "create"
	RenameClass ClassAction = "rename"
	AddSeat     ClassAction = "add"
	RemoveSeat  ClassAction = "remove"
)

// ClassChange is what a run does about a class or a place in one.
type ClassChange struct {
	N      int64
	Action ClassAction
	Class  string // its external id
	Name   string
	Before string // a renamed class's earlier name
	Person string // the external id of who is added or removed
}

// AddIssues, AddChanges and AddClassChanges store parts of a plan; first is the place of
// the first issue.
func AddIssues(ctx context.Context, q pg.Querier, run id.RosterRun, first int64, told []Issue) error {
	return copyIssues(ctx, q, run, first, told)
}

// AddChanges stores changes.
func AddChanges(ctx context.Context, q pg.Querier, run id.RosterRun, changes []Change) error {
	return copyChanges(ctx, q, run, changes)
}

// AddClassChanges stores changes of classes.
func AddClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, changes []ClassChange) error {
	return copyClassChanges(ctx, q, run, changes)
}

// Changes reads up to limit changes after the given place.
func Changes(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int) ([]Change, error) {
	return selectChanges(ctx, q, run, after, limit)
}

// NextChanges reads the changes of a stretch of the given length, in places, that begins
// with the first change after the given place; none after the last.
func NextChanges(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, length int) ([]Change, error) {
	return selectNextChanges(ctx, q, run, after, length)
}

// NextClassChanges does so for changes of classes, whose places have no gaps.
func NextClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, length int) ([]ClassChange, error) {
	return selectNextClassChanges(ctx, q, run, after, length)
}

// ChangesOf reads up to limit changes of one action after the given place.
func ChangesOf(ctx context.Context, q pg.Querier, run id.RosterRun, action Action, after int64, limit int) ([]Change, error) {
	return selectChangesOf(ctx, q, run, action, after, limit)
}

// Issues reads up to limit issues after the given place; last is the place of the last.
func Issues(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int) (told []Issue, last int64, err error) {
	return selectIssues(ctx, q, run, after, limit)
}

// ClearPlan removes an earlier plan of the run.
func ClearPlan(ctx context.Context, q pg.Querier, run id.RosterRun) error {
	return deletePlan(ctx, q, run)
}

// Progress notes how far the changes of a run are carried out.
func Progress(ctx context.Context, q pg.Querier, r Run) error { return updateProgress(ctx, q, r) }

// Identity is a source's external id for a person, as a change leaves it.
type Identity struct {
	ExternalID string
	BeforeID   string // where Effects has ReplaceIdentity
	User       id.User
	Effects    Effects
	Ended      bool // the change ended the membership
}

// SaveIdentities carries out what the changes say about external ids.
func SaveIdentities(ctx context.Context, tx *pg.Tx, r Run, all []Identity) error {
	var b pg.Batch
	pick := func(what Effects) (out []Identity) {
		for _, i := range all {
			if i.Effects&what != 0 {
				out = append(out, i)
			}
		}
		return out
	}
	queueDropIdentities(&b, r, pick(DropIdentity))
	queueReplaceIdentities(&b, r, pick(ReplaceIdentity))
	queueInsertIdentities(&b, r, pick(CreateIdentity))
	queueMarkIdentities(&b, r, pick(MarkPresent|Activate), true)
	queueMarkIdentities(&b, r, pick(MarkAbsent), false)
	return b.Send(ctx, tx)
}

// CopyIdentities makes external ids for people who were made in this transaction.
func CopyIdentities(ctx context.Context, tx *pg.Tx, r Run, all []Identity) error {
	if len(all) == 0 {
		return nil
	}
	return copyIdentities(ctx, tx, r, all)
}

// Endings reads when imports ended the memberships of the users, by user.
func Endings(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) (ended []Ending, err error) {
	if len(users) == 0 {
		return nil, nil
	}
	return selectEndings(ctx, q, org, users)
}

// SaveClasses carries out changes of classes and of places in them.
func SaveClasses(ctx context.Context, tx *pg.Tx, r Run, changes []ClassChange) error {
	var b pg.Batch
	for _, a := range []ClassAction{CreateClass, RenameClass, RemoveSeat, AddSeat} {
		var of []ClassChange
		for _, c := range changes {
			if c.Action == a {
				of = append(of, c)
			}
		}
		queueClassChanges(&b, r, a, of)
	}
	return b.Send(ctx, tx)
}
