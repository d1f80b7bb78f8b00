package limit

import (
	"context"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Connections bounds how many connections a server has: All, of which one client address gets Each.
// A new one over a bound takes the place of the oldest on which nothing is worked on: of the same
// address, or where All are there, of the address that has most of them. Where there is none, it is
// closed itself. Connections of our own proxies, which carry many clients', are counted apart, All of
// them, and none is closed for another.
type Connections struct {
	All, Each int
	Proxies   Proxies

	mu      sync.Mutex
	open    map[net.Conn]*member[net.Conn]
	proxied map[net.Conn]bool
	crowd   crowd[net.Conn]
	closed  prometheus.Counter
}

// Metrics counts the connections that were closed.
func (c *Connections) Metrics(reg prometheus.Registerer, port string) {
	c.closed = prometheus.NewCounter(prometheus.CounterOpts{Name: "registrar_http_connections_closed_total", ConstLabels: prometheus.Labels{"port": port},
		Help: "Connections closed because there were too many, of one client address or in all."})
	reg.MustRegister(c.closed)
}

// Watch has the server's connections counted.
func (c *Connections) Watch(s *http.Server) {
	c.open, c.proxied = map[net.Conn]*member[net.Conn]{}, map[net.Conn]bool{}
	s.ConnState = c.changed
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, &connection{c, conn})
	}
}

type connectionKey struct{}

type connection struct {
	all  *Connections
	conn net.Conn
}

// Working says that the request has arrived: its connection is kept until the next one is awaited.
func Working(ctx context.Context) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		if m := c.all.open[c.conn]; m != nil {
			c.all.crowd.secure(m)
		}
	}
}

func (c *Connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.accept(conn)
	case http.StateIdle:
		if m := c.open[conn]; m != nil {
			c.crowd.loosen(m)
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(conn)
	case http.StateActive: // its request has still to arrive
	}
}

func (c *Connections) accept(conn net.Conn) {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		host = conn.RemoteAddr().String()
	}
	if c.Proxies.contain(host) {
		if len(c.proxied) >= c.All {
			c.shut(conn)
			return
		}
		c.proxied[conn] = true
		return
	}
	client := network(host)
	if p := c.crowd.of[client]; p != nil && p.held >= int64(c.Each) && !c.evict(p) {
		c.shut(conn)
		return
	}
	if len(c.open) >= c.All && !c.evict(c.crowd.most()) {
		c.shut(conn)
		return
	}
	c.open[conn] = c.crowd.join(client, conn, 1)
}

// evict closes a party's oldest connection on which nothing is worked on.
func (c *Connections) evict(p *party[net.Conn]) bool {
	if p == nil || p.oldest() == nil {
		return false
	}
	conn := p.oldest().value
	c.remove(conn)
	c.shut(conn)
	return true
}

func (c *Connections) remove(conn net.Conn) {
	delete(c.proxied, conn)
	if m := c.open[conn]; m != nil {
		delete(c.open, conn)
		c.crowd.leave(m)
	}
}

func (c *Connections) shut(conn net.Conn) {
	if c.closed != nil {
		c.closed.Inc()
	}
	_ = conn.Close() // its server notices
}
