// Package sandboxes keeps open the databases of sandboxes that requests are about.
package sandboxes

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Pool keeps open what is used. A nil *Pool is of an installation without sandboxes.
type Pool struct {
	Service *simulate.Service
	Zone    *time.Location // the platform's
	// Partner makes the partner API of a sandbox.
	Partner func(*Open) http.Handler

	mu   sync.Mutex
	open map[id.Organization]*Open
}

const (
	// most is how many sandboxes a replica knows at once. One that is not used holds no connection.
	most = 50
	// patience is how long opening one may take, also one whose schema is brought up to date.
	patience = 30 * time.Second
)

var (
	errNone     = fault.New(fault.NotFound, "no_sandbox", "this installation has no sandboxes")
	errAllInUse = fault.New(fault.Unavailable, "overloaded", "too many sandboxes are in use at this moment; send the same request again later")
)

// Open is an open sandbox.
type Open struct {
	sandbox.Sandbox
	DB      *pg.DB
	Partner http.Handler

	service *simulate.Service
	now     atomic.Pointer[time.Time]
	once    sync.Once
	err     error
	users   int // visits; of Pool.mu
	sized   atomic.Pointer[sized]
}

// sized is how much a sandbox had.
type sized struct {
	bytes int64
	at    time.Time
}

// sizeKnown is for how long a size is good enough to say whether there is room: to ask for it takes longer than many a call.
const sizeKnown = time.Second

// Now is the sandbox's time, as the latest visit found it.
func (o *Open) Now() time.Time { return *o.now.Load() }

// Visit is what one request has to do with a sandbox.
type Visit struct {
	*Open
	Clock sandbox.Clock

	pool *Pool
}

// Visit finds the organization's sandbox, and opens it unless it is open. The caller leaves it. NotFound when there
// is none.
func (p *Pool) Visit(ctx context.Context, org id.Organization) (*Visit, error) {
	if p == nil {
		return nil, errNone
	}
	found, err := sandbox.Find(ctx, p.Service.DB, org)
	if err != nil {
		return nil, err
	}
	o, err := p.enter(ctx, found)
	if err != nil {
		return nil, err
	}
	v := &Visit{Open: o, pool: p}
	if v.Clock, err = sandbox.Read(ctx, o.DB, org); err == nil && found.Asked == found.Done {
		err = p.askAgain(ctx, v)
	}
	if err != nil {
		v.Leave()
		return nil, err
	}
	o.advance(v.Clock.Now)
	return v, nil
}

// askAgain asks for work of which no worker has learned: whoever caused it could not ask, as it is asked for in another
// database. What nobody does is seen by calls alone, so that it is soon enough with the next one.
func (p *Pool) askAgain(ctx context.Context, v *Visit) error {
	if v.Clock.Target == nil {
		due, err := simulate.Due(ctx, v.DB, v.Organization, v.Clock, p.Zone)
		if err != nil || !due {
			return err
		}
	}
	return v.Ask(ctx)
}

// Move moves the clock to a time that field of the request named. It returns once a worker knows. Conflict while
// the clock is moved.
func (v *Visit) Move(ctx context.Context, field string, to time.Time, by sandbox.Receiver) error {
	if err := v.Clock.Check(field, to); err != nil {
		return err
	}
	moved, err := sandbox.Move(ctx, v.DB, v.Organization, to, by)
	if err == nil && !moved {
		err = fault.New(fault.Conflict, "clock_moving", "another call moves the sandbox's clock; wait until it is there")
	}
	if err != nil {
		return err
	}
	return v.Ask(ctx)
}

// Full is Conflict for a sandbox that has as much as it may have.
func (v *Visit) Full(ctx context.Context) error {
	known, now := v.sized.Load(), v.service.Clock()
	if known == nil || now.Sub(known.at) > sizeKnown {
		bytes, err := sandbox.Size(ctx, v.DB)
		if err != nil {
			return err
		}
		known = &sized{bytes, now}
		v.sized.Store(known)
	}
	if known.bytes > v.service.MaxSize {
		return fault.New(fault.Conflict, "sandbox_full", "the sandbox has as much as it may have; wipe it")
	}
	return nil
}

// Leave ends the visit.
func (v *Visit) Leave() {
	v.pool.mu.Lock()
	defer v.pool.mu.Unlock()
	v.users--
	v.pool.closeUnused(v.Open)
}

// Ask has a worker look at the sandbox.
func (o *Open) Ask(ctx context.Context) error { return sandbox.Ask(ctx, o.service.DB, o.Organization) }

// advance lets Now know of the time. A visit that read it before another one does not turn it back.
func (o *Open) advance(to time.Time) {
	for {
		now := o.now.Load()
		if now != nil && !to.After(*now) || o.now.CompareAndSwap(now, &to) {
			return
		}
	}
}

// enter finds the open sandbox, or opens it, and counts its user.
func (p *Pool) enter(ctx context.Context, found sandbox.Sandbox) (*Open, error) {
	p.mu.Lock()
	o := p.open[found.Organization]
	if o == nil || o.Database() != found.Database() || !o.FilledAt.Equal(found.FilledAt) {
		if o == nil && !p.makeRoom() {
			p.mu.Unlock()
			return nil, errAllInUse
		}
		if o != nil {
			p.forget(o)
		}
		o = &Open{Sandbox: found, service: p.Service}
		if p.open == nil {
			p.open = map[id.Organization]*Open{}
		}
		p.open[found.Organization] = o
	}
	o.users++
	p.mu.Unlock()
	o.once.Do(func() { o.err = p.begin(context.WithoutCancel(ctx), o) })
	if o.err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		o.users--
		p.forget(o)
		return nil, o.err
	}
	return o, nil
}

func (p *Pool) begin(ctx context.Context, o *Open) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	db, err := p.Service.Open(ctx, o.Sandbox)
	if err != nil {
		return err
	}
	db.Committed = func(ctx context.Context) {
		if err := o.Ask(ctx); err != nil {
			p.Service.Log.WarnContext(ctx, "no worker learns of a sandbox's work; the next call asks again", "error", err)
		}
	}
	o.DB = db
	o.Partner = p.Partner(o)
	return nil
}

// makeRoom forgets sandboxes that nobody uses, while there are as many as may be. p.mu is locked.
func (p *Pool) makeRoom() bool {
	for _, o := range p.open {
		if len(p.open) < most {
			return true
		}
		if o.users == 0 {
			p.forget(o)
		}
	}
	return len(p.open) < most
}

// forget has later visits open the sandbox again. p.mu is locked.
func (p *Pool) forget(o *Open) {
	if p.open[o.Organization] == o {
		delete(p.open, o.Organization)
	}
	p.closeUnused(o)
}

// closeUnused closes the connections of a sandbox that is forgotten and not used. p.mu is locked.
func (p *Pool) closeUnused(o *Open) {
	if o.users == 0 && p.open[o.Organization] != o && o.DB != nil {
		go o.DB.Close()
	}
}
