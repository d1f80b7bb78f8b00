//go:build unix && !linux

package stack

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// childAttributes puts a child into its own process group. There is no parent-death signal here:
// after a kill -9 of the parent, `make down` ends what is left.
func childAttributes(_ syscall.Signal, u *User) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: u.credential()}
}

func startTime(pid int) (string, error) {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", err
	}
	state, started, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if state == "" || strings.HasPrefix(state, "Z") {
		return "", os.ErrProcessDone
	}
	return strings.TrimSpace(started), nil
}

func waitGone(i Identity, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return retry(ctx, func(context.Context) error {
		if i.Alive() {
			return os.ErrExist
		}
		return nil
	}) == nil
}
