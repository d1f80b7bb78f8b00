package testplan

import (
	"context"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Listed is a plan with its tests.
type Listed struct {
	Plan  plan.Stored
	Slots []plan.Slot
}

// List returns up to limit plans of the organization whose id is above after, by id, with the closed
// ones. The user 0 means everybody.
func (o *Service) List(ctx context.Context, org id.Organization, user id.User, after id.Plan, limit int) ([]Listed, error) {
	plans, err := plan.List(ctx, o.DB, org, user, after, limit)
	if err != nil {
		return nil, err
	}
	slots, err := plan.Slots(ctx, o.DB, idsOf(plans)...)
	if err != nil {
		return nil, err
	}
	all := make([]Listed, len(plans))
	for i, s := range plans {
		all[i] = Listed{s, slots[s.ID]}
	}
	return all, nil
}

// Pause stops the plan from opening tests. Conflict when it is closed.
func (o *Service) Pause(ctx context.Context, by audit.Actor, which id.Plan) (Listed, error) {
	return o.steer(ctx, by, which, command{"paused", "paused plan"}, func(_ context.Context, _ *pg.Tx, s *steering) error {
		s.plan.Status = plan.Paused
		return nil
	})
}

// Resume lets a paused plan open tests again. Conflict when it is closed.
func (o *Service) Resume(ctx context.Context, by audit.Actor, which id.Plan) (Listed, error) {
	return o.steer(ctx, by, which, command{"resumed", "resumed plan"}, func(_ context.Context, _ *pg.Tx, s *steering) error {
		s.plan.Status = plan.Active
		return nil
	})
}

// SkipTest skips the test that waits or is open, and the plan plans the next one. Conflict when there
// is no such test, or when it was started.
func (o *Service) SkipTest(ctx context.Context, by audit.Actor, which id.Plan) (Listed, error) {
	return o.steer(ctx, by, which, command{"test_skipped", "skipped test of plan"}, func(ctx context.Context, tx *pg.Tx, s *steering) error {
		if err := s.untouched(); err != nil {
			return err
		}
		t := s.last()
		given := t.Assignment
		t.State = plan.Skipped
		s.saved, s.detail = append(s.saved, *t), about(*t)
		if given == 0 {
			return nil
		}
		return (&job{ledger: &ledger{Service: o, tx: tx, now: s.now}, work: &work{plan: s.plan}}).takeBack(ctx, given)
	})
}

// OpenTest opens the waiting test today. Conflict when no test waits, when it is open already, while
// the plan is paused, or after the last test day.
func (o *Service) OpenTest(ctx context.Context, by audit.Actor, which id.Plan) (Listed, error) {
	return o.steer(ctx, by, which, command{"test_opened_today", "opened test of plan"}, func(_ context.Context, _ *pg.Tx, s *steering) error {
		if err := s.untouched(); err != nil {
			return err
		}
		today, last := clock.DateIn(s.now, s.zone), plan.LastDay(s.plan.ExamDate, s.plan.AccessEnd)
		t := s.last()
		switch {
		case t.State == plan.Opened:
			return fault.New(fault.Conflict, "test_is_open", "the plan's next test is open already")
		case s.plan.Status != plan.Active:
			return fault.New(fault.Conflict, "plan_is_paused", "the plan is paused; resume it first")
		case today.After(last):
			return fault.New(fault.Conflict, "too_late", "the last test day was %v", last)
		}
		t.Fixed, t.State, t.OpensOn, t.DueOn = true, plan.Waiting, today, today.AddDays(t.OpensOn.DaysUntil(t.DueOn))
		if t.DueOn.After(last) {
			t.DueOn = last
		}
		s.saved, s.detail = append(s.saved, *t), about(*t)
		return nil
	})
}

// officialResult is the only command that a closed plan accepts.
const officialResult = "official_result"

// RecordOfficial stores the result of the real exam. The result does not count for the estimate, and
// the plan goes on. Invalid when a score is not on the exam's scale, and when the date is after today
// in the plan's zone.
func (o *Service) RecordOfficial(ctx context.Context, by audit.Actor, which id.Plan, result plan.Official) (Listed, error) {
	return o.steer(ctx, by, which, command{officialResult, "recorded official result of plan"}, func(_ context.Context, _ *pg.Tx, s *steering) error {
		if err := plan.CheckOfficial(scaleOf(s.plan.Exam), result, clock.DateIn(s.now, s.zone)); err != nil {
			return err
		}
		s.plan.Official = &result
		s.detail = map[string]any{"score": result.Score, "sections": result.Sections, "date": result.On}
		return nil
	})
}

// steering is a plan that staff change, with its row locked.
type steering struct {
	plan   plan.Stored
	slots  []plan.Slot
	now    time.Time
	zone   *time.Location
	saved  []plan.Slot // tests that are different now
	detail map[string]any
}

func (s *steering) last() *plan.Slot { return &s.slots[len(s.slots)-1] }

// untouched returns the Conflict when no test waits or is open.
func (s *steering) untouched() error {
	switch {
	case len(s.slots) == 0 || !s.last().Unfinished():
		return fault.New(fault.Conflict, "no_test", "the plan has no test that waits or is open")
	case s.last().State == plan.Started:
		return fault.New(fault.Conflict, "test_was_started", "the student has started the test; it is not touched")
	}
	return nil
}

// command is what the history and the audit log call a change of a plan.
type command struct{ event, action string }

// steer changes a plan, records the change in its history and the audit log, and decides the plan.
func (o *Service) steer(ctx context.Context, by audit.Actor, which id.Plan, c command, change func(context.Context, *pg.Tx, *steering) error) (done Listed, err error) {
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		s, err := o.take(ctx, tx, which)
		if err != nil {
			return err
		}
		if s.plan.Status == plan.Closed && c.event != officialResult {
			return fault.New(fault.Conflict, "plan_is_closed", "the plan is closed; start a new one with POST /provision/student/")
		}
		if err := change(ctx, tx, s); err != nil {
			return err
		}
		var b pg.Batch
		for _, slot := range s.saved {
			plan.SaveSlot(&b, which, slot)
		}
		if err := b.Send(ctx, tx); err != nil {
			return err
		}
		err = audit.Write(ctx, tx, audit.Entry{Organization: s.plan.Organization, Actor: by, Action: c.action,
			Target: strconv.FormatInt(int64(which), 10), At: s.now})
		if err != nil {
			return err
		}
		entry := plan.Entry{At: s.now, Actor: nameInHistory(by), Event: c.event, Detail: s.detail}
		works, err := o.step(ctx, tx, s.now, false, work{plan: s.plan, changed: true, entries: []plan.Entry{entry}})
		if err != nil {
			return err
		}
		slots, err := plan.Slots(ctx, tx, which)
		done = Listed{works[0].plan, slots[which]}
		return err
	})
	return done, err
}

// nameInHistory is what a plan's history calls the actor.
func nameInHistory(by audit.Actor) string {
	switch by.Kind {
	case audit.PlatformKey:
		return plan.ActorPlatform
	case audit.Staff:
		return plan.StaffActor(by.Name)
	case audit.PartnerKey, audit.Operator, audit.Schedule, audit.Student, audit.Nobody:
	}
	return by.Name
}

func (o *Service) take(ctx context.Context, tx *pg.Tx, which id.Plan) (*steering, error) {
	stored, err := plan.Lock(ctx, tx, which)
	if err != nil {
		return nil, err
	}
	slots, err := plan.Slots(ctx, tx, which)
	if err != nil {
		return nil, err
	}
	zone, err := clock.Zone("timezone", stored.TimeZone)
	return &steering{plan: stored, slots: slots[which], now: o.Clock(), zone: zone}, err
}
