package limit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// crowded is a server with bounded connections. Requests for /held stay until the test ends.
type crowded struct {
	*httptest.Server

	connections *Connections
	held        chan struct{} // one has arrived
	idle        chan struct{} // one was answered, and its connection waits for the next
}

func newCrowded(t *testing.T, c *Connections) *crowded {
	t.Helper()
	release, held := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		Working(r.Context())
		if r.URL.Path == "/held" {
			held <- struct{}{}
			<-release
		}
	}))
	c.Metrics(prometheus.NewRegistry(), "test")
	c.Watch(s.Config)
	idle, changed := make(chan struct{}, 100), s.Config.ConnState
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if changed(conn, state); state == http.StateIdle {
			idle <- struct{}{}
		}
	}
	s.Start()
	t.Cleanup(func() { close(release); s.CloseClientConnections(); s.Close() })
	return &crowded{s, c, held, idle}
}

// dial connects from an address of this machine.
func (s *crowded) dial(t *testing.T, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// ask sends a request; false where the connection was closed instead of an answer.
func (s *crowded) ask(conn net.Conn) bool {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	<-s.idle
	return err == nil
}

func (s *crowded) hold(t *testing.T, from string) {
	t.Helper()
	conn := s.dial(t, from)
	if _, err := io.WriteString(conn, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-s.held
}

func TestAnAddressGetsItsShareOfTheConnections(t *testing.T) {
	t.Parallel()
	s := newCrowded(t, &Connections{All: 100, Each: 3})
	s.hold(t, "127.0.0.1")
	idle := s.dial(t, "127.0.0.1")
	check.True(check.Now(t), "answered", s.ask(idle), "the second")
	half := s.dial(t, "127.0.0.1")
	if _, err := io.WriteString(half, "GET / HT"); err != nil {
		t.Fatal(err)
	}
	check.True(t, "answered", s.ask(s.dial(t, "127.0.0.1")), "the newest takes the place of the oldest that is idle")
	check.False(t, "answered", s.ask(idle), "the oldest that was idle")
	check.True(t, "answered", s.ask(s.dial(t, "127.0.0.1")), "one more")
	_, err := half.Read(make([]byte, 1))
	check.True(t, "the one with half a header is closed", err != nil && !errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
	check.True(t, "answered", s.ask(s.dial(t, "127.0.0.2")), "another address")
	s.hold(t, "127.0.0.1")
	s.hold(t, "127.0.0.1")
	check.False(t, "answered", s.ask(s.dial(t, "127.0.0.1")), "a fourth while all three are worked on")
	closed := testutil.ToFloat64(s.connections.closed)
	check.True(t, "closings are counted", closed >= 5, "%v", closed)
}

func TestWhoHasMostConnectionsLosesOne(t *testing.T) {
	t.Parallel()
	s := newCrowded(t, &Connections{All: 6, Each: 5})
	var many []net.Conn
	for range 4 {
		many = append(many, s.dial(t, "127.0.0.3"))
		check.True(check.Now(t), "answered", s.ask(many[len(many)-1]), "there is room")
	}
	few := s.dial(t, "127.0.0.4")
	check.True(check.Now(t), "answered", s.ask(few), "there is room")
	s.hold(t, "127.0.0.4")
	check.True(t, "answered", s.ask(s.dial(t, "127.0.0.5")), "who comes when all are there")
	check.True(t, "answered", s.ask(few), "who has few keeps them")
	check.False(t, "answered", s.ask(many[0]), "the oldest of who has most")
	check.True(t, "answered", s.ask(many[3]), "its youngest")
}

func TestConnectionsOfProxiesAreCountedApart(t *testing.T) {
	t.Parallel()
	s := newCrowded(t, &Connections{All: 4, Each: 1, Proxies: Proxies{netip.MustParsePrefix("127.0.0.6/32")}})
	var proxied []net.Conn
	for range 4 {
		proxied = append(proxied, s.dial(t, "127.0.0.6"))
	}
	for _, conn := range proxied {
		check.True(t, "answered", s.ask(conn), "a proxy has many clients")
	}
	check.False(t, "answered", s.ask(s.dial(t, "127.0.0.6")), "but not any number of connections")
	check.True(t, "answered", s.ask(s.dial(t, "127.0.0.7")), "and takes none of the others'")
}
