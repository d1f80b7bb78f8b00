package pg

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Clock has PostgreSQL's time, which processes share: a lease of one process does not look
// expired to another because its machine's clock is ahead.
type Clock struct {
	db      *DB
	machine clock.Clock
	log     *slog.Logger
	offset  atomic.Int64 // PostgreSQL's time less the machine's
}

const (
	clockEvery = 30 * time.Second
	// clockOff is a difference that is worth a word, once: well-kept clocks stay below it.
	clockOff = 2 * time.Second
)

// StartClock asks for the time once, and then again every half minute until ctx ends. While
// PostgreSQL does not answer, the machine's clock goes on from what was known.
func StartClock(ctx context.Context, db *DB, machine clock.Clock, log *slog.Logger) (*Clock, error) {
	c := &Clock{db: db, machine: machine, log: log}
	if err := c.measure(ctx); err != nil {
		return nil, err
	}
	go c.keep(ctx)
	return c, nil
}

// Now is PostgreSQL's time, to within the time that a statement takes.
func (c *Clock) Now() time.Time { return c.machine().Add(time.Duration(c.offset.Load())) }

func (c *Clock) keep(ctx context.Context) {
	for range clock.Ticks(ctx, clockEvery) {
		_ = c.measure(ctx) // the next time, then
	}
}

// measure assumes that PostgreSQL read its clock in the middle of the statement.
func (c *Clock) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := c.db.Acquire(ctx) // waiting for a connection is none of the statement's time
	if err != nil {
		return err
	}
	defer conn.Release()
	var theirs time.Time
	before := c.machine()
	if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
		return err
	}
	took := c.machine().Sub(before)
	offset := theirs.Sub(before.Add(took / 2))
	if known := time.Duration(c.offset.Load()); (offset - known).Abs() <= took/2 {
		return nil // within the error of the measurement, nothing has changed
	}
	if old := time.Duration(c.offset.Swap(int64(offset))); (offset - old).Abs() > clockOff {
		c.log.WarnContext(ctx, "this machine's clock and PostgreSQL's differ; PostgreSQL's counts", "ahead", -offset)
	}
	return nil
}

// Metrics makes the difference visible.
func (c *Clock) Metrics(reg prometheus.Registerer) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "registrar_clock_offset_seconds",
		Help: "PostgreSQL's time less this machine's; the program goes by PostgreSQL's."},
		func() float64 { return time.Duration(c.offset.Load()).Seconds() }))
}
