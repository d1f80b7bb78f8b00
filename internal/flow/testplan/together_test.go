package testplan_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// renewing is a call under way that renews the access of the plan's course: it holds the
// plan's lock, and has changed the enrollment.
func (s *school) renewing() pgx.Tx {
	s.t.Helper()
	call, err := s.DB.Begin(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = call.Rollback(context.Background()) })
	for _, sql := range []string{
		`UPDATE enrollments SET end_date = '2027-09-01', grace_period_end = '2027-09-08' WHERE id = 1`,
		`UPDATE plans SET updated_at = now() WHERE id = 1`,
	} {
		if _, err := call.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatal(err)
		}
	}
	return call
}

// A plan is decided by the access that its student has when the decision has its lock, and
// not by what there was when it began to wait for it.
func TestAPlanIsNotClosedWhoseAccessIsRenewedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(*school) error{
		"by a task": func(s *school) error {
			var claimed []outbox.Task
			err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error { return plan.TouchEnrollments(t.Context(), tx, 1, s.now, 1) })
			if err == nil {
				claimed, err = outbox.Claim(t.Context(), s.DB, task.PlanStep, s.now, time.Minute, 1)
			}
			if err != nil {
				return err
			}
			return s.Step(t.Context(), task.Outbox{Task: claimed[0].ID, Claim: claimed[0].Claim})
		},
		"by staff": func(s *school) error {
			_, err := s.Resume(t.Context(), audit.Platform, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t)
			s.papers("full", 5)
			s.set(begin())
			s.Exec(`UPDATE enrollments SET end_date = '2027-02-10', grace_period_end = '2027-02-17' WHERE id = 1`)
			call := s.renewing()
			done := make(chan error, 1)
			go func() { done <- decide(s) }()
			pgtest.AwaitBlocked(t, s.DB, call)
			if err := call.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if n := s.Count("plans WHERE status = 'active'"); n != 1 {
				t.Errorf("%d plans are on; the student's history: %v", n, s.events())
			}
		})
	}
}

// A plan that cannot be decided does not keep a worker busy, and is decided once it can be.
func TestAPlanThatCannotBeDecidedIsTriedLaterAndLater(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.papers("full", 5)
	s.set(begin())
	s.Exec(`UPDATE plans SET time_zone = 'Mars/Olympus'`)
	err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error { return plan.TouchEnrollments(t.Context(), tx, 1, s.now, 1) })
	if err != nil {
		t.Fatal(err)
	}
	try := func(after time.Duration) (tried bool, err error) {
		t.Helper()
		s.now = s.now.Add(after)
		claimed, err := outbox.Claim(t.Context(), s.DB, task.PlanStep, s.now, 20*time.Second, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(claimed) == 0 {
			return false, nil
		}
		return true, s.Step(t.Context(), task.Outbox{Task: claimed[0].ID, Claim: claimed[0].Claim})
	}
	for n, pause := range []time.Duration{0, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if n > 0 {
			if tried, err := try(pause - time.Second); tried {
				t.Fatalf("it is tried after %s again: %v", pause-time.Second, err)
			}
			pause = time.Second
		}
		if tried, err := try(pause); check.True(check.Now(t), "tried", tried, "try %d: %v, %v", n, tried, err) {
			check.True(check.Now(t), "there is an error", err != nil, "try %d: %v, %v", n, tried, err)
		}
	}
	s.Exec(`UPDATE plans SET time_zone = 'Asia/Kolkata'`)
	if tried, err := try(8 * time.Minute); check.True(check.Now(t), "tried", tried, "%v %v", tried, err) {
		check.NoError(check.Now(t), err, "%v %v", tried, err)
	}
	if n := s.Count("outbox_tasks WHERE kind = 'plan.step'"); n != 0 {
		t.Errorf("%d steps are still pending", n)
	}
}
