package pg

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// With synchronous replication a commit waits until a standby has it: for ever, when the standby is
// away. The calls would wait with it, and for the locks and connections that it holds. So Probe.Watch
// tries a commit of its own each second. While that waits, transactions are refused, and what waits
// already is given up: on the server it is cancelled, and then committed there without the standby's
// word, which its caller was not told.

// errCommitsWait is Away.
var errCommitsWait = errors.New("commits wait for a synchronous standby")

const (
	// trialPatience is how long a trial may wait before commits count as waiting.
	trialPatience = 5 * time.Second

	// answerPatience is how long a statement goes on without a word from the server once they do.
	answerPatience = 3 * time.Second
)

// commits knows whether commits wait, and the connections of which some may.
type commits struct {
	mu      sync.Mutex
	waiting bool
	links   map[*link]struct{}
}

func newCommits() *commits { return &commits{links: map[*link]struct{}{}} }

func (c *commits) add(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links[l] = struct{}{}
}

func (c *commits) remove(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.links, l)
}

func (c *commits) wait() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// set notes whether commits wait, and gives up what has waited for too long if they do.
func (c *commits) set(waiting bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = waiting
	if !waiting {
		return
	}
	for l := range c.links {
		if since := l.since.Load(); since != 0 && now.Sub(time.Unix(0, since)) > answerPatience {
			l.giveUp()
		}
	}
}

// trial commits something that is nothing, over a connection of its own.
type trial struct {
	db   *DB
	conn *pgx.Conn
}

// commit returns errCommitsWait when it takes longer than the patience.
func (t *trial) commit(ctx context.Context, patience time.Duration) (err error) {
	if t.conn == nil || t.conn.IsClosed() {
		if t.conn, err = pgx.ConnectConfig(ctx, t.db.Config().ConnConfig); err != nil {
			return err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A message for nobody is written to the log, and nowhere else.
	_, err = t.conn.Exec(bounded, `SELECT pg_logical_emit_message(true, 'registrar', '')`, pgx.QueryExecModeSimpleProtocol)
	if bounded.Err() != nil && ctx.Err() == nil && err != nil {
		return errCommitsWait
	}
	return err
}

func (t *trial) close(ctx context.Context) {
	if t.conn != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = t.conn.Close(ctx)
	}
}

// unreplicatedKey marks a connection whose commit somebody cancelled while it waited for a standby:
// PostgreSQL then says that it was committed, with a warning.
const unreplicatedKey = "registrar.unreplicated"

func noteUnreplicated(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		conn.CustomData()[unreplicatedKey] = true
	}
}

func unreplicated(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[unreplicatedKey] != nil }
