package testplan_test

import (
	"context"
	"slices"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

func TestStaffSteerAPlan(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	ctx := t.Context()
	if l, err := s.SkipTest(ctx, audit.Platform, 1); check.NoError(check.Now(t), err, "%v %v", l, err) {
		check.Equal(check.Now(t), "the first slot's state", l.Slots[0].State, plan.Skipped, "%v %v", l, err)
	}
	s.want("baseline skipped 03-01, baseline waiting 03-08")
	if n := s.Count("assignments WHERE status = 'expired'"); n != 1 {
		t.Error("the skipped test is still open")
	}
	if _, err := s.OpenTest(ctx, audit.Platform, 1); err != nil {
		t.Fatal(err)
	}
	s.want("baseline skipped 03-01, baseline opened 03-01")
	if _, err := s.OpenTest(ctx, audit.Platform, 1); !fault.Has(err, "test_is_open") {
		t.Errorf("%v", err)
	}
	if l, err := s.Pause(ctx, audit.Platform, 1); check.NoError(t, err, "%v %v", l, err) {
		check.Equal(t, "l.Plan.Status", l.Plan.Status, plan.Paused, "%v %v", l, err)
	}
	s.pass(5)
	s.want("baseline skipped 03-01, baseline withdrawn 03-01")
	if l, err := s.Resume(ctx, audit.Platform, 1); check.NoError(t, err, "%v %v", l, err) {
		check.Equal(t, "l.Plan.Status", l.Plan.Status, plan.Active, "%v %v", l, err)
	}
	s.want("baseline skipped 03-01, baseline withdrawn 03-01, baseline waiting 03-08")
	official := plan.Official{Score: num("7.5"), Sections: map[string]decimal.Number{"reading": num("8")}, On: clock.DateOf(2027, 3, 5)}
	if l, err := s.RecordOfficial(ctx, audit.Platform, 1, official); check.NoError(t, err, "%v %v", l, err) {
		check.Equal(t, "l.Plan.Official.Score", l.Plan.Official.Score, num("7.5"), "%v %v", l, err)
	}
	official.Score = num("7.3")
	if _, err := s.RecordOfficial(ctx, audit.Platform, 1, official); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
	s.set(plan.Request{TestPlan: new(false)})
	if _, err := s.Pause(ctx, audit.Platform, 1); !fault.Has(err, "plan_is_closed") {
		t.Errorf("%v", err)
	}
	if _, err := s.SkipTest(ctx, audit.Platform, 77); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if got := s.events(); check.True(t, "the pause is in the history", slices.Contains(got, "platform paused"), "%v", got) {
		check.True(t, "the official result is in the history", slices.Contains(got, "platform official_result"), "%v", got)
	}
}

func TestWhatStaffCannotDoToATest(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 9)
	s.set(begin())
	type action func(context.Context, audit.Actor, id.Plan) (testplan.Listed, error)
	want := func(code string, actions ...action) {
		t.Helper()
		for _, do := range actions {
			_, err := do(t.Context(), audit.Platform, 1)
			if code == "" {
				check.NoError(check.Now(t), err, "want no fault")
			} else {
				check.True(check.Now(t), "the fault is "+code, fault.Has(err, code), "%v", err)
			}
		}
	}
	want("", s.SkipTest, s.Pause) // the next one waits
	want("plan_is_paused", s.OpenTest)
	want("", s.Resume, s.OpenTest, s.Pause)
	s.pass(5) // what was open is withdrawn
	want("no_test", s.SkipTest, s.OpenTest)
	want("", s.Resume, s.OpenTest)
	s.Exec(`UPDATE assignments SET status = 'in_progress' WHERE status = 'pending'`)
	s.touch()
	want("test_was_started", s.SkipTest, s.OpenTest)
}
