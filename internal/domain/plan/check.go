package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// checkValues adds the faults that do not depend on what the student has.
func (s *setter) checkValues() {
	s.checkTarget()
	if s.TimeZone != nil {
		_, err := clock.Zone(Block+".timezone", *s.TimeZone)
		_ = s.faults.Add(err) // Zone gives faults only
	}
	s.checkPace()
	s.checkMinimums()
	s.checkRecipients()
	if s.SafeExamBrowser != nil && *s.SafeExamBrowser && !s.BrowserAvailable {
		s.bad("safe_exam_browser", "safe_exam_browser_unavailable",
			"the secure exam browser is switched off for this site; leave it out, or ask the platform's administrator to switch it on")
	}
}

func (s *setter) checkTarget() {
	if s.TargetScore == nil {
		return
	}
	c := s.Scale
	if c.Exam == "" {
		return
	}
	if why := offScale(*s.TargetScore, c.Min, c.Max, c.Step); why != "" {
		s.bad("target_score", "off_scale", "%v is no %s score; send %s", *s.TargetScore, c.Display, why)
	}
}

// offScale returns what should be sent instead, or "" when the score is on the scale.
func offScale(score, low, high, step decimal.Number) string {
	switch {
	case score >= low && score <= high && (step == 0 || (score-low)%step == 0):
		return ""
	case step == 0:
		return fmt.Sprintf("a number from %v to %v", low, high)
	}
	return fmt.Sprintf("a number from %v to %v in steps of %v", low, high, step)
}

func (s *setter) checkPace() {
	custom := s.Pace != nil && *s.Pace == Custom
	switch {
	case s.Pace != nil && !slices.Contains(Paces(), string(*s.Pace)):
		s.bad("pace", "not_a_choice", "send one of %s", strings.Join(Paces(), ", "))
	case custom && s.CustomIntervalDays == nil:
		s.bad("custom_interval_days", "missing", "required with pace custom; send a whole number from 1 to %d", MaxIntervalDays)
	case s.CustomIntervalDays != nil && !custom && !s.unread("pace"):
		s.bad("custom_interval_days", "needs_custom_pace", "goes with pace custom alone; send both or leave it out")
	}
	if n := s.CustomIntervalDays; n != nil && (*n < 1 || *n > MaxIntervalDays) {
		s.bad("custom_interval_days", "out_of_range", "send a whole number from 1 to %d", MaxIntervalDays)
	}
}

func (s *setter) checkMinimums() {
	if !Available(s.Scale.Exam) {
		return // refused as a plan setting
	}
	for _, name := range slices.Sorted(maps.Keys(s.SectionMinimums)) {
		c, ok := s.Scale.section(name)
		if !ok {
			s.bad("section_minimums", "unknown_section", "%s has no section %q; the sections are %s",
				s.Scale.Display, name, strings.Join(s.Scale.sectionNames(), ", "))
			continue
		}
		if why := offScale(s.SectionMinimums[name], c.Min, c.Max, c.Step); why != "" {
			s.bad("section_minimums", "off_scale", "%v is no score of %s; send %s", s.SectionMinimums[name], name, why)
		}
	}
}

func (s *setter) checkRecipients() {
	for _, address := range s.StaffRecipients {
		if !slices.Contains(s.Staff, address) {
			s.bad("staff_recipients", "not_staff",
				"%s is no active admin or examiner of the organization; name one who is, or leave the field out", address)
		}
	}
	if n := len(s.ExtraRecipients); n > maxExtraRecipients {
		s.bad("extra_recipients", "too_many", "%d addresses are too many; send at most %d", n, maxExtraRecipients)
	}
}

