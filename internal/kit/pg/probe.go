package pg

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
)

// Probe checks whether PostgreSQL answers and takes writes. It uses a connection of its own and reopens
// it after a loss: when all connections of the pool are in use, PostgreSQL is not down, and a replica
// that became unready for it would only overload the next one.
type Probe struct {
	db     *DB
	turn   chan *pgx.Conn // holds the connection, or nil, while nobody asks
	opened atomic.Int64   // connections so far

	failing     atomic.Bool // as of Watch's last question
	synchronous atomic.Bool // commits wait for standbys, as of the last answer
	unusable    *prometheus.GaugeVec
}

// NewProbe makes a probe, which connects when it is first asked.
func NewProbe(db *DB) *Probe {
	p := &Probe{db: db, turn: make(chan *pgx.Conn, 1), unusable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "registrar_postgres_unusable",
		Help: "1 while PostgreSQL cannot be used: it is away, only a server that takes no writes is reached, or commits wait for a synchronous standby.",
	}, []string{"why"})}
	p.turn <- nil
	return p
}

// Metrics registers what Watch finds.
func (p *Probe) Metrics(reg prometheus.Registerer) { reg.MustRegister(p.unusable) }

// errReadOnly is the error of a server that is a standby, or set to read-only.
var errReadOnly = pgconn.ErrReadOnlyConnection

// ask reads what kind of server answers.
func (p *Probe) ask(ctx context.Context, q Querier) error {
	var readOnly, synchronous bool
	err := q.QueryRow(ctx, `
		SELECT
			pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
			current_setting('synchronous_standby_names') <> ''`, pgx.QueryExecModeSimpleProtocol).
		Scan(&readOnly, &synchronous)
	if err != nil {
		return err
	}
	p.synchronous.Store(synchronous)
	if readOnly {
		return errReadOnly
	}
	return nil
}

// Ping returns what is wrong; nil while PostgreSQL answers and takes writes.
func (p *Probe) Ping(ctx context.Context) (err error) {
	var conn *pgx.Conn
	select {
	case conn = <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	if conn != nil && p.ask(ctx, conn) != nil {
		p.drop(ctx, conn) // it may be this connection alone that was lost, or leads to a standby
		conn = nil
	}
	if conn == nil {
		if conn, err = pgx.ConnectConfig(ctx, p.db.Config().ConnConfig); err == nil {
			p.opened.Add(1)
			err = p.ask(ctx, conn)
		}
	}
	p.turn <- conn
	if err == nil || errors.Is(err, errReadOnly) {
		return err
	}
	return p.ask(ctx, p.db) // while PostgreSQL has no connection left for this one, those of the pool still serve
}

// Failing says whether PostgreSQL did not answer well when Watch asked last. Whoever has few workers need
// not hold one until PostgreSQL answers.
func (p *Probe) Failing() bool { return p.failing.Load() }

// Commits returns what is wrong with commits while Watch runs; nil while they end.
func (p *Probe) Commits(context.Context) error {
	if p.db.commits.wait() {
		return errCommitsWait
	}
	return nil
}

const (
	watchEvery    = time.Second
	watchPatience = 5 * time.Second
)

// Watch asks every second until ctx ends. It calls answers, unless that is nil, at PostgreSQL's first
// answer, and at each that comes after a failure or over a new connection: then PostgreSQL may have been
// away. Where replication is synchronous it also tries a commit; while that waits for a standby, the
// DB's transactions are Away.
func (p *Probe) Watch(ctx context.Context, answers func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	t := &trial{db: p.db}
	defer func() { t.close(ctx) }()
	for seen := int64(-1); ; { // the connections at the last answer
		asked, cancel := context.WithTimeout(ctx, watchPatience)
		err := p.Ping(asked)
		cancel()
		p.failing.Store(err != nil)
		switch opened := p.opened.Load(); {
		case errors.Is(err, errReadOnly):
			p.db.Reset() // a pooler may lead the pool's connections there, too
			seen = -1
		case err != nil:
			seen = -1
		case seen != opened:
			seen = opened
			if answers != nil {
				answers()
			}
		}
		if err = p.tryCommit(ctx, t, err); ctx.Err() == nil {
			p.note(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tryCommit is what is wrong after a Ping that found err.
func (p *Probe) tryCommit(ctx context.Context, t *trial, err error) error {
	if err == nil && p.synchronous.Load() {
		patience := trialPatience
		if p.db.commits.wait() {
			patience = watchEvery // what else waits is looked at in between
		}
		err = t.commit(ctx, patience)
	}
	waiting := errors.Is(err, errCommitsWait)
	switch before := p.db.commits.wait(); {
	case waiting && !before:
		slog.WarnContext(ctx, "commits wait for a synchronous standby; what writes is refused meanwhile")
	case before && !waiting:
		slog.InfoContext(ctx, "commits no longer wait", "error", err)
	}
	p.db.commits.set(waiting, time.Now())
	return err
}

func (p *Probe) note(err error) {
	for why, now := range map[string]bool{
		"commits_wait": errors.Is(err, errCommitsWait),
		"read_only":    errors.Is(err, errReadOnly),
		"away":         err != nil && !errors.Is(err, errCommitsWait) && !errors.Is(err, errReadOnly),
	} {
		value := 0.0
		if now {
			value = 1
		}
		p.unusable.WithLabelValues(why).Set(value)
	}
}

// Close closes the connection, also when ctx has ended. The probe must not be used afterwards.
func (p *Probe) Close(ctx context.Context) {
	if conn := <-p.turn; conn != nil {
		p.drop(ctx, conn)
	}
}

func (p *Probe) drop(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
