// Package result holds what students did: test sessions, quizzes and assessments, on
// their way or final, and the list of final results in the order in which they became so
// (reference: results#order).
//
// Positions make that list safe to follow. They are drawn from a counter of the
// organization, whose row is the last lock of the transaction that finalizes and is held
// until it commits: a position becomes visible only after all lower ones, so a reader who
// stores the last one has missed nothing. A result that becomes final anew takes a new
// position and leaves the old one.
//
// Who may see a result is judged on reading, so a reader passes by those of a student who
// is not in the organization's scope just then. Whatever brings a student into scope owes
// the student's results new positions, in its transaction (QueueRejoin); the worker gives
// them a little later (PendingRejoins, Rejoin).
package result

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// State is how far a piece of work is.
type State string

// The states. Finished and Released are final.
const (
	Started  State = "started"
	Held     State = "held"     // done, and waiting for review, marking or feedback
	Finished State = "finished" // done, and nobody reviews it
	Released State = "released" // reviewed, or its feedback was sent
)

// Final says whether the result can be shown.
func (s State) Final() bool { return s == Finished || s == Released }

// After is the state that work in state s has once it is reported as next. Reports may
// come late: what was done does not become started again, and what was released stays so
// unless it is held anew.
func (s State) After(next State) State {
	if next == Started && s != "" || next == Finished && s == Released {
		return s
	}
	return next
}

// Attempt is why the student did the work (reference: results#result-fields).
type Attempt string

// The attempts.
const (
	Practice        Attempt = "practice"
	Assigned        Attempt = "assigned"
	TestingCenter   Attempt = "testing_center"
	SectionPractice Attempt = "section_practice"
)

// Result is one piece of work. Score and what follows it are set once it is scored.
type Result struct {
	Ref         string // the id on the wire
	Kind        string
	Type        string
	User        id.User
	Item        id.Item
	Assignment  id.Assignment // 0: none
	Attempt     Attempt
	Section     string // practised alone; "" for the whole
	State       State
	StartedAt   *time.Time
	CompletedAt *time.Time
	ReleasedAt  *time.Time
	Score       *decimal.Number
	MaxScore    *decimal.Number
	Sections    json.RawMessage // an object; nil: none
	FinalAt     *time.Time
	Position    int64 // 0: not final
}

// Alike says whether readers see the same of two looks of a result.
func (r Result) Alike(o Result) bool {
	return r.State.Final() == o.State.Final() && r.Type == o.Type && r.User == o.User && r.Item == o.Item &&
		r.Attempt == o.Attempt && r.Section == o.Section && equal(r.Score, o.Score) && equal(r.MaxScore, o.MaxScore) &&
		string(r.Sections) == string(o.Sections) && sameTime(r.StartedAt, o.StartedAt) &&
		sameTime(r.CompletedAt, o.CompletedAt) && sameTime(r.ReleasedAt, o.ReleasedAt)
}

// Same says whether nothing at all differs.
func (r Result) Same(o Result) bool {
	return r.Alike(o) && r.State == o.State && r.Assignment == o.Assignment
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// Change is a result to be stored.
type Change struct {
	Result
	New    bool // there was none under its ref
	Places bool // it is final, or final anew: it takes the next position
}

// Lock reads the results of the refs under row locks, taken in the order of the refs.
func Lock(ctx context.Context, tx *pg.Tx, org id.Organization, refs []string) (map[string]Result, error) {
	all, err := lockSome(ctx, tx, org, refs)
	byRef := make(map[string]Result, len(all))
	for _, r := range all {
		byRef[r.Ref] = r
	}
	return byRef, err
}

// ErrRaced means that somebody else stored a result that Lock had not found: begin again.
var ErrRaced = errors.New("result: another transaction stored the same result")

// Save stores the changes, in the order in which they are to be read, and takes their
// positions: it has to be the last statement of the transaction. The caller has locked
// the results that are not new. ErrRaced when a new one was made meanwhile.
func Save(ctx context.Context, tx *pg.Tx, org id.Organization, changes []Change, now time.Time) error {
	if len(changes) == 0 {
		return nil
	}
	fresh, changed := 0, 0
	for _, c := range changes {
		if c.New {
			fresh++
		} else {
			changed++
		}
	}
	inserted, updated, err := save(ctx, tx, org, changes, now)
	if err == nil && (inserted != fresh || updated != changed) {
		return ErrRaced
	}
	return err
}

// settled is how long after a return its results are placed anew: until then a reader may
// still judge by the day before, or by a clock that is behind.
const settled = time.Minute

// QueueRejoin queues the promise that the results of the users are placed anew: of users
// whom the transaction, or the calendar, brings into the organization's scope. Readers
// have passed by whatever was final meanwhile, and may have passed by what was final
// before. It locks nothing that others may hold, and whoever has no results may be among
// the users.
func QueueRejoin(b *pg.Batch, org id.Organization, now time.Time, users ...id.User) {
	if len(users) > 0 {
		queueReturns(b, org, users, now.Add(settled))
	}
}

// Return is a student who came back, and whose results are to be placed anew.
type Return struct {
	ID           int64
	Organization id.Organization
	User         id.User
}

// PendingRejoins lists the first returns, up to limit, that have settled by now.
func PendingRejoins(ctx context.Context, q pg.Querier, now time.Time, limit int) ([]Return, error) {
	return selectReturns(ctx, q, now, limit)
}

// Rejoin gives new positions to all final results of the students who came back to one
// organization, in the order of the old ones. It takes the organization's counter, so it
// has to come last in its transaction. A return that somebody else took is passed over.
func Rejoin(ctx context.Context, tx *pg.Tx, org id.Organization, returns []Return) error {
	users, err := deleteReturns(ctx, tx, returns)
	if err != nil || len(users) == 0 {
		return err
	}
	// Whatever becomes final after this was never out of scope.
	refs, err := lockPositioned(ctx, tx, org, users)
	if err != nil || len(refs) == 0 {
		return err
	}
	return replace(ctx, tx, org, refs)
}

// Person is what finalizing needs to know of a user in an organization.
type Person struct {
	User                       id.User
	Email, FirstName, LastName string
	InScope                    bool // an active student, or one with access today by an enrollment; no staff
}

// People reads the users who are or were members of the organization or enrolled in it;
// others are not in the answer.
func People(ctx context.Context, q pg.Querier, org id.Organization, users []id.User, today clock.Date) (map[id.User]Person, error) {
	all, err := selectPeople(ctx, q, org, users, today)
	byID := make(map[id.User]Person, len(all))
	for _, p := range all {
		byID[p.User] = p
	}
	return byID, err
}
