package pg

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// Probe checks whether PostgreSQL answers. It uses a connection of its own and reopens it after
// a loss: when all connections of the pool are in use, PostgreSQL is not down, and a replica
// that became unready for it would only overload the next one.
type Probe struct {
	db     *DB
	turn   chan *pgx.Conn // holds the connection, or nil, while nobody asks
	opened atomic.Int64   // connections so far
}

// NewProbe makes a probe, which connects when it is first asked.
func NewProbe(db *DB) *Probe {
	p := &Probe{db: db, turn: make(chan *pgx.Conn, 1)}
	p.turn <- nil
	return p
}

// Ping returns what is wrong; nil while PostgreSQL answers.
func (p *Probe) Ping(ctx context.Context) (err error) {
	var conn *pgx.Conn
	select {
	case conn = <-p.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	if conn != nil && conn.Ping(ctx) != nil {
		p.drop(ctx, conn) // it may be this connection alone that was lost
		conn = nil
	}
	if conn == nil {
		if conn, err = pgx.ConnectConfig(ctx, p.db.Config().ConnConfig); err == nil {
			p.opened.Add(1)
		}
	}
	p.turn <- conn
	if err != nil { // while PostgreSQL has no connection left for this one, those of the pool still serve
		return p.db.Ping(ctx)
	}
	return nil
}

const (
	watchEvery    = time.Second
	watchPatience = 5 * time.Second
)

// Watch asks every second until ctx ends. It calls answers at PostgreSQL's first answer, and at each
// that comes after a failure or over a new connection: then PostgreSQL may have been away.
func (p *Probe) Watch(ctx context.Context, answers func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for seen := int64(-1); ; { // the connections at the last answer
		asked, cancel := context.WithTimeout(ctx, watchPatience)
		err := p.Ping(asked)
		cancel()
		switch opened := p.opened.Load(); {
		case err != nil:
			seen = -1
		case seen != opened:
			seen = opened
			answers()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
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
