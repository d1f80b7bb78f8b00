package pg_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

func TestClocksThatAreWrongAgree(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	wrong := func(by time.Duration) *pg.Clock {
		c, err := pg.StartClock(t.Context(), db, func() time.Time { return time.Now().Add(by) }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ahead, behind := wrong(7*time.Minute), wrong(-7*time.Minute)
	if difference := ahead.Now().Sub(behind.Now()).Abs(); difference > time.Minute {
		t.Errorf("two processes of one database differ by %s", difference)
	}
	var theirs time.Time
	if err := db.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
		t.Fatal(err)
	}
	if difference := ahead.Now().Sub(theirs).Abs(); difference > time.Minute {
		t.Errorf("a process differs from its database by %s", difference)
	}
}
