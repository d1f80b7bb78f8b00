package provision

import (
	"context"
	"sync"

	"github.com/registrar-dev/registrar/internal/domain/student"
)

// gate lets one call for an address pass at a time, so that a burst of calls for one student does
// not occupy the connections of the pool while it waits for the address's lock in PostgreSQL,
// which alone decides. The zero value is ready.
type gate struct {
	mu    sync.Mutex
	locks map[student.Email]*addressLock
}

type addressLock struct {
	turn chan struct{} // holds a token while somebody is inside
	wait int           // how many are inside or wait
}

// enter waits for the address's turn; leave must be called after it.
func (g *gate) enter(ctx context.Context, address student.Email) (leave func(), err error) {
	g.mu.Lock()
	if g.locks == nil {
		g.locks = map[student.Email]*addressLock{}
	}
	d := g.locks[address]
	if d == nil {
		d = &addressLock{turn: make(chan struct{}, 1)}
		g.locks[address] = d
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
		delete(g.locks, address)
	}
}
