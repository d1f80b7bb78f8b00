package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Block is the name of the settings in a provisioning body.
const Block = "target_score_plan"

// Fields are the members of the block that a request may carry.
var Fields = []string{"course", "target_score", "exam_date", "test_plan", "timezone", "pace", "custom_interval_days",
	"section_minimums", "practice_drills", "staff_recipients", "extra_recipients", "safe_exam_browser"}

// Limits of the settings (reference: limits#fields).
const (
	MaxIntervalDays    = 14
	maxExtraRecipients = 5
)

// UnknownField returns the fault for a member that the block does not have.
func UnknownField(name string) error {
	return fault.Field(Block+"."+name, "unknown_field", "%s: there is no field %q; the valid fields are %s",
		Block, name, strings.Join(Fields, ", "))
}

// Request is the block as sent; nil means not sent. Texts have no blanks around them, and recipients
// are addresses in the form in which they are stored.
type Request struct {
	Course             string // a course type's name or display name, or a course id; "" not sent
	TargetScore        *decimal.Number
	ExamDate           *clock.Date
	TestPlan           *bool
	TimeZone           *string
	Pace               *Pace
	CustomIntervalDays *int
	SectionMinimums    map[string]decimal.Number // empty removes them
	PracticeDrills     *bool
	StaffRecipients    []string // empty: the default
	ExtraRecipients    []string // empty removes them
	SafeExamBrowser    *bool
}

// planSettings returns the names of the sent settings that only a plan has.
func (r Request) planSettings() []string {
	var sent []string
	for name, is := range map[string]bool{
		"timezone": r.TimeZone != nil, "pace": r.Pace != nil, "custom_interval_days": r.CustomIntervalDays != nil,
		"section_minimums": r.SectionMinimums != nil, "practice_drills": r.PracticeDrills != nil,
		"staff_recipients": r.StaffRecipients != nil, "extra_recipients": r.ExtraRecipients != nil,
	} {
		if is {
			sent = append(sent, name)
		}
	}
	slices.Sort(sent)
	return sent
}

// Settings are the settings of a running plan.
type Settings struct {
	TimeZone           string
	Pace               Pace
	CustomIntervalDays int // 0: none
	SectionMinimums    map[string]decimal.Number
	PracticeDrills     bool
	StaffRecipients    []string
	ExtraRecipients    []string
}

// Goal is what a student prepares for. It belongs to the plan while one runs, else to the course.
type Goal struct {
	TargetScore decimal.Number // 0 and !HasTarget: none
	HasTarget   bool
	ExamDate    clock.Date // zero: none
}

// Snapshot is what a student has set for one course, before or after a call.
type Snapshot struct {
	Goal            Goal
	Status          Status // "": no plan runs
	Settings        Settings
	SafeExamBrowser bool
}

// Running says whether there is a plan that is not closed. A paused plan counts.
func (s Snapshot) Running() bool { return s.Status == Active || s.Status == Paused }

// Terms are the facts that a call's settings are checked against.
type Terms struct {
	Scale            Scale // without an Exam when the course is not known
	CourseName       string
	Suspended        bool
	AccessStart      clock.Date // the dates after the call
	AccessEnd        clock.Date
	AccessOver       bool   // dropped or completed: no date brings it back
	Elsewhere        string // the course in which the student has a plan for the same exam; "": none
	Staff            []string
	DefaultStaff     []string
	BrowserAvailable bool // the site's option
	Now              time.Time
	Doubts           Doubts // nothing is written when there are any
}

// BlockAction is what a call did with the settings.
type BlockAction string

// The actions of the block (reference: plans#plan-moves).
const (
	Created   BlockAction = "created"
	Updated   BlockAction = "updated"
	Ended     BlockAction = "closed"
	Unchanged BlockAction = "unchanged"
	Left      BlockAction = "skipped" // the course is suspended
)

// Change is the outcome of a call's settings.
type Change struct {
	Action   BlockAction
	Names    []string // of the changed settings, in the order of Fields
	After    Snapshot
	Warnings []string
}

// Has says whether the setting changed.
func (c Change) Has(name string) bool { return slices.Contains(c.Names, name) }

// Values returns, by the name of each changed setting, what it was and what it is: {"from": …, "to": …}.
func (c Change) Values(before Snapshot) map[string]any {
	was, is := before.values(), c.After.values()
	all := map[string]any{}
	for _, name := range c.Names {
		all[name] = map[string]any{"from": was[name], "to": is[name]}
	}
	return all
}

// values are the settings by their names; nil is none.
func (s Snapshot) values() map[string]any {
	of := map[string]any{
		"target_score": nil, "exam_date": s.Goal.ExamDate, "safe_exam_browser": s.SafeExamBrowser, "test_plan": s.Running(),
		"timezone": s.Settings.TimeZone, "pace": s.Settings.Pace, "custom_interval_days": nil,
		"section_minimums": notNil(s.Settings.SectionMinimums), "practice_drills": s.Settings.PracticeDrills,
		"staff_recipients": s.Settings.StaffRecipients, "extra_recipients": s.Settings.ExtraRecipients,
	}
	if s.Goal.HasTarget {
		of["target_score"] = s.Goal.TargetScore
	}
	if n := s.Settings.CustomIntervalDays; n > 0 {
		of["custom_interval_days"] = n
	}
	return of
}

