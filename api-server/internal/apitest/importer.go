package apitest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// ImportRosters works on roster runs until the test ends, as a worker does.
func (e *Env) ImportRosters(t testing.TB) {
	t.Helper()
	importer := &rosterimport.Importer{DB: e.DB, Clock: e.Now, Zone: time.UTC, Log: slog.New(slog.NewJSONHandler(e.Log, nil))}
	run(t, func(ctx context.Context) error {
		pg.Listen(ctx, e.DB, func(pg.Notification) {
			claimed, err := outbox.Claim(ctx, e.DB, task.RosterRun, e.Now(), time.Hour, 10)
			for _, o := range claimed {
				if err := importer.Run(ctx, task.Outbox{Task: o.ID, Claim: o.Claim}); err != nil && ctx.Err() == nil {
					t.Errorf("roster run %d: %v", o.Subject, err)
				}
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}, outbox.Channel)
		return nil
	})
}
