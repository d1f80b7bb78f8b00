package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// lines are kept connections, of each address its own. They do less than http.Client, which on a
// machine that client and server share would take a tenth of what is measured; pgbench,
// which the figures stand beside, is as thin.
type lines struct {
	mu   sync.Mutex
	idle map[string][]*line
}

type line struct {
	conn net.Conn
	in   *bufio.Reader
	out  bytes.Buffer
	body bytes.Buffer
}

// lineTimeout is how long an answer may take.
const lineTimeout = 30 * time.Second

// request is a call with a JSON body. Auth is the header line that carries the key.
type request struct{ method, address, path, auth, body string }

// partnerKey and platformKey are the header lines of the two APIs' keys.
func partnerKey(key string) string  { return "X-API-Key: " + key }
func platformKey(key string) string { return "Authorization: Bearer " + key }

// send makes a call; the body of its answer only lives until use returns.
func (l *lines) send(ctx context.Context, r request, use func(status int, body []byte) error) error {
	c, err := l.take(ctx, r.address)
	if err != nil {
		return err
	}
	status, err := c.send(r)
	if err != nil {
		_ = c.conn.Close()
		return err
	}
	err = use(status, c.body.Bytes())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle == nil {
		l.idle = map[string][]*line{}
	}
	l.idle[r.address] = append(l.idle[r.address], c)
	return err
}

func (l *lines) take(ctx context.Context, address string) (*line, error) {
	l.mu.Lock()
	if n := len(l.idle[address]); n > 0 {
		defer l.mu.Unlock()
		c := l.idle[address][n-1]
		l.idle[address] = l.idle[address][:n-1]
		return c, nil
	}
	l.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &line{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *line) send(r request) (status int, err error) {
	c.out.Reset()
	fmt.Fprintf(&c.out, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		r.method, r.path, r.address, r.auth, len(r.body), r.body)
	if err := c.conn.SetDeadline(time.Now().Add(lineTimeout)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	c.body.Reset()
	_, err = io.Copy(&c.body, res.Body)
	return res.StatusCode, err
}
