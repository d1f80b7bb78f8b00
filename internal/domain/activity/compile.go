package activity

import (
	"context"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Day is a student's row in the register.
type Day struct {
	Organization id.Organization
	User         id.User
	Date         clock.Date
	Totals
}

// Compiled says what a day's compilation found.
type Compiled struct {
	Date   clock.Date
	Rows   int // students with activity, in all organizations
	Events int // as they were reported, doubles included
}

// Compile writes the register of a day anew from its events. It may be repeated, and
// readers see the register from before until it is done. The day of now may be compiled
// as well; it is compiled again when it is over. Invalid for a day that has not begun,
// or whose events are no longer kept.
func Compile(ctx context.Context, db *pg.DB, day clock.Date, now time.Time) (Compiled, error) {
	today := clock.DateIn(now, Zone)
	if oldest := today.AddDays(-RawDays); day.After(today) || day.Before(oldest) {
		return Compiled{}, fault.Field("date", "out_of_range",
			"date: send a day from %s, the oldest whose events are kept, to %s, which is today in India Standard Time", oldest, today)
	}
	return compile(ctx, db, day, now)
}

// CompileDue closes every day that is over and compiles what is closed and not yet
// compiled, oldest first: what was not done for days is done now. It returns what it
// compiled, also beside an error.
func CompileDue(ctx context.Context, db *pg.DB, now time.Time) ([]Compiled, error) {
	if err := closeDays(ctx, db, now); err != nil {
		return nil, fmt.Errorf("closing the days that are over: %w", err)
	}
	task, err := selectUncompiled(ctx, db)
	if err != nil {
		return nil, err
	}
	var done []Compiled
	for _, day := range task {
		c, err := compile(ctx, db, day, now)
		if err != nil {
			return done, fmt.Errorf("compiling %s: %w", day, err)
		}
		done = append(done, c)
	}
	return done, nil
}

// closeDays waits for the calls that are taking events, and lets those that come see
// which days are over: an event is in time and compiled, or it is reported as late.
func closeDays(ctx context.Context, db *pg.DB, now time.Time) error {
	next, err := selectNextToClose(ctx, db, lastOver(now))
	if err != nil || next.After(lastOver(now)) {
		return err
	}
	return db.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockActivity, registerKey); err != nil {
			return err
		}
		return insertClosed(ctx, tx, next, lastOver(now), now)
	})
}

// registerKey is locked in share mode by who adds events, and alone by who closes days.
const registerKey = "register"

// writeSize is how many rows are written at a time.
const writeSize = 5_000

func compile(ctx context.Context, db *pg.DB, day clock.Date, now time.Time) (Compiled, error) {
	var c Compiled
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		c = Compiled{Date: day}
		if err := pg.Lock(ctx, tx, pg.LockActivity, day.String()); err != nil {
			return err
		}
		if err := deleteDay(ctx, tx, day); err != nil {
			return err
		}
		w := &writer{tx: tx, day: day}
		events, err := eachOfDay(ctx, tx, clock.DayStart(day, Zone), end(day), w.add)
		if err != nil {
			return err
		}
		if err := w.finish(ctx); err != nil {
			return err
		}
		c.Events, c.Rows = events, w.rows
		return markCompiled(ctx, tx, day, now)
	})
	return c, err
}

// writer makes rows of events that come student by student.
type writer struct {
	tx      *pg.Tx
	day     clock.Date
	org     id.Organization
	user    id.User
	events  []Event // of the student in hand
	pending []Day
	rows    int
}

func (w *writer) add(ctx context.Context, r row) error {
	if r.org != w.org || r.user != w.user {
		w.sum()
		w.org, w.user = r.org, r.user
	}
	w.events = append(w.events, r.Event)
	if len(w.pending) < writeSize {
		return nil
	}
	return w.write(ctx)
}

func (w *writer) sum() {
	if len(w.events) > 0 {
		w.pending = append(w.pending, Day{Organization: w.org, User: w.user, Date: w.day, Totals: Sum(w.events)})
		w.events = w.events[:0]
	}
}

func (w *writer) finish(ctx context.Context) error {
	w.sum()
	return w.write(ctx)
}

func (w *writer) write(ctx context.Context) error {
	n, err := insertDays(ctx, w.tx, w.pending)
	w.rows += n
	w.pending = w.pending[:0]
	return err
}

// MakePartitions gives each of the days from first on a partition of its own for its
// events, where it lacks one. It fails, to be done again later, where a compilation reads the
// events for long.
func MakePartitions(ctx context.Context, db *pg.DB, first clock.Date, days int) error {
	return db.InTx(ctx, func(tx *pg.Tx) error { return makePartitions(ctx, tx, first, days) })
}

// DropExpired drops the events that are no longer kept, whole days at a time. A day that
// is not compiled yet keeps its own. It fails as MakePartitions does.
func DropExpired(ctx context.Context, db *pg.DB, now time.Time) error {
	keep := clock.DateIn(now, Zone).AddDays(-RawDays)
	task, err := selectUncompiled(ctx, db)
	if err != nil {
		return err
	}
	if len(task) > 0 && task[0].Before(keep) {
		keep = task[0]
	}
	return db.InTx(ctx, func(tx *pg.Tx) error { return dropPartitions(ctx, tx, keep) })
}
