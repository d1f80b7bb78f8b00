package periodic_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/worker/internal/periodic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func TestJobsRunAtOnceAndThenAtTheirIntervalWhateverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute-time.Second)
		defer cancel()
		var hourly, minutely atomic.Int64
		periodic.Run(ctx, clock.System, quiet, []periodic.Job{
			{Name: "fails", Every: time.Hour, Run: func(context.Context, time.Time) error { hourly.Add(1); return errors.New("no") }},
			{Name: "works", Every: time.Minute, Run: func(context.Context, time.Time) error { minutely.Add(1); return nil }},
		})
		check.Equal(check.Now(t), "number of hourly turns", hourly.Load(), 3, "%d and %d turns", hourly.Load(), minutely.Load())
		check.Equal(check.Now(t), "number of turns each minute", minutely.Load(), 150, "%d and %d turns", hourly.Load(), minutely.Load())
	})
}

func TestTheJobs(t *testing.T) {
	t.Parallel()
	f := flowtest.New(t)
	db := f.Database
	now := time.Date(2031, 3, 30, 23, 59, 0, 0, time.UTC)
	f.Exec(`
		INSERT INTO set_password_tokens (hash, user_id, organization_id, created_at, expires_at)
		SELECT h::bytea, $2, $3, $1::timestamptz, $1::timestamptz + e
		FROM (VALUES ('over', interval '-1 s'), ('good', interval '1 s')) AS v(h, e)`,
		now, f.Account("ada@saffron.school", "Ada", ""), f.Organization("school").ID)
	for range 2 { // each may be repeated
		for _, d := range periodic.All(db, time.UTC, 30) {
			if err := d.Run(t.Context(), now); err != nil {
				t.Fatalf("%s: %v", d.Name, err)
			}
		}
	}
	var links, partitions int
	err := db.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM set_password_tokens WHERE hash = 'good'::bytea) * 10 + (SELECT count(*) FROM set_password_tokens),
			(SELECT count(*) FROM pg_class WHERE relname ~ '^webhook_(events|journal)_2031(0330|0331|040[1-5])$'
				OR relname ~ '^activity_events_2031(0331|040[1-6])$')`).Scan(&links, &partitions)
	check.NoError(check.Now(t), err, "links %d, want the good one alone; %d partitions, want 3 for each of 7 days (%v)", links, partitions, err)
	check.Equal(check.Now(t), "links", links, 11, "links %d, want the good one alone; %d partitions, want 3 for each of 7 days (%v)", links, partitions, err)
	check.Equal(check.Now(t), "partitions", partitions, 21, "links %d, want the good one alone; %d partitions, want 3 for each of 7 days (%v)", links, partitions, err)
}
