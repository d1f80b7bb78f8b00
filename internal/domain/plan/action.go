package plan

import (
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Verb is what an Action does.
type Verb string

// What Decide can ask for.
const (
	Schedule Verb = "schedule" // a new waiting test: Test
	Replan   Verb = "replan"   // the waiting test of the slot becomes Test
	Drop     Verb = "drop"     // the waiting test of the slot goes, without a trace
	OpenTest Verb = "open"     // the test of the slot is assigned with Test.Paper
	Unfill   Verb = "unfill"   // no unseen paper is left for it
	Shorten  Verb = "shorten"  // the opened test is due earlier: Test.DueOn
	Miss     Verb = "miss"     // its due day passed
	Withdraw Verb = "withdraw" // the opened test is taken back
	Count    Verb = "count"    // the slot's result has been counted; Level is the pace now
	Drill    Verb = "drill"    // a section paper: Test.Section, Test.Paper, Test.DueOn
	Risk     Verb = "risk"     // AtRisk changes
	Close    Verb = "close"    // access is over
)

// Action is one thing to do, in the order given.
type Action struct {
	Do     Verb
	Slot   int
	Test   Test // as it is afterwards, where the action is about one
	Level  Pace
	AtRisk bool
}

// Apply gives the plan and its tests as they are once the actions are done.
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

// NextRun is when a plan has to be decided again though nothing was heard of it: at its
// zone's next day start. A closed plan is only looked at when something happens.
func NextRun(p Plan, now time.Time) time.Time {
	if p.Status == Closed {
		return time.Time{}
	}
	return clock.DayStart(clock.DateIn(now, p.Zone).AddDays(1), p.Zone)
}

// quietDays is the longest that a plan is left alone, whatever it waits for.
const quietDays = 7

// NextWork is the first day start at which something is to be done for a plan that nothing
// is heard of until then: a test opens or is missed, the plan falls behind. A plan that is
// waiting for a paper or for access is looked at every day. tests and results are as they
// are after the decision of now.
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

// DueAt is when a test that is due on the day d must have been begun: one minute before
// the next day's first instant, which is 23:59 wherever the next day begins at midnight.
func DueAt(d clock.Date, zone *time.Location) time.Time {
	return clock.DayStart(d.AddDays(1), zone).Add(-time.Minute)
}
