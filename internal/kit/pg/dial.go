package pg

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectTimeout bounds a try to connect where the address does not: pgx waits two
	// minutes, and each try at a machine that is lost occupies a connection of the pool.
	connectTimeout = 10 * time.Second

	// lostAfter is when a connection counts as lost whose other end does not even
	// acknowledge, be it asked or not. Linux would go on for a quarter of an hour.
	lostAfter = 30 * time.Second
)

// dialer opens connections that notice when the machine at the other end is lost. How long
// a statement may take has nothing to do with it.
func dialer(timeout time.Duration) pgconn.DialFunc {
	d := net.Dialer{Timeout: timeout, Control: noticeLoss,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: lostAfter / 3, Interval: lostAfter / 6, Count: 4}}
	return d.DialContext
}
