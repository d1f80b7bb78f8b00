package testplan

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// work is a plan that is to be decided, under its row lock.
type work struct {
	plan    plan.Stored
	changed bool         // it has new settings, to be saved with what follows from them
	entries []plan.Entry // of its history, likewise
}

// Step decides the plan that an owed task is about.
func (o *Office) Step(ctx context.Context, ref task.Outbox) error {
	return o.DB.InTx(ctx, func(tx *pg.Tx) error {
		owed, err := outbox.Load(ctx, tx, ref)
		if err != nil {
			return err
		}
		stored, err := plan.Lock(ctx, tx, id.Plan(owed.Subject))
		if err != nil {
			return err
		}
		if _, err := o.step(ctx, tx, o.Clock(), true, work{plan: stored}); err != nil {
			return err
		}
		return outbox.Done(ctx, tx, ref)
	})
}

// step observes what the students did, decides the plans and carries it out. remarks
// looks at results again that were taken in before.
func (o *Office) step(ctx context.Context, tx *pg.Tx, now time.Time, remarks bool, works ...work) ([]work, error) {
	// One order for everybody: assigning locks an organization's position until the commit.
	slices.SortFunc(works, func(a, b work) int {
		return cmp.Or(cmp.Compare(a.plan.Organization, b.plan.Organization), cmp.Compare(a.plan.ID, b.plan.ID))
	})
	ids := make([]id.Plan, len(works))
	for i, w := range works {
		ids[i] = w.plan.ID
	}
	slots, err := plan.Slots(ctx, tx, ids...)
	if err != nil {
		return nil, err
	}
	done, err := plan.Works(ctx, tx, remarks, ids...)
	if err != nil {
		return nil, err
	}
	l := &ledger{Office: o, tx: tx, now: now, today: clock.DateIn(now, o.Zone)}
	for i := range works {
		j := &job{ledger: l, work: &works[i], slots: slots[works[i].plan.ID], done: done}
		if err := j.run(ctx); err != nil {
			return nil, err
		}
	}
	return works, l.close(ctx)
}

// job is one plan of a step.
type job struct {
	*ledger
	*work
	slots []plan.Slot
	done  map[id.Assignment]plan.Work
}

func (j *job) run(ctx context.Context) error {
	p, err := j.plan.Plan(scaleOf(j.plan.Exam), j.today)
	if err != nil {
		return err
	}
	finished := j.observe(p.Zone)
	tests, results := plan.Tests(j.slots)
	var papers []plan.Paper
	if plan.WantsPaper(p, tests, results, j.now) {
		if papers, err = plan.Papers(ctx, j.tx, j.plan.Organization, j.plan.User, j.plan.Exam); err != nil {
			return err
		}
	}
	actions := plan.Decide(p, tests, results, papers, j.now)
	for _, slot := range finished {
		if err := j.tellResult(ctx, slot); err != nil {
			return err
		}
	}
	for _, a := range actions {
		if err := j.carry(ctx, a, p.Zone); err != nil {
			return err
		}
	}
	p, _ = plan.Apply(p, tests, actions)
	for _, e := range j.entries {
		plan.Record(&j.batch, j.plan.ID, e)
	}
	look := plan.NextLook(p, j.now)
	if !j.changed && len(actions) == 0 {
		j.looks(j.plan.ID, look)
		return nil
	}
	plan.Save(&j.batch, j.plan, look, j.now)
	return nil
}

// observe takes over what the student did, and gives the tests that have a result now
// and had none.
func (j *job) observe(zone *time.Location) (finished []plan.Slot) {
	for i, slot := range j.slots {
		w, ok := j.done[slot.Assignment]
		if !ok || slot.Assignment == 0 {
			continue
		}
		after, changed := slot.Observe(w, zone)
		if !changed {
			continue
		}
		j.slots[i] = after
		plan.SaveSlot(&j.batch, j.plan.ID, after)
		if after.State == plan.Finished && slot.State != plan.Finished {
			finished = append(finished, after)
		}
		if after.State != slot.State || after.State == plan.Finished {
			j.note("test_"+string(after.State), about(after))
		}
	}
	return finished
}

// note adds a line of what the schedule saw or did to the plan's history.
func (j *job) note(event string, detail map[string]any) {
	j.entries = append(j.entries, plan.Entry{At: j.now, Actor: plan.ActorSchedule, Event: event, Detail: detail})
}

func about(s plan.Slot) map[string]any {
	detail := map[string]any{"slot": s.Slot, "kind": s.Kind, "opens_on": s.OpensOn, "due_on": s.DueOn}
	if s.Section != "" {
		detail["section"] = s.Section
	}
	if s.Score != nil {
		detail["score"] = s.Score
	}
	return detail
}

