package testplan

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// work is a plan to be decided, with its row locked.
type work struct {
	plan    plan.Stored
	quiet   bool         // send the student no mail about this step
	changed bool         // the plan has new settings, which have to be saved
	entries []plan.Entry // to be added to its history
}

// Step decides the plan of a task. A plan that cannot be decided is tried again later, after a longer
// time with each failure.
func (o *Service) Step(ctx context.Context, ref task.Outbox) error {
	err := o.stepTask(ctx, ref)
	if err == nil || errors.Is(err, outbox.ErrLost) || ctx.Err() != nil || pg.Away(err) {
		return err
	}
	return errors.Join(err, outbox.Postpone(ctx, o.DB, ref, o.Clock().Add(backoff(ref.Claim-1))))
}

func (o *Service) stepTask(ctx context.Context, ref task.Outbox) error {
	return o.DB.InTx(ctx, func(tx *pg.Tx) error {
		claimed, err := outbox.Load(ctx, tx, ref)
		if err != nil {
			return err
		}
		stored, err := plan.Lock(ctx, tx, id.Plan(claimed.Subject))
		if err != nil {
			return err
		}
		if _, err := o.step(ctx, tx, o.Clock(), true, work{plan: stored}); err != nil {
			return err
		}
		return outbox.Done(ctx, tx, ref)
	})
}

// step takes over what the students did, decides the plans and carries the decisions out. remarks
// reads again the results that were taken over before, which may have been marked again.
func (o *Service) step(ctx context.Context, tx *pg.Tx, now time.Time, remarks bool, works ...work) ([]work, error) {
	// Assigning locks an organization's positions until the commit, so all transactions need one order.
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
	l := &ledger{Service: o, tx: tx, now: now}
	jobs := make([]*job, len(works))
	for i := range works {
		jobs[i] = &job{ledger: l, work: &works[i], slots: slots[works[i].plan.ID], done: done}
		if err := jobs[i].preview(); err != nil {
			return nil, err
		}
	}
	if err := l.read(ctx, jobs); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.wants {
			j.actions = plan.Decide(j.seen, j.tests, j.results, l.papers.Unseen(j.plan), now)
		}
	}
	if err := l.readItems(ctx, jobs); err != nil {
		return nil, err
	}
	if err := l.readStaff(ctx, jobs); err != nil {
		return nil, err
	}
	for _, j := range jobs {
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

	seen     plan.Plan // for Decide
	tests    []plan.Test
	results  []plan.Result
	finished []finished // tests whose result is new
	actions  []plan.Action
	wants    bool // whether the decision depends on the papers that are left
}

// finished is a test whose result is new, with the result that it had before: nil, or one that is now
// corrected.
type finished struct {
	plan.Slot
	was *plan.Slot
}

// preview takes over what the student did, and decides as if there were papers of every kind.
func (j *job) preview() (err error) {
	if j.seen, err = j.plan.Plan(scaleOf(j.plan.Exam), j.now, j.Zone); err != nil {
		return err
	}
	j.finished = j.observe(j.seen.Zone)
	j.tests, j.results = plan.Tests(j.slots)
	j.actions, j.wants = plan.Preview(j.seen, j.tests, j.results, j.now)
	return nil
}

// idle says whether nothing is to be done for the plan.
func (j *job) idle() bool {
	return len(j.actions) == 0 && len(j.finished) == 0 && len(j.plan.News) == 0 && !j.closes()
}

// closes says whether the plan is closed by this step, or by the call that it belongs to.
func (j *job) closes() bool {
	return j.changed && j.plan.Status == plan.Closed ||
		slices.ContainsFunc(j.actions, func(a plan.Action) bool { return a.Do == plan.Close })
}

