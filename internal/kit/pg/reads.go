package pg

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Reads leads what only reads to a standby while that keeps up, and to the primary otherwise.
//
// A read of the standby finds all that was committed before it began, whoever committed it. For that the
// primary is asked how far its log is written, and the standby how far it has come; the read begins once
// that is as far. With synchronous replication the standby also shows commits some time before the primary
// does, so a read ends once that shows what the standby does: its caller may go on there. Reads at the same
// time share these questions. So callers need not know where they read, and a page behind a webhook has what
// the webhook is about.
type Reads struct {
	primary *DB
	address *pgxpool.Config // nil: there is no standby

	standby atomic.Pointer[DB]     // nil until it was opened
	server  atomic.Pointer[string] // which one its connections lead to; nil: to none
	now     atomic.Int32           // a standbyState
	arrived chan struct{}

	mu      sync.Mutex
	waiting []*reader

	reads  *prometheus.CounterVec
	waited prometheus.Histogram
	behind prometheus.Gauge
}

// reader waits until the standby has what it may have to find, or, as it leaves, until the primary shows
// what it may have found.
type reader struct {
	since    time.Time
	leaves   bool
	asked    bool      // the primary, since it came
	position int64     // of the log, when it was asked
	turn     chan bool // whether it need not wait any more
}

// standbyState says whether reads are led to the standby; as text, why not.
type standbyState int32

const (
	standbyAway standbyState = iota
	standbyBehind
	standbyUsed
)

func (s standbyState) String() string { return [...]string{"away", "behind", "used"}[s] }

// noStandby is why the primary is read where no other server is configured.
const noStandby = "no_standby"

const (
	// readPatience is how long a read waits for a standby that is behind.
	readPatience = 100 * time.Millisecond

	// standbyPause lies between two looks at a standby that is not used.
	standbyPause = 250 * time.Millisecond

	// standbyTimeout bounds a question to the primary or the standby.
	standbyTimeout = time.Second
)

// ReadPrimary makes one that has no standby.
func ReadPrimary(primary *DB) *Reads {
	r := &Reads{primary: primary, arrived: make(chan struct{}, 1),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_reads_total",
			Help: "Reads by the server that they were led to, and why: of a standby that is used, or of the primary because there is none, or it is behind, ahead, away or has failed."},
			[]string{"server", "why"}),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "registrar_read_wait_seconds",
			Help: "How long reads waited for a standby to have all that was committed before.", Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2}}),
		behind: prometheus.NewGauge(prometheus.GaugeOpts{Name: "registrar_read_standby_behind_bytes",
			Help: "How much of the primary's log the standby lacked when it was asked last."}),
	}
	r.reads.WithLabelValues("standby", "")
	r.reads.WithLabelValues("primary", noStandby)
	return r
}

// NewReads makes one for the standby, or standbys, of the address: as DATABASE_URL is, without a server that
// takes writes. With "" there is none. Run follows the standby.
func NewReads(primary *DB, url string) (*Reads, error) {
	r := ReadPrimary(primary)
	if url == "" {
		return r, nil
	}
	cfg, err := configure("DATABASE_READ_URL", url)
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsStandby
	cfg.AfterConnect = r.sameServer
	r.address = cfg
	return r, nil
}

// errOtherStandby is the error of a connection to another standby than the one that is used.
var errOtherStandby = errors.New("the address leads to several standbys")

// sameServer refuses connections to another server than those that there are: what one standby has says
// nothing of the next.
func (r *Reads) sameServer(ctx context.Context, conn *pgx.Conn) error {
	var server string
	err := conn.QueryRow(ctx, `SELECT format('%s:%s since %s', inet_server_addr(), inet_server_port(), pg_postmaster_start_time())`,
		pgx.QueryExecModeSimpleProtocol).Scan(&server)
	if err != nil {
		return err
	}
	r.server.CompareAndSwap(nil, &server)
	if used := r.server.Load(); used == nil || *used != server {
		return &lostError{errOtherStandby}
	}
	return nil
}

// leave has the next connection lead to whatever standby the address does.
func (r *Reads) leave(db *DB) {
	r.server.Store(nil)
	db.Reset()
}

