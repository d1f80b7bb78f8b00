package pg_test

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// Every connection notices within half a minute that PostgreSQL's machine is lost: what the
// kernel was set to is asked of the kernel.
func TestConnectionsNoticeALostMachine(t *testing.T) {
	t.Parallel()
	conn, err := pgtest.New(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	tcp, ok := pg.Socket(conn.Conn()).(*net.TCPConn)
	if !ok {
		t.Skip("the tests' PostgreSQL is not asked over TCP")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ level, option, want int }{
		"keep-alive":                         {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"seconds until the first probe":      {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 10},
		"seconds between probes":             {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
		"probes":                             {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 4},
		"milliseconds of no acknowledgement": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 30_000},
	} {
		var got int
		var failed error
		if err := raw.Control(func(fd uintptr) { got, failed = unix.GetsockoptInt(int(fd), c.level, c.option) }); check.NoError(check.Now(t), err, "%v %v", err, failed) {
			check.NoError(check.Now(t), failed, "%v %v", err, failed)
		}
		if got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
