package plan

import (
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// Status says whether a plan runs. A closed plan is kept for its history.
type Status string

// The statuses.
const (
	Active Status = "active"
	Paused Status = "paused"
	Closed Status = "closed"
)

// Pace is how often tests open.
type Pace string

// The paces, with the days from one opening to the next (reference: plans#pace).
const (
	Auto      Pace = "auto"      // adapts to results
	Intensive Pace = "intensive" // 4
	Standard  Pace = "standard"  // 7
	Light     Pace = "light"     // 10
	Custom    Pace = "custom"    // custom_interval_days
)

// Paces returns all paces.
func Paces() []string {
	return []string{string(Auto), string(Intensive), string(Standard), string(Light), string(Custom)}
}

// Access is what the course lets the student do today.
type Access int

// The kinds of access.
const (
	Open Access = iota // or opening later: see Plan.FirstDay
	Idle               // suspended: nothing is opened, and nothing is missed
	Over               // expired, dropped or completed: the plan closes
)

// Plan is what Decide needs of a plan.
type Plan struct {
	Status     Status
	Scale      Scale
	Target     decimal.Number
	Zone       *time.Location
	Pace       Pace
	CustomDays int  // 1 to 14, with Custom
	Level      Pace // where Auto is now: Intensive, Standard or Light
	Minimums   map[string]decimal.Number
	Drills     bool
	From       time.Time  // the first instant of the course's access
	FirstDay   clock.Date // the day of From, in Zone
	LastDay    clock.Date // the last day on which a test may be open
	ExamDate   clock.Date // zero: none
	Access     Access
	AtRisk     bool
	CountedTo  int // the latest slot whose result has changed the pace and led to drills
}

// Margins of the last test day.
const (
	daysBeforeExam = 3
	daysBeforeEnd  = 1
	minDays        = 7 // a new plan needs these before its last test day
)

// LastDay returns the last test day: three days before the exam or one day before the access ends,
// whichever is earlier. exam may be zero. The reference calls the day L.
func LastDay(exam, accessEnd clock.Date) clock.Date {
	last := accessEnd.AddDays(-daysBeforeEnd)
	if !exam.IsZero() && exam.AddDays(-daysBeforeExam).Before(last) {
		last = exam.AddDays(-daysBeforeExam)
	}
	return last
}

// Current returns the pace that is in use now (reference: plans#pace).
func (p Plan) Current() Pace {
	if p.Pace == Auto {
		return p.Level
	}
	return p.Pace
}

// interval returns the days from one opening to the next. The reference calls it I.
func (p Plan) interval() int {
	switch p.Current() {
	case Intensive:
		return 4
	case Light:
		return 10
	case Custom:
		return max(p.CustomDays, 1)
	case Standard, Auto:
	}
	return 7
}

// Kind is the purpose of a test.
type Kind string

// The kinds. All but SkillsCheck are full papers.
const (
	Baseline    Kind = "baseline"
	Mock        Kind = "mock"
	SkillsCheck Kind = "skills_check" // of one section
	Challenge   Kind = "challenge"
)

// State is the progress of a test.
type State string

// The states. On the wire both Waiting and Opened are waiting.
const (
	Waiting   State = "waiting"   // opens on a later day
	Unfilled  State = "unfilled"  // it should be open, but no unseen paper is left
	Opened    State = "opened"    // assigned, not started
	Started   State = "started"   // by the student
	Held      State = "held"      // finished, its result is under review
	Finished  State = "finished"  // its result counts
	Missed    State = "missed"    // not started by its due day
	Skipped   State = "skipped"   // by staff
	Withdrawn State = "withdrawn" // taken back before it was started
)

// Test is one slot of a plan.
type Test struct {
	Slot       int // 1, 2, …
	Kind       Kind
	Section    string // of a SkillsCheck; "" otherwise
	State      State
	OpensOn    clock.Date
	DueOn      clock.Date
	DecidedOn  clock.Date // when it was planned; the earliest opening depends on it
	Fixed      bool       // staff chose its day, so it is not planned again
	Paper      int64      // the catalog item; 0 while Waiting or Unfilled
	FinishedOn clock.Date // from Held on
	Late       bool       // it was finished after its due day, and counts all the same
}

// pending says whether the test has not been opened yet.
func (t Test) pending() bool { return t.State == Waiting || t.State == Unfilled }

func (t Test) full() bool { return t.Kind != SkillsCheck }

// Unfinished says whether the test is one that next_test shows.
func (t Test) Unfinished() bool {
	return t.pending() || t.State == Opened || t.State == Started
}

// Result is the final result of one of a plan's tests.
type Result struct {
	Slot     int
	On       clock.Date // when it was finished
	Score    decimal.Number
	Sections map[string]decimal.Number
}

// Paper is a catalog test that the student has never started, been assigned or been given
// as a starter, of the plan's exam, active and visible to the organization.
type Paper struct {
	ID            int64
	Scope         string // FullScope, or a section's name
	Difficulty    decimal.Number
	HasDifficulty bool
}

// FullScope is the scope of a paper that examines every section.
const FullScope = "full"
