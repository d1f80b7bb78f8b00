package stack

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// Attack is a way to hold a server's connections, memory or places with little effort.
type Attack struct {
	Name  string
	first string        // what a connection sends at once
	more  string        // and then again and again
	pause time.Duration // between the latter
}

// Attacks are all of them.
var Attacks = []Attack{
	{Name: "slow header", first: "GET / HTTP/1.1\r\nHost: x\r\n", more: "X-A: b\r\n", pause: time.Second},
	{Name: "slow body", first: "POST /sign-in/ HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nname=", more: "a", pause: time.Second},
	{Name: "many idle", first: "GET /assets/none HTTP/1.1\r\nHost: x\r\n\r\n"},
	{Name: "many half-open"},
	{Name: "large bodies", first: "POST /api/v1/provision/student/ HTTP/1.1\r\nHost: x\r\nX-API-Key: x\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", 900<<10), more: "x", pause: time.Second},
}

// Begin lets each of so many loopback addresses, from 127.0.1.1 on, hold so many connections to a
// server of this machine, until end. One that the server closes is opened again. It returns when each
// has been opened once.
func (a Attack) Begin(ctx context.Context, server string, addresses, connections int) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all, opened sync.WaitGroup
	for i := range addresses {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+i/250), byte(1+i%250))}
		for range connections {
			opened.Add(1)
			all.Go(func() {
				first := sync.OnceFunc(opened.Done)
				defer first()
				for ctx.Err() == nil {
					a.hold(ctx, server, from, first)
				}
			})
		}
	}
	opened.Wait()
	return func() { cancel(); all.Wait() }
}

// hold opens one connection and holds it until the server closes it or ctx ends.
func (a Attack) hold(ctx context.Context, server string, from *net.TCPAddr, opened func()) {
	pause := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	conn, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", server)
	if err != nil {
		pause(100 * time.Millisecond)
		return
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() { stop(); _ = conn.Close(); <-closed }()
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close() // ends the writing, too
	}()
	_, err = fmt.Fprint(conn, a.first)
	opened()
	for err == nil && a.more != "" {
		pause(a.pause)
		if ctx.Err() != nil {
			return
		}
		_, err = fmt.Fprint(conn, a.more)
	}
	<-closed
	pause(100 * time.Millisecond) // a client takes its time to connect again
}