// Metrics registers what becomes of reads.
func (r *Reads) Metrics(reg prometheus.Registerer) {
	reg.MustRegister(r.reads)
	if r.address == nil {
		return
	}
	reg.MustRegister(r.waited, r.behind, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "registrar_read_standby_used",
		Help: "1 while reads are led to the standby, 0 while the primary has them all."}, func() float64 {
		if r.state() == standbyUsed {
			return 1
		}
		return 0
	}))
}

// Primary is where what writes goes.
func (r *Reads) Primary() *DB { return r.primary }

// Do runs fn, which only reads, and runs it again, on the primary, if the standby has failed it, or shows what
// the primary takes too long to show. What fn made of its first run counts no more then.
func (r *Reads) Do(ctx context.Context, fn func(db *DB) error) error { return r.do(ctx, fn, true) }

// Stream is Do for answers that leave while they are read: when fn has succeeded, it is not run again.
func (r *Reads) Stream(ctx context.Context, fn func(db *DB) error) error { return r.do(ctx, fn, false) }

func (r *Reads) do(ctx context.Context, fn func(db *DB) error, again bool) error {
	if r.address == nil {
		r.reads.WithLabelValues("primary", noStandby).Inc()
		return fn(r.primary)
	}
	if !r.wait(ctx, false) {
		r.reads.WithLabelValues("primary", min(r.state(), standbyBehind).String()).Inc()
		return fn(r.primary)
	}
	r.reads.WithLabelValues("standby", "").Inc()
	err := fn(r.standby.Load())
	why := "failed"
	if err == nil {
		if r.wait(ctx, true) || !again {
			return nil
		}
		why = "ahead"
	}
	if ctx.Err() != nil || err != nil && !failedOnStandby(err) {
		return err
	}
	r.reads.WithLabelValues("primary", why).Inc()
	return fn(r.primary)
}

func (r *Reads) state() standbyState { return standbyState(r.now.Load()) }

// failedOnStandby says whether a read may succeed on the primary that ended on a standby with err: its
// server was lost, or had to forget rows that the read needed.
func failedOnStandby(err error) bool {
	var e *pgconn.PgError
	return Away(err) || errors.As(err, &e) && e.Code == "40001"
}

