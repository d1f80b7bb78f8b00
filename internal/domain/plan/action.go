package plan

import (
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Verb is what an Action does.
type Verb string

// The verbs of actions.
const (
	Schedule Verb = "schedule" // a new waiting test: Test
	Replan   Verb = "replan"   // the waiting test of the slot becomes Test
	Drop     Verb = "drop"     // the waiting test of the slot is removed
	OpenTest Verb = "open"     // the test of the slot is assigned with Test.Paper
	Unfill   Verb = "unfill"   // no unseen paper is left for it
	Shorten  Verb = "shorten"  // the opened test is due earlier: Test.DueOn
	Miss     Verb = "miss"     // its due day passed
	Withdraw Verb = "withdraw" // the opened test is taken back
	Count    Verb = "count"    // the slot's result has been counted; Level is the pace now
	Drill    Verb = "drill"    // a section paper: Test.Section, Test.Paper, Test.DueOn
	Risk     Verb = "risk"     // AtRisk changes
	Close    Verb = "close"    // the plan closes: Reason
)

// The reasons for which a plan closes by itself.
const (
	AccessOver = "access_over"
	ExamOver   = "exam_over" // the day after the exam
)

// Action is one step of a decision. Actions are done in their order.
type Action struct {
	Do     Verb
	Slot   int
	Test   Test // as it is afterwards, where the action is about one
	Level  Pace
	AtRisk bool
	Reason string // of Close
}

// Apply returns the plan and its tests as they are after the actions.
func Apply(p Plan, tests []Test, actions []Action) (Plan, []Test) {
	tests = slices.Clone(tests)
	for _, a := range actions {
		p, tests = apply(p, tests, a)
	}
	return p, tests
}

func apply(p Plan, tests []Test, a Action) (Plan, []Test) {
	switch a.Do {
	case Schedule:
		return p, append(tests, a.Test)
	case Drop:
		return p, slices.DeleteFunc(tests, func(t Test) bool { return t.Slot == a.Slot })
	case Replan, OpenTest, Unfill, Shorten, Miss, Withdraw:
		i := slices.IndexFunc(tests, func(t Test) bool { return t.Slot == a.Slot })
		tests[i] = a.Test
	case Count:
		p.CountedTo, p.Level = a.Slot, a.Level
	case Risk:
		p.AtRisk = a.AtRisk
	case Close:
		p.Status, p.AtRisk = Closed, false
	case Drill: // no slot of the plan
	}
	return p, tests
}

// NextRun returns when a plan has to be decided again if nothing happens before: when access begins,
// and at the next start of a day in its zone. A closed plan has no such time.
func NextRun(p Plan, now time.Time) time.Time {
	if p.Status == Closed {
		return time.Time{}
	}
	next := clock.DayStart(clock.DateIn(now, p.Zone).AddDays(1), p.Zone)
	if p.From.After(now) && p.From.Before(next) {
		return p.From
	}
	return next
}

// quietDays is the longest time between two decisions of a plan that is not closed.
const quietDays = 7

// NextWork returns the first start of a day on which something has to be done for the plan if nothing
// happens before: a test opens or is missed, or the plan falls behind. A plan that waits for a paper
// or for access is decided every day. tests and results are those after the decision of now.
func NextWork(p Plan, tests []Test, results []Result, now time.Time) time.Time {
	next := NextRun(p, now)
	n := len(tests)
	if p.Status == Closed || p.Access != Open || n == 0 || !tests[n-1].Unfinished() || tests[n-1].State == Unfilled {
		return next
	}
	for range quietDays - 1 {
		if actions, _ := Preview(p, tests, results, next); len(actions) > 0 {
			return next
		}
		next = NextRun(p, next)
	}
	return next
}

// DueAt returns until when a test that is due on the day d has to be started: one minute before the
// next day begins. That is 23:59 wherever days begin at midnight.
func DueAt(d clock.Date, zone *time.Location) time.Time {
	return clock.DayStart(d.AddDays(1), zone).Add(-time.Minute)
}
