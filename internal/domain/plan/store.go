package plan

import (
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Stored is a plan's row, with the access that its enrollment gives.
type Stored struct {
	ID           id.Plan
	Organization id.Organization
	User         id.User
	Enrollment   id.Enrollment
	Exam         string
	Status       Status
	Goal         // HasTarget is true
	Settings
	Level     Pace
	AtRisk    bool
	CountedTo int
	Official  *Official `db:"-"`
	StartedAt time.Time
	ClosedAt  *time.Time // nil while it runs
	Failures  int        // how often in a row it could not be decided

	Course      id.Course
	CourseName  string
	State       scope.State // of the enrollment
	AccessStart clock.Date
	AccessEnd   clock.Date
	GraceEnd    clock.Date
}

// Official is the result of the real exam, as staff recorded it.
type Official struct {
	Score    decimal.Number
	Sections map[string]decimal.Number
	On       clock.Date
}

// access is what the enrollment gives on today, a day of the platform's zone.
func (s Stored) access(today clock.Date) Access {
	switch {
	case s.State == scope.Suspended:
		return Idle
	case s.State != scope.Running, today.After(s.GraceEnd):
		return Over
	}
	return Open
}

// Plan is what Decide needs of a stored plan. today is a day of the platform's zone. It fails only
// when the plan's time zone does not exist any more.
func (s Stored) Plan(scale Scale, today clock.Date) (Plan, error) {
	zone, err := clock.Zone("timezone", s.TimeZone)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Status: s.Status, Scale: scale, Target: s.TargetScore, Zone: zone, Pace: s.Pace,
		CustomDays: s.CustomIntervalDays, Level: s.Level, Minimums: s.SectionMinimums, Drills: s.PracticeDrills,
		FirstDay: s.AccessStart, LastDay: LastDay(s.ExamDate, s.AccessEnd), Access: s.access(today),
		AtRisk: s.AtRisk, CountedTo: s.CountedTo}, nil
}

// Slot is a test's row, with its result once there is one.
type Slot struct {
	Test
	Assignment id.Assignment // 0 until it is opened
	Score      *decimal.Number
	Sections   map[string]decimal.Number
}

// Tests returns the tests and results that Decide needs of the slots.
func Tests(slots []Slot) ([]Test, []Result) {
	tests, results := make([]Test, len(slots)), []Result{}
	for i, s := range slots {
		tests[i] = s.Test
		if s.Score != nil {
			results = append(results, Result{Slot: s.Slot, On: s.FinishedOn, Score: *s.Score, Sections: s.Sections})
		}
	}
	return tests, results
}

// Work is what a student has done with a test, from its assignment and its session.
type Work struct {
	Begun       bool
	Held        bool
	CompletedAt time.Time       `db:"-"`
	Score       *decimal.Number // of a final result
	Sections    map[string]decimal.Number
	Ref         string // the result's id
}

// Observe returns the slot with what the student did, and whether that changed it. A test that was
// missed, skipped or withdrawn does not change.
func (s Slot) Observe(w Work, zone *time.Location) (after Slot, changed bool) {
	after = s
	switch s.State {
	case Opened, Started, Held, Finished:
	case Waiting, Unfilled, Missed, Skipped, Withdrawn:
		return s, false
	}
	switch {
	case w.Score != nil:
		after.State, after.FinishedOn = Finished, clock.DateIn(w.CompletedAt, zone)
		after.Score, after.Sections = w.Score, w.Sections
		if _, ok := w.Sections[s.Section]; s.Section != "" && !ok {
			after.Sections = map[string]decimal.Number{s.Section: *w.Score}
		}
	case s.State == Finished:
	case w.Held:
		after.State, after.FinishedOn = Held, clock.DateIn(w.CompletedAt, zone)
	case w.Begun:
		after.State = Started
	}
	return after, !same(s, after)
}

func same(a, b Slot) bool {
	if a.State != b.State || a.FinishedOn != b.FinishedOn || (a.Score == nil) != (b.Score == nil) || len(a.Sections) != len(b.Sections) {
		return false
	}
	for name, n := range a.Sections {
		if m, ok := b.Sections[name]; !ok || m != n {
			return false
		}
	}
	return a.Score == nil || *a.Score == *b.Score
}

// Entry is one line of a plan's history.
type Entry struct {
	At     time.Time
	Actor  string // an API key's name, ActorPlatform or ActorSchedule
	Event  string
	Detail map[string]any
}

// Actors that are no API keys.
const (
	ActorPlatform = "platform"
	ActorSchedule = "schedule"
)

// Lag is how far the daily pass over the plans of all organizations is behind.
type Lag struct {
	Due     int           // plans that have to be decided by now
	Oldest  time.Duration // how long the first of them has waited; 0 where none does
	Failing int           // plans that could not be decided, and are tried again later
}

// StaffMember is a person who may get results and alerts.
type StaffMember struct {
	Email string
	Role  string // owner, admin or examiner
}

// ActiveStaff returns the recipients who still belong to the staff, or DefaultStaff when none does.
// Somebody who has left gets no more mail about students.
func ActiveStaff(recipients []string, staff []StaffMember) []string {
	active := slices.DeleteFunc(slices.Clone(recipients), func(address string) bool {
		return !slices.ContainsFunc(staff, func(m StaffMember) bool { return m.Email == address })
	})
	if len(active) == 0 {
		return DefaultStaff(staff)
	}
	return active
}

// DefaultStaff returns who gets results when a call names nobody: the owners, or all admins where
// there is no owner.
func DefaultStaff(staff []StaffMember) []string {
	list := []string{}
	for _, role := range []string{"owner", "admin"} {
		for _, m := range staff {
			if m.Role == role {
				list = append(list, m.Email)
			}
		}
		if len(list) > 0 {
			break
		}
	}
	return list
}
