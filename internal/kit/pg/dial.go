package pg

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lostAfter is when a connection counts as lost whose other end does not even
// acknowledge, be it asked or not. Linux would go on for a quarter of an hour.
const lostAfter = 30 * time.Second

// connectTimeout bounds a try to connect to a server where the address does not: pgx waits two
// minutes, and each try at a machine that is lost occupies a connection of the pool. Of several
// servers the next one may be right.
func connectTimeout(c *pgx.ConnConfig) time.Duration {
	for _, other := range c.Fallbacks { // also the same server, with and without TLS
		if other.Host != c.Host || other.Port != c.Port {
			return 2 * time.Second
		}
	}
	return 10 * time.Second
}

// dialer opens connections that notice when the machine at the other end is lost. How long
// a statement may take has nothing to do with it.
func (c *commits) dialer(timeout time.Duration) pgconn.DialFunc {
	d := net.Dialer{Timeout: timeout, Control: noticeLoss,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: lostAfter / 3, Interval: lostAfter / 6, Count: 4}}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l := &link{Conn: conn, all: c}
		c.add(l)
		return l, nil
	}
}

// link is a connection whose loss can be told from other errors; see Away.
type link struct {
	net.Conn

	all     *commits
	since   atomic.Int64 // when it began to wait for the server, in nanoseconds of Unix; 0: it does not
	givenUp atomic.Bool
}

// Read implements net.Conn. It is called while an answer is pending, and not otherwise.
func (l *link) Read(b []byte) (int, error) {
	l.since.Store(time.Now().UnixNano())
	n, err := l.Conn.Read(b)
	l.since.Store(0)
	return n, l.lost(err)
}

// Write implements net.Conn.
func (l *link) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	return n, l.lost(err)
}

// Close implements net.Conn.
func (l *link) Close() error {
	l.all.remove(l)
	return l.Conn.Close()
}

func (l *link) lost(err error) error {
	switch {
	case err == nil:
		return nil
	case l.givenUp.Load():
		return &lostError{errCommitsWait}
	case errors.Is(err, os.ErrDeadlineExceeded): // whoever set it knows why
		return err
	}
	return &lostError{err}
}

// giveUp ends what the connection waits for. What runs on the server is cancelled.
func (l *link) giveUp() {
	l.givenUp.Store(true)
	_ = l.SetDeadline(time.Unix(1, 0))
}

// lostError is how a connection ended. It is a net.Error, because TLS keeps no other one.
type lostError struct{ err error }

func (e *lostError) Error() string { return "the connection to PostgreSQL was lost: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// Timeout implements net.Error.
func (e *lostError) Timeout() bool { return false }

// Temporary implements net.Error.
func (e *lostError) Temporary() bool { return false }
