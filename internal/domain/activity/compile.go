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

// Compiled is the outcome of a day's compilation.
type Compiled struct {
	Date   clock.Date
	Rows   int // students with activity, in all organizations
	Events int // with those that were reported twice
}

// Compile writes the register of a day again from its events. It may be repeated, and readers see the old
// register until it is done. Today may be compiled too; it is compiled again when it is over. Invalid for a
// day that has not begun, or whose events are no longer kept.
func Compile(ctx context.Context, db *pg.DB, day clock.Date, now time.Time) (Compiled, error) {
	today := clock.DateIn(now, Zone)
	if oldest := today.AddDays(-RawDays); day.After(today) || day.Before(oldest) {
		return Compiled{}, fault.Field("date", "out_of_range",
			"date: send a day from %s, the oldest whose events are kept, to %s, which is today in India Standard Time", oldest, today)
	}
	return compile(ctx, db, day, now)
}

// CompileDue closes every day that is over and compiles all closed days that are not compiled yet, the oldest
// first. It returns what it compiled, also together with an error.
func CompileDue(ctx context.Context, db *pg.DB, now time.Time) ([]Compiled, error) {
	if err := closeDays(ctx, db, now); err != nil {
		return nil, fmt.Errorf("closing the days that are over: %w", err)
	}
	days, err := selectUncompiled(ctx, db)
	if err != nil {
		return nil, err
	}
	var done []Compiled
	for _, day := range days {
		c, err := compile(ctx, db, day, now)
		if err != nil {
			return done, fmt.Errorf("compiling %s: %w", day, err)
		}
		done = append(done, c)
	}
	return done, nil
}

// closeDays waits for running calls of Record, and later calls see the closed days. So every event is either
// in time and compiled, or reported as late.
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

// registerKey is locked in share mode to add events, and exclusively to close days.
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

// writer makes rows from events, which it gets student by student.
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

// MakePartitions makes the missing partitions for the events of the days from first on. It fails when a
// compilation reads the events for long; try again later.
func MakePartitions(ctx context.Context, db *pg.DB, first clock.Date, days int) error {
	return db.InTx(ctx, func(tx *pg.Tx) error { return makePartitions(ctx, tx, first, days) })
}

// DropExpired drops the events of days before RawDays. A day that is not compiled yet keeps its events, and so
// do later ones. It fails as MakePartitions does.
func DropExpired(ctx context.Context, db *pg.DB, now time.Time) error {
	keep := clock.DateIn(now, Zone).AddDays(-RawDays)
	days, err := selectUncompiled(ctx, db)
	if err != nil {
		return err
	}
	if len(days) > 0 && days[0].Before(keep) {
		keep = days[0]
	}
	return db.InTx(ctx, func(tx *pg.Tx) error { return dropPartitions(ctx, tx, keep) })
}
