package apitest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// DecidePlans does what a worker does with test plans at the APIs' time: the steps that are
// pending, then the pass over the plans whose day has begun.
func (e *Env) DecidePlans(t testing.TB) {
	t.Helper()
	db := pgtest.OpenAs(t, e.DB, "worker")
	service := &testplan.Service{DB: db, Mail: email.Service{Box: e.Box}, Clock: e.Now, Log: slog.New(slog.NewJSONHandler(e.Log, nil)),
		Zone: time.UTC, PublicURL: PublicURL}
	claimed, err := outbox.Claim(t.Context(), db, task.PlanStep, e.Now(), time.Hour, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range claimed {
		if err := service.Step(t.Context(), task.Outbox{Task: o.ID, Claim: o.Claim}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := service.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}
