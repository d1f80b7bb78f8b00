package apitest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// ImportRosters works on roster runs until the test ends, as a worker does.
func (e *Env) ImportRosters(t testing.TB) {
	t.Helper()
	db := pgtest.OpenAs(t, e.DB, "worker")
	importer := &rosterimport.Importer{DB: db, Clock: e.Now, Zone: time.UTC, Log: slog.New(slog.NewJSONHandler(e.Log, nil))}
	run(t, func(ctx context.Context) error {
		db.Wakes.Subscribe(ctx, func(wake.Notification) {
			claimed, err := outbox.Claim(ctx, db, task.RosterRun, e.Now(), time.Hour, 10)
			if ctx.Err() != nil {
				return // the test has ended
			}
			check.NoError(t, err, "claiming roster runs")
			for _, o := range claimed {
				err := importer.Run(ctx, task.Outbox{Task: o.ID, Claim: o.Claim})
				if ctx.Err() != nil {
					return
				}
				check.NoError(t, err, "roster run %d", o.Subject)
			}
		}, outbox.Channel)
		return nil
	})
}