// checkPlan adds the faults that depend on the course or on the student's plan.
func (s *setter) checkPlan() {
	settings := s.planSettings()
	switch {
	case s.Scale.Exam == "":
	case !Available(s.Scale.Exam):
		if s.TestPlan != nil {
			settings = append(settings, "test_plan")
		}
		for _, name := range settings {
			s.bad(name, "test_plan_unavailable", "%s has no test plan; it is for IELTS Academic, IELTS General Training and SAT courses alone",
				s.Scale.Display)
		}
	case s.TestPlan != nil && !*s.TestPlan:
		for _, name := range settings {
			s.bad(name, "plan_ends", "a plan that is turned off takes no settings; leave %s out, or test_plan", name)
		}
	case s.Doubts.Student, s.unread("test_plan"): // whether a plan runs or starts is unknown
	case s.starts():
		s.checkStart()
	case !s.before.Running():
		for _, name := range settings {
			s.bad(name, "no_plan", "no plan is running on %s; send test_plan true to start one", s.CourseName)
		}
	}
}

func (s *setter) checkStart() {
	if s.TargetScore == nil && !s.before.Goal.HasTarget {
		s.bad("target_score", "missing", "required to start a plan, as the student has no target score yet")
	}
	if s.TimeZone == nil {
		s.bad("timezone", "missing", "required to start a plan; send an IANA time zone name such as Asia/Kolkata")
	}
	if s.AccessOver {
		s.bad("test_plan", "no_access", "access to %s has ended; a plan needs a course that the student can use", s.CourseName)
	}
	if s.Elsewhere != "" {
		s.bad("test_plan", "second_plan", "the student has a plan for %s already, in the course %s; a student can have one plan per exam",
			s.Scale.Display, s.Elsewhere)
	}
}

// checkDays compares the last test day with today, in the plan's zone: a new plan needs minDays
// before it, and a new exam date must leave a running plan at least today.
func (s *setter) checkDays(changed []string) {
	if s.Scale.Exam == "" || s.Doubts.Student || s.Doubts.Access || s.blamed("test_plan") || s.blamed("timezone") || s.blamed("exam_date") {
		return
	}
	starts := s.starts()
	if !starts && (!s.after.Running() || !slices.Contains(changed, "exam_date")) {
		return
	}
	zone, err := clock.Zone(Block+".timezone", s.after.Settings.TimeZone)
	if err != nil {
		_ = s.faults.Add(err)
		return
	}
	today, last := clock.DateIn(s.Now, zone), LastDay(s.after.Goal.ExamDate, s.AccessEnd)
	first, need := today, today
	if starts {
		need = today.AddDays(minDays)
	}
	if s.AccessStart.After(first) {
		first = s.AccessStart
	}
	if !last.Before(need) && !last.Before(first) {
		return
	}
	if limit := LastDay(clock.Date{}, s.AccessEnd); last == limit {
		s.bad("test_plan", "too_few_days", "the last test day would be %v, the day before the course's access ends; a plan needs it on %v or later",
			last, clock.Later(need, first))
		return
	}
	s.bad("exam_date", "exam_too_close", "tests stop %d days before the exam, on %v; a plan needs its last test day on %v or later: send a later exam date or no plan",
		daysBeforeExam, last, clock.Later(need, first))
}

func (s *setter) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// CheckOfficial checks the result of the real exam against the exam's scale and its date against
// today. Invalid lists every score that is not on the scale, and a date to come.
func CheckOfficial(scale Scale, r Official, today clock.Date) error {
	var faults fault.List
	if r.On.After(today) {
		_ = faults.Add(fault.Field("date", "in_the_future", "date: %v is to come; send the day of the exam once it is over", r.On))
	}
	if why := offScale(r.Score, scale.Min, scale.Max, scale.Step); why != "" {
		_ = faults.Add(fault.Field("score", "off_scale", "score: %v is no %s score; send %s", r.Score, scale.Display, why))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Sections)) {
		c, ok := scale.section(name)
		if !ok {
			_ = faults.Add(fault.Field("sections", "unknown_section", "sections: %s has no section %q; the sections are %s",
				scale.Display, name, strings.Join(scale.sectionNames(), ", ")))
			continue
		}
		if why := offScale(r.Sections[name], c.Min, c.Max, c.Step); why != "" {
			_ = faults.Add(fault.Field("sections."+name, "off_scale", "sections.%s: %v is off the scale; send %s", name, r.Sections[name], why))
		}
	}
	return faults.Err()
}