func (j *job) slot(n int) *plan.Slot {
	i := slices.IndexFunc(j.slots, func(s plan.Slot) bool { return s.Slot == n })
	return &j.slots[i]
}

// carry does one action.
func (j *job) carry(ctx context.Context, a plan.Action, zone *time.Location) error {
	switch a.Do {
	case plan.Schedule:
		j.slots = append(j.slots, plan.Slot{Test: a.Test})
		j.keep(a, "test_planned")
	case plan.Replan:
		j.keep(a, "test_planned")
	case plan.Drop:
		j.note("test_dropped", about(*j.slot(a.Slot)))
		j.slots = slices.DeleteFunc(j.slots, func(s plan.Slot) bool { return s.Slot == a.Slot })
		plan.DropSlot(&j.batch, j.plan.ID, a.Slot)
	case plan.OpenTest:
		return j.openTest(ctx, a, zone)
	case plan.Unfill:
		j.keep(a, "test_unfilled")
		return j.alert(ctx, unfilled, a.Test)
	case plan.Shorten:
		j.keep(a, "test_due_earlier")
		return j.redate(ctx, j.slot(a.Slot).Assignment, plan.DueAt(a.Test.DueOn, zone))
	case plan.Miss:
		j.keep(a, "test_missed")
	case plan.Withdraw:
		j.keep(a, "test_withdrawn")
		return j.takeBack(ctx, j.slot(a.Slot).Assignment)
	case plan.Drill:
		return j.drill(ctx, a, zone)
	case plan.Count:
		if j.plan.Level != a.Level {
			j.note("pace", map[string]any{"from": j.plan.Level, "to": a.Level})
		}
		j.plan.CountedTo, j.plan.Level = a.Slot, a.Level
	case plan.Risk:
		j.plan.AtRisk = a.AtRisk
		j.note("at_risk", map[string]any{"at_risk": a.AtRisk})
		if a.AtRisk {
			return j.alert(ctx, atRisk, plan.Test{})
		}
	case plan.Close:
		j.plan.Status, j.plan.AtRisk, j.plan.ClosedAt = plan.Closed, false, j.now
		plan.SaveGoal(&j.batch, j.plan.Organization, j.plan.Enrolment, j.plan.Goal, j.now)
		j.note("closed", map[string]any{"reason": "access is over"})
	}
	return nil
}

// keep stores the test as the action leaves it.
func (j *job) keep(a plan.Action, event string) {
	s := j.slot(a.Slot)
	s.Test = a.Test
	plan.SaveSlot(&j.batch, j.plan.ID, *s)
	j.note(event, about(*s))
}

// sweepBatch is how many plans one transaction of the daily pass decides.
const sweepBatch = 200

// Sweep decides every plan whose time has come, many in a transaction. Several may sweep
// at once: a plan is decided by one of them. A plan that cannot be decided is put off, and
// the others go on.
func (o *Office) Sweep(ctx context.Context) (decided int, err error) {
	for {
		ids, err := o.sweepSome(ctx)
		if err != nil && ctx.Err() == nil && !pg.Away(err) {
			err = o.oneByOne(ctx, ids)
		}
		decided += len(ids)
		if err != nil || len(ids) < sweepBatch {
			return decided, err
		}
	}
}

func (o *Office) sweepSome(ctx context.Context) (ids []id.Plan, err error) {
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		now := o.Clock()
		due, err := plan.LockDue(ctx, tx, now, sweepBatch)
		if err != nil || len(due) == 0 {
			ids = nil
			return err
		}
		ids = idsOf(due)
		works := make([]work, len(due))
		for i, s := range due {
			works[i] = work{plan: s}
		}
		_, err = o.step(ctx, tx, now, false, works...)
		return err
	})
	return ids, err
}

// oneByOne keeps a plan that fails from holding up those beside it.
func (o *Office) oneByOne(ctx context.Context, ids []id.Plan) error {
	for _, one := range ids {
		failures := 0
		err := o.DB.InTx(ctx, func(tx *pg.Tx) error {
			stored, err := plan.Lock(ctx, tx, one)
			if err != nil {
				return err
			}
			failures = stored.Failures
			_, err = o.step(ctx, tx, o.Clock(), false, work{plan: stored})
			return err
		})
		if err == nil {
			continue
		}
		if ctx.Err() != nil || pg.Away(err) {
			return err
		}
		o.Log.ErrorContext(ctx, "a test plan could not be decided; it is tried again later", "plan", one, "failures", failures+1, "error", err)
		if err := plan.Postpone(ctx, o.DB, one, o.Clock().Add(backoff(failures))); err != nil {
			return err
		}
	}
	return nil
}

// backoff is a minute, doubled with each failure, up to some hours.
func backoff(failures int) time.Duration { return time.Minute << min(failures, 8) }
