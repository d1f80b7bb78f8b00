package plan

import (
	"maps"
	"slices"
	"strings"
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
	Official  *Official  `db:"-"`
	News      []News     // that no mail has had yet, the oldest first
	NewsOn    clock.Date // the day in the plan's zone of the last mail with news; zero: none
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

// News is something to do that a mail announces besides the tests that open: a drill, or an opened test
// that is due earlier than it was.
type News struct {
	Slot    int        `json:"slot"`              // the test, or the one that a drill was given after
	Section string     `json:"section,omitempty"` // of a drill; "": the news is about the test
	Paper   int64      `json:"paper"`
	DueOn   clock.Date `json:"due_on"`
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

// Plan is what Decide needs of a stored plan at the time now. platform is the zone in which access
// begins and ends. It fails only when the plan's time zone does not exist any more.
func (s Stored) Plan(scale Scale, now time.Time, platform *time.Location) (Plan, error) {
	zone, err := clock.Zone("timezone", s.TimeZone)
	if err != nil {
		return Plan{}, err
	}
	from := clock.DayStart(s.AccessStart, platform)
	return Plan{Status: s.Status, Scale: scale, Target: s.TargetScore, Zone: zone, Pace: s.Pace,
		CustomDays: s.CustomIntervalDays, Level: s.Level, Minimums: s.SectionMinimums, Drills: s.PracticeDrills,
		From: from, FirstDay: clock.DateIn(from, zone), LastDay: LastDay(s.ExamDate, s.AccessEnd), ExamDate: s.ExamDate,
		Access: s.access(clock.DateIn(now, platform)), AtRisk: s.AtRisk, CountedTo: s.CountedTo}, nil
}

// ExamOver says whether the exam was before the day of now in the plan's zone, so that the plan is to
// be closed.
func (s Stored) ExamOver(now time.Time) bool {
	zone, err := clock.Zone("timezone", s.TimeZone)
	return err == nil && !s.ExamDate.IsZero() && clock.DateIn(now, zone).After(s.ExamDate)
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
	Ended       bool            // the assignment was taken back, or expired, before the work was handed in
	CompletedAt time.Time       `db:"-"`
	Score       *decimal.Number // of a final result
	Sections    map[string]decimal.Number
	Ref         string // the result's id
}

// Observe returns the slot with what the student did, and whether that changed it. Work that was
// finished in the test's window counts whenever it is reported, also of a test that was found missed
// or was taken back since. Work that was finished later counts as late if its assignment was still
// open (reference: plans#late-tests).
func (s Slot) Observe(w Work, zone *time.Location) (after Slot, changed bool) {
	after = s
	done := clock.DateIn(w.CompletedAt, zone)
	late := done.After(s.DueOn)
	switch s.State {
	case Opened, Started, Held, Finished:
	case Missed, Skipped, Withdrawn:
		if late && w.Ended {
			return s, false
		}
		w.Begun = false // it changes nothing before it is handed in
	case Waiting, Unfilled:
		return s, false
	}
	switch {
	case w.Score != nil:
		after.State, after.FinishedOn, after.Late = Finished, done, late
		after.Score, after.Sections = w.Score, w.Sections
		if _, ok := w.Sections[s.Section]; s.Section != "" && !ok {
			after.Sections = map[string]decimal.Number{s.Section: *w.Score}
		}
	case s.State == Finished:
	case w.Held:
		after.State, after.FinishedOn, after.Late = Held, done, late
	case w.Begun:
		after.State = Started
	}
	same := s.State == after.State && s.FinishedOn == after.FinishedOn && s.Late == after.Late && s.Alike(after)
	return after, !same
}

// Alike says whether two slots have the same result, or none.
func (s Slot) Alike(o Slot) bool {
	if (s.Score == nil) != (o.Score == nil) || !maps.Equal(s.Sections, o.Sections) {
		return false
	}
	return s.Score == nil || *s.Score == *o.Score
}

// Entry is one line of a plan's history.
type Entry struct {
	At     time.Time
	Actor  string // an API key's name, ActorPlatform, ActorSchedule or a StaffActor
	Event  string
	Detail map[string]any
}

// Decision is a line of the history of one of a student's plans.
type Decision struct {
	Entry
	Plan id.Plan
	Exam string
}

// Actors that are no API keys.
const (
	ActorPlatform = "platform"
	ActorSchedule = "schedule"

	staffActor = "staff: "
)

// StaffActor is how histories call a person of the staff.
func StaffActor(name string) string { return staffActor + name }

// StaffOf is the name of the person whom StaffActor called so; false for other actors.
func StaffOf(actor string) (name string, ok bool) { return strings.CutPrefix(actor, staffActor) }

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
