package plan

import (
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// next plans the test after the last finished one, plans it again when the facts that it was planned
// from have changed, and opens it when its day has come.
func (d *decider) next() {
	t := d.last()
	switch {
	case d.occupied(t):
		return
	case t.pending() && t.Fixed: // staff have decided
	case t.pending():
		if !d.replan(t) {
			return
		}
	default:
		fresh, ok := d.shape(t.Slot+1, d.today)
		if !ok {
			return
		}
		d.doTest(Schedule, fresh)
	}
	if t = d.last(); !t.OpensOn.After(d.today) && !d.now.Before(d.plan.From) {
		d.open(t)
	}
}

// occupied says whether the last test still prevents planning the next one.
func (d *decider) occupied(t Test) bool {
	switch t.State {
	case Opened:
		return true
	case Started: // perhaps the student never finishes it
		return !d.today.After(t.DueOn.AddDays(patience))
	case Waiting, Unfilled, Held, Finished, Missed, Skipped, Withdrawn:
	}
	return false
}

// replan keeps a pending test, or plans it again by what is known now, and says whether the test is
// still there. It keeps the test if planning it on its old day gives the same test: the passing of
// days alone changes nothing.
func (d *decider) replan(t Test) bool {
	if same, ok := d.shape(t.Slot, t.DecidedOn); ok && sameSlot(same, t) {
		return true
	}
	fresh, ok := d.shape(t.Slot, d.today)
	switch {
	case !ok:
		d.doTest(Drop, t)
		return false
	case !sameSlot(fresh, t):
		d.doTest(Replan, fresh)
	}
	return true
}

func sameSlot(a, b Test) bool {
	return a.Kind == b.Kind && a.Section == b.Section && a.OpensOn == b.OpensOn && a.DueOn == b.DueOn
}

// shape returns the test of a slot as it is planned on a day, and false when it would open after the
// last test day. It opens no sooner than the result of the test before it has been waited for.
func (d *decider) shape(slot int, on clock.Date) (Test, bool) {
	before := slices.DeleteFunc(slices.Clone(d.tests), func(t Test) bool { return t.Slot >= slot })
	opens := on
	if len(before) > 0 {
		previous := before[len(before)-1]
		earliest := on.AddDays(1)
		switch previous.State {
		case Missed:
			earliest = clock.Later(on, previous.DueOn.AddDays(1))
		case Held:
			earliest = clock.Later(earliest, previous.FinishedOn.AddDays(patience+1))
		case Waiting, Unfilled, Opened, Started, Finished, Skipped, Withdrawn:
		}
		if done, ok := handedIn(before); ok { // perhaps late, with missed ones after it
			earliest = clock.Later(earliest, done.FinishedOn.AddDays(1))
		}
		opens = clock.Later(earliest, previous.OpensOn.AddDays(d.plan.interval()))
	}
	opens = clock.Later(opens, d.plan.FirstDay)
	if opens.After(d.plan.LastDay) {
		return Test{}, false
	}
	kind, section := d.kind(before, opens)
	return Test{Slot: slot, Kind: kind, Section: section, State: Waiting, OpensOn: opens, DueOn: d.due(kind, opens), DecidedOn: on}, true
}

// due returns the due day of a test that opens on a day. A baseline keeps its whole window, even
// when tests follow each other faster.
func (d *decider) due(k Kind, opens clock.Date) clock.Date {
	days := window
	if k != Baseline {
		days = min(days, d.plan.interval()-1)
	}
	due := opens.AddDays(days)
	if due.After(d.plan.LastDay) {
		return d.plan.LastDay
	}
	return due
}

// kind returns the kind and section of a test that opens on a day, given the tests before it.
func (d *decider) kind(before []Test, opens clock.Date) (Kind, string) {
	r := d.record()
	if needsBaseline(r, before) {
		return Baseline, ""
	}
	taken := slices.DeleteFunc(slices.Clone(before), func(t Test) bool { return t.State == Withdrawn })
	afterCheck := len(taken) > 0 && taken[len(taken)-1].Kind == SkillsCheck
	lacking := r.deficits()
	switch {
	case opens.AddDays(d.plan.interval()).After(d.plan.LastDay): // the last one
		return Mock, ""
	case r.proven():
		return Challenge, ""
	case !afterCheck && len(lacking) > 0 && lacking[0].missing >= r.exam.checkFrom:
		return SkillsCheck, lacking[0].section
	}
	return Mock, ""
}

// needsBaseline says whether there is no result of a full test yet, and the student has not missed
// too many baselines. A skills check that was given in its place leaves it to be done.
func needsBaseline(r record, before []Test) bool {
	missed := 0
	for _, t := range before {
		switch {
		case t.Kind == SkillsCheck:
		case t.Kind != Baseline || t.State == Finished || t.State == Held || t.State == Started:
			return false
		case t.State == Missed || t.State == Skipped:
			missed++
		}
	}
	return len(r.full) == 0 && missed < baselines
}

// open gives a paper to the test whose day has come. A test that opens late, because no worker ran
// or no paper was left, gets its window and kind as of today.
func (d *decider) open(t Test) {
	now := t
	if t.OpensOn.Before(d.today) {
		now.OpensOn = d.today
		if !t.Fixed {
			now.Kind, now.Section = d.kind(d.tests[:len(d.tests)-1], d.today)
		}
		now.DueOn = d.due(now.Kind, d.today)
	}
	if now.OpensOn.After(d.plan.LastDay) {
		d.doTest(Drop, t)
		return
	}
	for _, possible := range d.choices(now) {
		if paper, ok := d.paper(possible); ok {
			possible.State, possible.Paper = Opened, paper
			d.doTest(OpenTest, possible)
			return
		}
	}
	if t.State != Unfilled {
		d.doTest(Unfill, withState(t, Unfilled))
	}
}

// choices returns the test and, in their order, what may be given where there is no unseen paper for
// it (reference: plans#test-kinds). A challenge needs the same papers as a mock.
func (d *decider) choices(t Test) []Test {
	all := []Test{t}
	r := d.record()
	if t.Kind == SkillsCheck {
		for _, lacking := range r.deficits() {
			all = append(all, asCheck(t, lacking.section))
		}
		mock := t
		mock.Kind, mock.Section = Mock, ""
		all = append(all, mock)
	}
	for _, name := range r.weakestFirst() {
		all = append(all, asCheck(t, name))
	}
	return all
}

func asCheck(t Test, section string) Test {
	t.Kind, t.Section = SkillsCheck, section
	return t
}

func (d *decider) paper(t Test) (int64, bool) {
	r := d.record()
	switch t.Kind {
	case SkillsCheck:
		level, known := r.sectionEstimate(t.Section)
		return d.pick(t.Section, nearest(level, known))
	case Challenge:
		return d.pick(FullScope, hardest)
	case Baseline, Mock:
	}
	level, known := r.estimate()
	return d.pick(FullScope, nearest(level, known))
}
