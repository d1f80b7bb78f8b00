// Package result holds what students did: test sessions, quizzes and assessments, final or not, and the
// list of final results in the order in which they became final (reference: results#order).
//
// Readers can follow that list safely by position. Positions come from a counter of the organization.
// Its row is the last lock of a transaction that makes results final, and is held until the commit. So a
// position becomes visible only after all lower ones, and a reader who stores the last one has missed
// nothing. A result that becomes final again, with other values, moves to a new position.
//
// The list shows results of people who are in the organization's scope when it is read, and a reader
// skips those of others. So a transaction that brings a student into scope gives the student's results
// new positions (Relist).
package result

import (
	"encoding/json"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// State is the progress of a piece of work.
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

// After returns the state of work in state s after it is reported as next. Reports may come late: work
// that is done does not become started again, and released work stays released unless it is held again.
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

// Alike says whether readers see the same in both results.
func (r Result) Alike(o Result) bool {
	return r.State.Final() == o.State.Final() && r.Type == o.Type && r.User == o.User && r.Item == o.Item &&
		r.Attempt == o.Attempt && r.Section == o.Section && equal(r.Score, o.Score) && equal(r.MaxScore, o.MaxScore) &&
		string(r.Sections) == string(o.Sections) && sameTime(r.StartedAt, o.StartedAt) &&
		sameTime(r.CompletedAt, o.CompletedAt) && sameTime(r.ReleasedAt, o.ReleasedAt)
}

// Same says whether nothing differs at all.
func (r Result) Same(o Result) bool {
	return r.Alike(o) && r.State == o.State && r.Assignment == o.Assignment
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }

// Key names a result: refs are unique within an organization.
type Key struct {
	Organization id.Organization
	Ref          string
}

// Change is a result to be stored.
type Change struct {
	Organization id.Organization
	Result
	New    bool // there was none under its ref
	Places bool // it became final, now or again, and takes the next position
}

// Raced says whether a transaction failed because another one stored a result that Lock had not found.
// Run it again then.
func Raced(err error) bool { return pg.Violates(err, "results_pkey") }

// Save queues the changes and gives them positions in their order, each organization its own. It has to
// be the last statement of the transaction but for the commit, and the caller must have locked the
// results that are not new.
func Save(b *pg.Batch, changes []Change, now time.Time) {
	if len(changes) > 0 {
		save(b, changes, now)
	}
}

// Stage is how far a piece of work has come.
type Stage string

// The stages.
const (
	StageBegun    Stage = "begun"
	StageHandedIn Stage = "handed_in" // where it became final at another time, or did not
	StageFinal    Stage = "final"
)

// Step is a stage of a piece of work and when it came to it.
type Step struct {
	Result
	ItemTitle string
	Stage     Stage
	At        time.Time
}

// Member is a user in an organization.
type Member struct {
	Organization id.Organization
	User         id.User
}

// Person is a user in an organization, as results need them.
type Person struct {
	Organization               id.Organization
	User                       id.User
	Email, FirstName, LastName string
	InScope                    bool // lists show the person's work today
}
