package stack

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// An Identity names one process for good: its number, which the system gives out again later,
// together with the time it was started. It can be written down and used by another process.
type Identity struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Started string `json:"started"` // as the system tells it; only ever compared
}

// Self is the identity of this process.
func Self(name string) Identity { return identify(name, os.Getpid()) }

func identify(name string, pid int) Identity {
	started, err := startTime(pid)
	if err != nil { // it ended at once; nothing will ever match
		started = "unknown"
	}
	return Identity{Name: name, PID: pid, Started: started}
}

// Alive reports whether that very process still runs.
func (i Identity) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	started, err := startTime(i.PID)
	return err == nil && started == i.Started
}

// Gone waits until the process, which need not be a child, has ended; false: it still runs.
func (i Identity) Gone(within time.Duration) bool {
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

// Signal sends a signal to the process alone, if it is still that process.
func (i Identity) Signal(s syscall.Signal) error {
	if !i.Alive() {
		return fmt.Errorf("signal %s: %w", i.Name, ErrNotRunning)
	}
	return syscall.Kill(i.PID, s)
}

// End ends a process that somebody else started, with its process group: SIGTERM first, SIGKILL
// when it takes longer than within. A process that is gone already is no error.
func (i Identity) End(within time.Duration) error {
	if !i.Alive() {
		return nil
	}
	signalGroup(i.PID, syscall.SIGTERM)
	if i.Gone(within) {
		return nil
	}
	signalGroup(i.PID, syscall.SIGKILL)
	if i.Gone(10 * time.Second) {
		return nil
	}
	return fmt.Errorf("%s (process %d) cannot be ended", i.Name, i.PID)
}

// signalGroup signals a process group; one that is gone is no error, its end is what was wanted.
func signalGroup(pgid int, s syscall.Signal) {
	if err := syscall.Kill(-pgid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		fmt.Fprintf(os.Stderr, "signal process group %d: %v\n", pgid, err)
	}
}

// A User is somebody else as whom a child process runs.
type User struct {
	Name     string
	UID, GID uint32
}

// ServiceUser returns the unprivileged user for servers that refuse to run as root (PostgreSQL
// does), and nil when this process is not root and its children may simply run as it does.
func ServiceUser() (*User, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is the answer: no other user
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &User{Name: name, UID: uint32(uid), GID: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}

func (u *User) credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID}
}
