package roster

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Change is what a run does about one person.
type Change struct {
	N                                    int64
	Line                                 int // of the section of people; 0 for a person who is missing from it
	Action                               Action
	Effects                              Effects
	User                                 id.User // 0: made by the run
	ExternalID                           string
	Email, FirstName, LastName           string // as the run leaves them
	BeforeID                             string // where ReplaceIdentity
	BeforeEmail, BeforeFirst, BeforeLast string // where ChangeProfile
}

// Touch is what a run does, did or would do about a person that it did not make.
type Touch struct {
	Run                    id.RosterRun
	Source                 string
	Undoes                 id.RosterRun // the run that it takes back; 0: none
	State                  State
	RequestedBy, DecidedBy string
	Reasons                []Reason // why it was held
	At                     time.Time
	Line                   int // of the section of people; 0 for a person who is missing from it
	Effects                Effects
	ExternalID             string
	BeforeID               string // where ReplaceIdentity
	Email, BeforeEmail     string // where ChangeProfile
}

// Remark is an issue that a run found with the row of a person whom its source knows.
type Remark struct {
	Run    id.RosterRun
	Source string
	At     time.Time
	Issue
}

// ClassAction is what a run does about a class.
type ClassAction string

// The actions on a class and on a seat in one.
const (
	CreateClass     ClassAction = "create"
	RenameClass     ClassAction = "rename"
	RescheduleClass ClassAction = "reschedule"
	AddSeat         ClassAction = "add"
	RemoveSeat      ClassAction = "remove"
)

// ClassChange is what a run does about a class or a seat in one.
type ClassChange struct {
	N      int64
	Action ClassAction
	Class  string // its external id
	Name   string
	Before string // a renamed class's earlier name
	Days          // of a new or rescheduled class
	// A rescheduled class's earlier dates; zero: it had none.
	BeforeStartDate, BeforeEndDate clock.Date
	Person                         string // the external id of the student whose seat it is
}

// Identity is a source's external id for a person, as a change leaves it.
type Identity struct {
	ExternalID string
	BeforeID   string // where Effects has ReplaceIdentity
	User       id.User
	Effects    Effects
	Ended      bool // the change ended the membership
}

// SaveIdentities carries out the effects on external ids.
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

// SaveClasses carries out changes of classes and of seats in them.
func SaveClasses(ctx context.Context, tx *pg.Tx, r Run, changes []ClassChange) error {
	var b pg.Batch
	for _, a := range []ClassAction{CreateClass, RenameClass, RescheduleClass, RemoveSeat, AddSeat} {
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
