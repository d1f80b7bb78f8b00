package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// A receiver with this address lives in a network of its own.
const (
	farAddress  = "10.213.77.2"
	nearAddress = "10.213.77.1"
	farNetwork  = "10.213.77.0/24"
	namespace   = "registrar-soak"
	near, far   = "rsoak0", "rsoak1"
)

// link leads to a network namespace and can be made slow.
type link struct{}

func newLink(ctx context.Context) (*link, error) {
	l := &link{}
	_ = l.close(ctx) // what an earlier run may have left
	for _, command := range []string{
		"ip netns add " + namespace,
		"ip link add " + near + " type veth peer name " + far + " netns " + namespace,
		"ip address add " + nearAddress + "/24 dev " + near,
		"ip link set " + near + " up",
		"ip -n " + namespace + " address add " + farAddress + "/24 dev " + far,
		"ip -n " + namespace + " link set " + far + " up",
		"ip -n " + namespace + " link set lo up",
	} {
		if err := shell(ctx, command); err != nil {
			return nil, errors.Join(err, l.close(ctx))
		}
	}
	if err := errors.Join(l.slow(ctx), l.fast(ctx)); err != nil { // whether this kernel can
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
}

// shell runs a command of plain words.
func shell(ctx context.Context, line string) error {
	parts := strings.Fields(line)
	text, err := exec.CommandContext(ctx, parts[0], parts[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, text)
	}
	return nil
}

// listen makes a listener inside the namespace: a socket stays where it was made.
func (l *link) listen(ctx context.Context, addr string) (net.Listener, error) {
	type made struct {
		net.Listener
		error
	}
	result := make(chan made)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its changed network
		inside, err := os.Open("/run/netns/" + namespace)
		if err == nil {
			err = errors.Join(unix.Setns(int(inside.Fd()), unix.CLONE_NEWNET), inside.Close())
		}
		m := made{error: err}
		if err == nil {
			m.Listener, m.error = new(net.ListenConfig).Listen(ctx, "tcp", addr)
		}
		result <- m
	}()
	m := <-result
	return m.Listener, m.error
}

// slow lets 64 kbit a second pass and queues for up to half a second; the rest is lost.
func (l *link) slow(ctx context.Context) error {
	return shell(ctx, "tc qdisc add dev "+near+" root tbf rate 64kbit burst 4kb latency 500ms")
}

func (l *link) fast(ctx context.Context) error { return shell(ctx, "tc qdisc del dev "+near+" root") }

func (l *link) close(ctx context.Context) error { return shell(ctx, "ip netns del "+namespace) }
