package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

const (
	window      = 2 // days from a test's opening to its due day, if the pace allows
	patience    = 3 // days to wait for a result under review, or for a started test
	baselines   = 2 // after so many missed baselines no other is tried
	drillsATest = 2
	checksKept  = 2  // papers of a section that drills leave to later skills checks
	shortPlan   = 21 // with fewer days until the last test day, auto starts intensive
	lateDays    = 28 // with fewer days, auto moves towards intensive
)

// Decide returns what has to be done for a plan at the time now. tests are in the order of their
// slots; papers are those that the student has not seen.
func Decide(p Plan, tests []Test, results []Result, papers []Paper, now time.Time) []Action {
	d := &decider{plan: p, tests: slices.Clone(tests), results: results, now: now, today: clock.DateIn(now, p.Zone),
		papers: unused(papers, tests)}
	if reason, over := d.over(); over {
		d.end(reason)
		return d.actions
	}
	d.settle()
	counted := d.count()
	if p.Status == Active && p.Access == Open {
		d.next()
		if counted > 0 && p.Drills {
			d.drill(counted)
		}
	}
	d.risk()
	return d.actions
}

// Preview returns the decision if there were papers of every kind, and whether it uses one. Only
// then does it matter which papers are left, so that Decide has to be called.
func Preview(p Plan, tests []Test, results []Result, now time.Time) (actions []Action, wants bool) {
	every := []Paper{{ID: -1, Scope: FullScope}}
	for _, s := range p.Scale.Sections {
		for range checksKept + 2 { // for a test and a drill
			every = append(every, Paper{ID: -1 - int64(len(every)), Scope: s.Name})
		}
	}
	actions = Decide(p, tests, results, every, now)
	return actions, slices.ContainsFunc(actions, func(a Action) bool { return a.Do == OpenTest || a.Do == Drill })
}

type decider struct {
	plan    Plan
	tests   []Test
	results []Result
	papers  []Paper
	now     time.Time
	today   clock.Date
	actions []Action
}

func unused(papers []Paper, tests []Test) []Paper {
	return slices.DeleteFunc(slices.Clone(papers), func(p Paper) bool {
		return slices.ContainsFunc(tests, func(t Test) bool { return t.Paper == p.ID })
	})
}

// do adds an action and applies it, so that the next ones follow from it.
func (d *decider) do(a Action) {
	d.actions = append(d.actions, a)
	d.plan, d.tests = apply(d.plan, d.tests, a)
}

func (d *decider) doTest(what Verb, t Test) { d.do(Action{Do: what, Slot: t.Slot, Test: t}) }

func (d *decider) record() record { return newRecord(d.plan, d.tests, d.results) }

// last returns the latest test, or the zero Test, with slot 0, when there is none.
func (d *decider) last() Test {
	if len(d.tests) == 0 {
		return Test{}
	}
	return d.tests[len(d.tests)-1]
}

// over says whether the plan runs no longer, and why: a closed one has no reason here.
func (d *decider) over() (reason string, over bool) {
	switch {
	case d.plan.Status == Closed:
		return "", true
	case d.plan.Access == Over:
		return AccessOver, true
	case !d.plan.ExamDate.IsZero() && d.today.After(d.plan.ExamDate):
		return ExamOver, true
	}
	return "", false
}

// end closes the plan. A waiting test is removed, an opened one is taken back, and a started one stays
// with the student.
func (d *decider) end(reason string) {
	switch t := d.last(); {
	case t.pending():
		d.doTest(Drop, t)
	case t.State == Opened:
		d.doTest(Withdraw, withState(t, Withdrawn))
	}
	if d.plan.Status != Closed {
		d.do(Action{Do: Close, Reason: reason})
	}
}

func withState(t Test, s State) Test {
	t.State = s
	return t
}

// settle ends or shortens the opened test: its due day may only move earlier, to the last test day. A
// test that the student could not do, because the plan was paused or the course suspended, is taken
// back and not missed. So is one in whose place the student has done an earlier test.
func (d *decider) settle() {
	t := d.last()
	if t.State != Opened {
		return
	}
	switch last := d.plan.LastDay; {
	case last.Before(t.OpensOn), d.replaced(t):
		d.doTest(Withdraw, withState(t, Withdrawn))
		return
	case last.Before(t.DueOn):
		t.DueOn = last
		d.doTest(Shorten, t)
	}
	switch {
	case !d.today.After(t.DueOn):
	case d.plan.Status == Paused || d.plan.Access == Idle:
		d.doTest(Withdraw, withState(t, Withdrawn))
	default:
		d.doTest(Miss, withState(t, Missed))
	}
}

// replaced says whether the opened test stands in the place of one before it that the student has
// handed in after all: on the day on which this one opened or later, or a baseline at any time. A
// test that staff have opened stays.
func (d *decider) replaced(opened Test) bool {
	t, ok := handedIn(d.tests[:len(d.tests)-1])
	return ok && !opened.Fixed && (opened.Kind == Baseline && t.full() || !t.FinishedOn.Before(opened.OpensOn))
}

// handedIn returns the last of the tests, apart from those that were not done, if the student has
// handed it in.
func handedIn(tests []Test) (Test, bool) {
	for _, t := range slices.Backward(tests) {
		if t.State != Missed && t.State != Skipped && t.State != Withdrawn {
			return t, t.State == Held || t.State == Finished
		}
	}
	return Test{}, false
}

