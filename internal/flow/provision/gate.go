package provision

import (
	"context"
	"sync"

	"github.com/registrar-dev/registrar/internal/domain/student"
)

// gate lets one call for an address pass at a time, so that a burst for one student waits
// here and not, each with a connection, at the address's lock in PostgreSQL. That lock is
// what counts; the gate spares the pool. The zero value is ready.
type gate struct {
	mu    sync.Mutex
	doors map[student.Email]*addressLock
}

type addressLock struct {
	turn chan struct{} // holds a token while somebody is inside
	wait int           // who is inside or waits
}

// enter waits for the address's turn; leave must be called after it.
func (g *gate) enter(ctx context.Context, address student.Email) (leave func(), err error) {
	g.mu.Lock()
	if g.doors == nil {
		g.doors = map[student.Email]*addressLock{}
	}
	d := g.doors[address]
	if d == nil {
		d = &addressLock{turn: make(chan struct{}, 1)}
		g.doors[address] = d
	}
	d.wait++
	g.mu.Unlock()
	select {
	case d.turn <- struct{}{}:
		return func() { <-d.turn; g.forget(address, d) }, nil
	case <-ctx.Done():
		g.forget(address, d)
		return nil, ctx.Err()
	}
}

func (g *gate) forget(address student.Email, d *addressLock) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d.wait--; d.wait == 0 {
		delete(g.doors, address)
	}
}