// Set returns what a request changes. Invalid lists every field that is refused; then nothing changes.
func Set(before Snapshot, r Request, t Terms) (Change, error) {
	s := &setter{Request: r, Terms: t, before: before, after: before}
	s.after.Settings.SectionMinimums = maps.Clone(before.Settings.SectionMinimums)
	s.checkValues()
	if s.faults.Err() == nil && t.Suspended {
		return Change{Action: Left, Names: []string{}, After: before, Warnings: []string{
			Block + ": the course " + t.CourseName + " is suspended; nothing was applied. Lift the suspension in the platform first"}}, nil
	}
	s.checkPlan()
	return s.apply()
}

type setter struct {
	Request
	Terms
	before, after Snapshot
	faults        fault.List
	warnings      []string
}

// bad adds a fault of the setting, unless the setting could not be read, which is reported already.
func (s *setter) bad(field, code, format string, args ...any) {
	name := Block + "." + field
	if !s.unread(field) {
		_ = s.faults.Add(fault.Field(name, code, name+": "+format, args...))
	}
}

func (s *setter) unread(field string) bool { return slices.Contains(s.Doubts.Unread, field) }

// blamed says whether the setting has a fault already.
func (s *setter) blamed(field string) bool {
	return s.unread(field) || s.faults.Has(Block+"."+field)
}

// starts and ends say whether the call starts or ends the plan.
func (s *setter) starts() bool { return s.TestPlan != nil && *s.TestPlan && !s.before.Running() }
func (s *setter) ends() bool   { return s.TestPlan != nil && !*s.TestPlan && s.before.Running() }

// apply returns the change, or the faults if there are any.
func (s *setter) apply() (Change, error) {
	s.applyGoal()
	switch {
	case s.starts():
		s.after.Status = Active
		s.after.Settings = Settings{Pace: Auto, PracticeDrills: true, StaffRecipients: s.DefaultStaff}
		s.applySettings()
	case s.ends():
		s.after.Status, s.after.Settings = "", Settings{}
	case s.before.Running():
		s.applySettings()
		if s.TestPlan != nil && s.before.Status == Paused {
			s.warn("%s.test_plan: the plan is paused and stays so; resume it in the platform", Block)
		}
	}
	names := s.changed()
	s.checkDays(names)
	if err := s.faults.Err(); err != nil {
		return Change{}, err
	}
	c := Change{Action: Unchanged, Names: names, After: s.after, Warnings: s.warnings}
	switch {
	case s.starts():
		c.Action = Created
	case s.ends():
		c.Action = Ended
	case len(names) > 0:
		c.Action = Updated
	}
	return c, nil
}

func (s *setter) applyGoal() {
	if s.TargetScore != nil {
		s.after.Goal.TargetScore, s.after.Goal.HasTarget = *s.TargetScore, true
	}
	if s.ExamDate != nil {
		s.after.Goal.ExamDate = *s.ExamDate
	}
	if s.SafeExamBrowser != nil {
		s.after.SafeExamBrowser = *s.SafeExamBrowser
	}
}

func (s *setter) applySettings() {
	to := &s.after.Settings
	if s.TimeZone != nil {
		to.TimeZone = *s.TimeZone
	}
	if s.Pace != nil {
		to.Pace, to.CustomIntervalDays = *s.Pace, 0
	}
	if s.CustomIntervalDays != nil {
		to.CustomIntervalDays = *s.CustomIntervalDays
	}
	if s.SectionMinimums != nil {
		to.SectionMinimums = maps.Clone(s.SectionMinimums)
	}
	if s.PracticeDrills != nil {
		to.PracticeDrills = *s.PracticeDrills
	}
	switch {
	case s.StaffRecipients == nil:
	case len(s.StaffRecipients) == 0:
		to.StaffRecipients = s.DefaultStaff
	default:
		to.StaffRecipients = s.StaffRecipients
	}
	if s.ExtraRecipients != nil {
		to.ExtraRecipients = s.ExtraRecipients
	}
}

// changed returns the names of the settings that differ. A plan that starts or ends is named
// test_plan. When it starts, the settings that were sent are named and the defaults are not.
func (s *setter) changed() []string {
	a, b := s.before, s.after
	x, y := a.Settings, b.Settings
	differs := map[string]bool{
		"target_score":      a.Goal.TargetScore != b.Goal.TargetScore || a.Goal.HasTarget != b.Goal.HasTarget,
		"exam_date":         a.Goal.ExamDate != b.Goal.ExamDate,
		"safe_exam_browser": a.SafeExamBrowser != b.SafeExamBrowser,
		"test_plan":         s.starts() || s.ends(),
	}
	if s.starts() {
		for _, name := range s.planSettings() {
			differs[name] = true
		}
	} else if !s.ends() {
		differs["timezone"] = x.TimeZone != y.TimeZone
		differs["pace"] = x.Pace != y.Pace
		differs["custom_interval_days"] = x.CustomIntervalDays != y.CustomIntervalDays
		differs["section_minimums"] = !maps.Equal(x.SectionMinimums, y.SectionMinimums)
		differs["practice_drills"] = x.PracticeDrills != y.PracticeDrills
		differs["staff_recipients"] = !sameSet(x.StaffRecipients, y.StaffRecipients)
		differs["extra_recipients"] = !sameSet(x.ExtraRecipients, y.ExtraRecipients)
	}
	names := []string{}
	for _, name := range Fields {
		if differs[name] {
			names = append(names, name)
		}
	}
	return names
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// Doubts are the parts of a refused call that are unknown, because other fields have faults. Rules
// that depend on them are not checked, so that every reported fault is real.
type Doubts struct {
	Unread  []string // settings that were sent and could not be read
	Student bool     // who the student is
	Courses bool     // which courses the call names
	Access  bool     // how long access will last
}