// wait returns once the standby has all that is committed by now, or who leaves may go; false if that takes
// too long.
func (r *Reads) wait(ctx context.Context, leaves bool) bool {
	if r.state() != standbyUsed {
		return false
	}
	one := &reader{since: time.Now(), leaves: leaves, turn: make(chan bool, 1)}
	r.mu.Lock()
	r.waiting = append(r.waiting, one)
	r.mu.Unlock()
	select {
	case r.arrived <- struct{}{}:
	default: // the others' sign is enough
	}
	late := time.NewTimer(2 * readPatience) // while a server is silent
	defer late.Stop()
	select {
	case caught := <-one.turn:
		r.waited.Observe(time.Since(one.since).Seconds())
		return caught
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// Run follows the standby until ctx ends.
func (r *Reads) Run(ctx context.Context) error {
	if r.address == nil {
		return nil
	}
	defer func() {
		if db := r.standby.Load(); db != nil {
			db.Close()
		}
	}()
	for ctx.Err() == nil {
		if r.state() != standbyUsed {
			r.enter(ctx, r.look(ctx))
		}
		if r.state() != standbyUsed {
			r.release(func(*reader) (free, caught bool) { return true, false })
			_ = clock.Pause(ctx, standbyPause)
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.arrived:
			r.enter(ctx, r.serve(ctx))
		}
	}
	return nil
}

func (r *Reads) enter(ctx context.Context, state standbyState) {
	switch before := standbyState(r.now.Swap(int32(state))); {
	case before == state:
	case state == standbyUsed:
		slog.InfoContext(ctx, "the standby has what the primary has: reads are led there")
	case before == standbyUsed:
		slog.WarnContext(ctx, "reads are led to the primary", "standby", state.String())
	}
}

// look says whether the standby can be used, after it had the time to come as far as the primary.
func (r *Reads) look(ctx context.Context) standbyState {
	db := r.standby.Load()
	if db == nil {
		r.server.Store(nil)
		opened, err := open(ctx, r.address)
		if err != nil {
			return standbyAway
		}
		db = opened
		r.standby.Store(db)
	}
	written, err := r.askPrimary(ctx)
	if err != nil {
		return standbyAway
	}
	for end := time.Now().Add(readPatience); ; {
		replayed, err := r.askStandby(ctx, db, written.snapshot)
		if err != nil {
			// It ends reads that a server has left without an answer.
			db.commits.set(!errors.Is(err, errNoStandby), time.Now())
			r.leave(db)
			return standbyAway
		}
		db.commits.set(false, time.Now())
		r.behind.Set(float64(max(0, written.position-replayed.position)))
		if replayed.position >= written.position {
			return standbyUsed
		}
		if time.Now().After(end) || clock.Pause(ctx, time.Millisecond) != nil {
			return standbyBehind
		}
	}
}

// serve ends the wait of the readers, until none is left or the standby cannot be used.
func (r *Reads) serve(ctx context.Context) standbyState {
	var written written
	for db := r.standby.Load(); ; {
		if asking := r.asking(); len(asking) > 0 {
			var err error
			if written, err = r.askPrimary(ctx); err != nil {
				return standbyAway
			}
			for _, one := range asking {
				if !one.asked {
					one.asked, one.position = true, written.position
				}
			}
		}
		replayed, err := r.askStandby(ctx, db, written.snapshot)
		if err != nil {
			return standbyAway
		}
		now, late := time.Now(), false
		left := r.release(func(one *reader) (free, caught bool) {
			switch {
			case !one.asked: // it came after the primary was
				return false, false
			case one.leaves:
				return !replayed.ahead || now.Sub(one.since) > readPatience, !replayed.ahead
			}
			r.behind.Set(float64(max(0, one.position-replayed.position)))
			caught = one.position <= replayed.position
			expired := !caught && now.Sub(one.since) > readPatience
			late = late || expired
			return caught || expired, caught
		})
		switch {
		case late:
			return standbyBehind
		case left == 0:
			return standbyUsed
		case clock.Pause(ctx, time.Millisecond) != nil:
			return standbyAway
		}
	}
}

// asking are the readers that wait for an answer of the primary.
func (r *Reads) asking() (some []*reader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.waiting {
		if !one.asked || one.leaves {
			some = append(some, one)
		}
	}
	return some
}

// release ends the wait of those that may go, and counts the others.
func (r *Reads) release(may func(*reader) (free, caught bool)) (left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stay := r.waiting[:0]
	for _, one := range r.waiting {
		free, caught := may(one)
		if !free {
			stay = append(stay, one)
			continue
		}
		one.turn <- caught
	}
	clear(r.waiting[len(stay):])
	r.waiting = stay
	return len(stay)
}

// written is what the primary has: the position up to which its log is on its disk, which is behind all
// commits that were acknowledged or seen there, and who is under way, as pg_snapshot.
type written struct {
	position int64
	snapshot string
}

func (r *Reads) askPrimary(ctx context.Context) (w written, err error) {
	ctx, cancel := context.WithTimeout(ctx, standbyTimeout)
	defer cancel()
	err = r.primary.QueryRow(ctx, `SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn, pg_current_snapshot()::text`).Scan(&w.position, &w.snapshot)
	return w, err
}

// replayed is what the standby has: the position up to which it shows what the log says, and whether it
// shows somebody as done who is under way on the primary.
type replayed struct {
	position int64
	ahead    bool
}

// errNoStandby is the error of a server that follows no other one now.
var errNoStandby = errors.New("the server follows no primary")

// askStandby fails for a server that has no receiver: it may have gone another way than the primary, and show
// what was lost.
func (r *Reads) askStandby(ctx context.Context, db *DB, underWay string) (p replayed, err error) {
	ctx, cancel := context.WithTimeout(ctx, standbyTimeout)
	defer cancel()
	var follows bool
	// Of those under way on the primary, a snapshot lists only who began before the last one that has ended. And
	// pg_xact_status refuses whom the standby has not heard of.
	err = db.QueryRow(ctx, `
		SELECT
			coalesce(pg_last_wal_replay_lsn() - '0/0'::pg_lsn, 0),
			pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_wal_receiver),
			pg_snapshot_xmax(pg_current_snapshot()) > pg_snapshot_xmax($1::text::pg_snapshot) OR EXISTS (
				SELECT FROM pg_snapshot_xip($1::text::pg_snapshot) AS x
				WHERE CASE WHEN x < pg_snapshot_xmax(pg_current_snapshot()) THEN pg_xact_status(x) = 'committed' END
			)`, underWay).Scan(&p.position, &follows, &p.ahead)
	if err == nil && !follows {
		err = errNoStandby
	}
	return p, err
}
