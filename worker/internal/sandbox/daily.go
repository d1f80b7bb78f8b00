package sandbox

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/flow/retention"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/replay"
	"github.com/registrar-dev/registrar/worker/internal/periodic"
)

// daily compiles the attendance register of all days that are over, and drops what is old, as jobs of the worker do more
// often in real time.
// A sandbox makes no partitions: there is one row in it where an installation has thousands.
func (d *Driver) daily(ctx context.Context) (bool, error) {
	steps := []func() error{
		func() error { _, err := activity.CompileDue(ctx, d.db, d.now); return err },
		func() error { return activity.DropExpired(ctx, d.db, d.now) },
		func() error {
			_, err := journal.Drop(ctx, d.db, clock.DateIn(d.now, time.UTC).AddDays(-d.WebhookRetention))
			return err
		},
		func() error { return journal.Tidy(ctx, d.db, d.now) },
		func() error { return lti.DropUsedNonces(ctx, d.db, d.now) },
		func() error {
			return roster.Clear(ctx, d.db, d.now.Add(-periodic.UploadKept), d.now.AddDate(0, 0, -periodic.RosterKept))
		},
		func() error { _, err := student.DropExpiredLinks(ctx, d.db, d.now); return err },
		func() error { _, err := replay.DropExpired(ctx, d.db, d.Real()); return err },
		func() error { return retention.Drop(ctx, d.db, d.Keep, d.now) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return false, err
		}
	}
	d.kept = clock.DateIn(d.now, activity.Zone)
	return true, sandbox.Kept(ctx, d.db, d.mover, d.kept)
}
