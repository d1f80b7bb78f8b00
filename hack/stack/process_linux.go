package stack

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// childAttributes puts a child into its own process group and has the kernel send it onDeath when
// the thread that started it dies.
func childAttributes(onDeath syscall.Signal, u *User) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onDeath, Credential: u.credential()}
}

// startTime reads when a process was started, in ticks since boot. A zombie
// counts as gone.
func startTime(pid int) (string, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return "", err
	}
	stat, err := p.Stat()
	if err != nil || stat.State == "Z" {
		return "", errors.Join(err, os.ErrProcessDone)
	}
	return strconv.FormatUint(stat.Starttime, 10), nil
}

// waitGone waits until a process that need not be a child has ended.
func waitGone(i Identity, within time.Duration) bool {
	fd, err := unix.PidfdOpen(i.PID, 0)
	if err != nil {
		return !i.Alive()
	}
	defer func() { _ = unix.Close(fd) }()
	deadline := time.Now().Add(within)
	for i.Alive() {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
	return true
}
