package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isolate gives a child processes, mounts and a network of its own. All of them go with the child,
// however it ends: the kernel kills what it has started, and forgets its mounts, interfaces and
// packet filters.
func isolate(a *syscall.SysProcAttr) {
	a.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	a.Pdeathsig = syscall.SIGKILL // a first process ignores all that it does not wait for
}

// CanIsolate says why Command.Isolated would not work here; nil when it does.
func CanIsolate(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("not root")
	}
	cmd := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "none", "/mnt")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	isolate(cmd.SysProcAttr)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("no namespaces: %w %s", err, out)
	}
	return nil
}

// hidden are folders that a node writes to and that are not its own.
var hidden = []string{"/run", "/var/log", "/var/lib/cni", "/var/lib/kubelet"}

// SettleIn makes the surroundings of an isolated process fit to be a node: a /proc of its own, empty
// folders where a node writes, one interface with the address, through which everything is said to
// be reached, and a resolver.
func SettleIn(ctx context.Context, address, resolver string) error {
	if os.Getpid() != 1 {
		return errors.New("SettleIn is for an isolated process")
	}
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""))
	for _, dir := range hidden {
		err = errors.Join(err, os.MkdirAll(dir, 0o755), unix.Mount("none", dir, "tmpfs", 0, "mode=755"))
	}
	const resolvers = "/run/resolv.conf"
	target, _ := filepath.EvalSymlinks("/etc/resolv.conf")
	if target == "" {
		target = "/etc/resolv.conf"
	}
	if err = errors.Join(err, os.WriteFile(resolvers, []byte("nameserver "+resolver+"\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"), 0o644)); err != nil {
		return err
	}
	if err := unix.Mount(resolvers, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	for _, args := range []string{
		"link set lo up", "link add node0 type veth peer name beyond", "address add " + address + "/24 dev node0",
		"link set node0 up", "link set beyond up", "route add default dev node0 src " + address,
	} {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w %s", args, err, out)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600)
}

// cgroupHierarchies are where a control group has to be made: one folder, or one for each controller.
func cgroupHierarchies() []string {
	const base = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(base, "cgroup.controllers")); err == nil {
		return []string{base}
	}
	all, _ := filepath.Glob(base + "/*/cgroup.procs") // the pattern is well-formed
	for i := range all {
		all[i] = filepath.Dir(all[i])
	}
	return all
}

// MakeCgroup makes a control group, "/name", for a node's pods. Release removes it when its processes have ended.
func MakeCgroup(name string) (release func() error, err error) {
	return func() error {
		var errs []error
		for _, dir := range cgroupHierarchies() {
			errs = append(errs, removeCgroup(filepath.Join(dir, name)))
		}
		return errors.Join(errs...)
	}, makeCgroup(name)
}

func makeCgroup(name string) error {
	var errs []error
	for _, dir := range cgroupHierarchies() {
		errs = append(errs, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	return errors.Join(errs...)
}

// removeCgroup removes a group with those below it; the kernel lets go of one a moment after its last process.
func removeCgroup(dir string) error {
	below, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range below {
		if entry.IsDir() {
			err = errors.Join(err, removeCgroup(filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return retry(ctx, func(context.Context) error { return unix.Rmdir(dir) })
}