func (j *job) run(ctx context.Context) error {
	for _, f := range j.finished {
		j.mailResult(f)
	}
	for _, a := range j.actions {
		if err := j.carry(ctx, a); err != nil {
			return err
		}
	}
	if j.closes() {
		if err := j.takeBackDrills(ctx); err != nil {
			return err
		}
	}
	if j.mailNews() {
		j.changed = true
	}
	for _, e := range j.entries {
		plan.Record(&j.batch, j.plan.ID, e)
	}
	after, tests := plan.Apply(j.seen, j.tests, j.actions)
	next := plan.NextWork(after, tests, j.results, j.now)
	if len(j.plan.News) > 0 {
		next = plan.NextRun(after, j.now)
	}
	if !j.changed && len(j.actions) == 0 {
		j.unchanged, j.nextRuns = append(j.unchanged, j.plan.ID), append(j.nextRuns, next)
		return nil
	}
	plan.Save(&j.batch, j.plan, next, j.now)
	return nil
}

// observe takes over what the student did, and returns the tests whose result is new or corrected.
func (j *job) observe(zone *time.Location) (done []finished) {
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
		switch {
		case after.State != slot.State:
			j.note("test_"+string(after.State), about(after))
			if after.State == plan.Finished {
				done = append(done, finished{Slot: after})
			}
		case !after.Alike(slot):
			detail := about(after)
			detail["was"] = slot.Score
			j.note("test_remarked", detail)
			done = append(done, finished{after, &slot})
		}
	}
	return done
}

// note adds a line about what the schedule found or did to the plan's history.
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
	if s.Late {
		detail["late"] = true
	}
	return detail
}

func (j *job) slot(n int) *plan.Slot {
	i := slices.IndexFunc(j.slots, func(s plan.Slot) bool { return s.Slot == n })
	return &j.slots[i]
}

// carry carries one action out.
func (j *job) carry(ctx context.Context, a plan.Action) error {
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
		s := j.slot(a.Slot)
		s.Test = a.Test
		j.note("test_opened", about(*s))
		j.handouts = append(j.handouts, handout{job: j, test: a.Test, slot: s})
		j.mailOpen(a.Test)
	case plan.Unfill:
		j.keep(a, "test_unfilled")
		j.alert(email.AlertUnfilled, a.Test)
	case plan.Shorten:
		j.keep(a, "test_due_earlier")
		j.addNews(plan.News{Slot: a.Slot, Paper: a.Test.Paper, DueOn: a.Test.DueOn})
		return j.redate(ctx, j.slot(a.Slot).Assignment, plan.DueAt(a.Test.DueOn, j.seen.Zone))
	case plan.Miss:
		j.keep(a, "test_missed")
	case plan.Withdraw:
		j.keep(a, "test_withdrawn")
		return j.takeBack(ctx, j.slot(a.Slot).Assignment)
	case plan.Drill:
		j.handouts = append(j.handouts, handout{job: j, test: a.Test, after: a.Slot})
		j.addNews(plan.News{Slot: a.Slot, Section: a.Test.Section, Paper: a.Test.Paper, DueOn: a.Test.DueOn})
		j.note("drill", map[string]any{"slot": a.Slot, "section": a.Test.Section, "title": j.items[id.Item(a.Test.Paper)].Title, "due_on": a.Test.DueOn})
	case plan.Count:
		if j.plan.Level != a.Level {
			j.note("pace", map[string]any{"from": j.plan.Level, "to": a.Level})
		}
		j.plan.CountedTo, j.plan.Level = a.Slot, a.Level
	case plan.Risk:
		j.plan.AtRisk = a.AtRisk
		j.note("at_risk", map[string]any{"at_risk": a.AtRisk})
		if a.AtRisk {
			j.alert(email.AlertAtRisk, plan.Test{})
		}
	case plan.Close:
		j.plan.Status, j.plan.AtRisk, j.plan.ClosedAt = plan.Closed, false, &j.now
		plan.SaveGoal(&j.batch, j.plan.Organization, j.plan.Enrollment, j.plan.Goal, j.now)
		j.note("closed", map[string]any{"reason": a.Reason})
	}
	return nil
}

// keep stores the test as it is after the action.
func (j *job) keep(a plan.Action, event string) {
	s := j.slot(a.Slot)
	s.Test = a.Test
	plan.SaveSlot(&j.batch, j.plan.ID, *s)
	j.note(event, about(*s))
}