// count counts the results that are new since the last time and returns the slot of the latest one,
// or 0. The pace moves by one level at most, however many there are.
func (d *decider) count() int {
	r := d.record()
	latest := 0
	for _, slot := range r.slots {
		latest = max(latest, slot)
	}
	if latest <= d.plan.CountedTo {
		return 0
	}
	level := d.plan.Level
	if d.plan.Pace == Auto {
		level = toward(level, d.wish(r))
	}
	d.do(Action{Do: Count, Slot: latest, Level: level})
	return latest
}

// levels are the paces between which Auto moves, one step at a time.
var levels = []Pace{Light, Standard, Intensive}

func toward(level, wish Pace) Pace {
	from, to := slices.Index(levels, level), slices.Index(levels, wish)
	return levels[from+cmp.Compare(to, from)]
}

// wish returns the pace that the results call for.
func (d *decider) wish(r record) Pace {
	e, known := r.estimate()
	switch {
	case r.targetMet():
		return Light
	case d.atRisk(r), d.today.DaysUntil(d.plan.LastDay) < lateDays, known && d.plan.Target-e > r.exam.wideGap:
		return Intensive
	}
	return Standard
}

// StartLevel returns the pace with which Auto begins.
func StartLevel(today, lastDay clock.Date) Pace {
	if today.DaysUntil(lastDay) < shortPlan {
		return Intensive
	}
	return Standard
}

// risk finds out whether the plan is at risk. After the last test day it is not: nothing can be done.
func (d *decider) risk() {
	past := d.today.After(d.plan.LastDay)
	now := !past && d.atRisk(d.record())
	if now != d.plan.AtRisk && (past || d.plan.Status == Active && d.plan.Access == Open) {
		d.do(Action{Do: Risk, AtRisk: now})
	}
}

func (d *decider) atRisk(r record) bool {
	return r.fallsShort(d.today) || r.minimumUnmet() && d.slotsLeft() <= 2 || d.missedTwice()
}

// missedTwice says whether the latest two tests whose time is over were missed.
func (d *decider) missedTwice() bool {
	over := slices.DeleteFunc(slices.Clone(d.tests), func(t Test) bool { return t.Unfinished() || t.State == Withdrawn })
	last := tail(over, 2)
	return len(last) == 2 && last[0].State == Missed && last[1].State == Missed
}

// slotsLeft returns how many tests can still open at the current interval.
func (d *decider) slotsLeft() int {
	first := d.today
	switch t := d.last(); {
	case t.pending():
		first = clock.Later(first, t.OpensOn)
	case t.Slot > 0:
		first = clock.Later(first.AddDays(1), t.OpensOn.AddDays(d.plan.interval()))
	}
	if first.After(d.plan.LastDay) {
		return 0
	}
	return 1 + first.DaysUntil(d.plan.LastDay)/d.plan.interval()
}

// drill gives section papers for the largest deficits, due before the next test opens. It leaves the
// last papers of a section to skills checks, as long as there can be one.
func (d *decider) drill(slot int) {
	due := d.plan.LastDay
	if t := d.last(); t.Unfinished() && t.Slot > slot {
		due = t.OpensOn.AddDays(-1)
	}
	if due.Before(d.today) {
		return
	}
	kept := 0
	if d.slotsLeft() > 0 {
		kept = checksKept
	}
	r, largest := d.record(), d.record().deficits()
	for _, lacking := range largest[:min(len(largest), drillsATest)] {
		if d.left(lacking.section) <= kept {
			continue
		}
		level, known := r.sectionEstimate(lacking.section)
		if paper, ok := d.pick(lacking.section, nearest(level, known)); ok {
			d.do(Action{Do: Drill, Slot: slot, Test: Test{Section: lacking.section, Paper: paper, OpensOn: d.today, DueOn: due}})
		}
	}
}

// left returns how many papers of a scope are left.
func (d *decider) left(scope string) (n int) {
	for _, p := range d.papers {
		if p.Scope == scope {
			n++
		}
	}
	return n
}

// pick removes the best paper of a scope from those that are left and returns its id. Of equal ones it
// takes the lowest id.
func (d *decider) pick(scope string, better func(a, b Paper) int) (int64, bool) {
	best := -1
	for i, p := range d.papers {
		if p.Scope != scope {
			continue
		}
		if best < 0 || cmp.Or(better(p, d.papers[best]), cmp.Compare(p.ID, d.papers[best].ID)) < 0 {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	picked := d.papers[best].ID
	d.papers = slices.Delete(slices.Clone(d.papers), best, best+1)
	return picked, true
}

// nearest prefers papers whose difficulty is close to level; papers without a difficulty come last.
func nearest(level decimal.Number, known bool) func(a, b Paper) int {
	return func(a, b Paper) int {
		switch {
		case !known || !a.HasDifficulty && !b.HasDifficulty:
			return 0
		case a.HasDifficulty != b.HasDifficulty:
			return cmp.Compare(rank(b.HasDifficulty), rank(a.HasDifficulty))
		}
		return cmp.Compare(max(a.Difficulty-level, level-a.Difficulty), max(b.Difficulty-level, level-b.Difficulty))
	}
}

func hardest(a, b Paper) int {
	if a.HasDifficulty != b.HasDifficulty {
		return cmp.Compare(rank(b.HasDifficulty), rank(a.HasDifficulty))
	}
	return cmp.Compare(b.Difficulty, a.Difficulty)
}

func rank(has bool) int {
	if has {
		return 1
	}
	return 0
}
