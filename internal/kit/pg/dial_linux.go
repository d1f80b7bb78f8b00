package pg

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// noticeLoss bounds how long what was sent may stay without acknowledgement. Keep-alive
// probes alone are not sent while there is any.
func noticeLoss(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lostAfter.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
