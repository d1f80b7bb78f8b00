package rest

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Sandboxes answers requests with keys of sandboxes. Each sandbox has a Server of its own, with the same routes
// and nothing in common with the real one but the keys: another database, and the sandbox's clock.
type Sandboxes struct {
	Service *simulate.Service
	// Inside makes the Server of a sandbox.
	Inside func(*pg.DB, clock.Clock) *Server

	mu   sync.Mutex
	open map[id.Organization]*inside
}

// maxOpen is how many sandboxes a replica knows at once. One that is not used holds no connection.
const maxOpen = 50

var (
	errNoSandboxes = fault.New(fault.NotFound, "no_sandbox", "this installation has no sandboxes")
	errAllInUse    = fault.New(fault.Unavailable, "overloaded", "too many sandboxes are in use at this moment; send the same request again later")
	errFull        = fault.New(fault.Conflict, "sandbox_full", "the sandbox has as much as it may have; wipe it")
	errNotSandbox  = fault.New(fault.NotFound, "not_a_sandbox", "this is in sandboxes alone; use a key of the organization's sandbox, which begins with reg_test_")
)

// inside is an open sandbox.
type inside struct {
	sandbox.Sandbox
	db     *pg.DB
	routes http.Handler
	now    atomic.Pointer[time.Time]

	once  sync.Once
	err   error
	users int // requests; of Sandboxes.mu
}

// answer answers a request of the key, which authenticate has let in.
func (s *Sandboxes) answer(w http.ResponseWriter, r *http.Request, p org.Principal) error {
	if s == nil {
		return errNoSandboxes
	}
	ctx := r.Context()
	edge.Annotate(ctx, "sandbox", true)
	found, err := sandbox.Find(ctx, s.Service.DB, p.Organization.ID)
	if err != nil {
		return err
	}
	in, err := s.enter(ctx, found)
	if err != nil {
		return err
	}
	defer s.leave(in)
	c, err := sandbox.Read(ctx, in.db, in.Organization)
	if err != nil {
		return err
	}
	if c.Target != nil && found.Asked == found.Done { // whoever moved it could not ask
		if err := sandbox.Ask(ctx, s.Service.DB, in.Organization); err != nil {
			return err
		}
	}
	if err := s.mayWrite(r, in, c); err != nil {
		return err
	}
	in.advance(c.Now)
	all, err := org.ReadAll(ctx, in.db, in.Organization)
	if err != nil {
		return err
	}
	p.Organization = all[in.Organization]
	in.routes.ServeHTTP(w, edge.Reroute(r.WithContext(context.WithValue(ctx, principalKey{}, p))))
	return nil
}

// advance lets the sandbox's Server know of the time. A request that read it before another one did not turn it back.
func (in *inside) advance(to time.Time) {
	for {
		now := in.now.Load()
		if now != nil && !to.After(*now) || in.now.CompareAndSwap(now, &to) {
			return
		}
	}
}

// mayWrite refuses what changes something while the clock is moved, and once the sandbox is full. Wiping always helps.
func (s *Sandboxes) mayWrite(r *http.Request, in *inside, c sandbox.Clock) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || chi.RouteContext(r.Context()).RoutePattern() == "/api/v1"+wipePath {
		return nil
	}
	if err := c.Moving(); err != nil {
		return err
	}
	size, err := sandbox.Size(r.Context(), in.db)
	if err == nil && size > s.Service.MaxSize {
		err = errFull
	}
	return err
}

// enter finds the open sandbox, or opens it. Until leave it stays open.
func (s *Sandboxes) enter(ctx context.Context, found sandbox.Sandbox) (*inside, error) {
	s.mu.Lock()
	in := s.open[found.Organization]
	if in == nil || in.Database() != found.Database() || !in.FilledAt.Equal(found.FilledAt) {
		if in == nil && !s.makeRoom() {
			s.mu.Unlock()
			return nil, errAllInUse
		}
		if in != nil {
			s.forget(in)
		}
		in = &inside{Sandbox: found}
		if s.open == nil {
			s.open = map[id.Organization]*inside{}
		}
		s.open[found.Organization] = in
	}
	in.users++
	s.mu.Unlock()
	in.once.Do(func() { in.err = s.begin(context.WithoutCancel(ctx), in) })
	if in.err != nil {
		s.mu.Lock()
		s.forget(in)
		s.mu.Unlock()
		s.leave(in)
		return nil, in.err
	}
	return in, nil
}

func (s *Sandboxes) begin(ctx context.Context, in *inside) error {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	db, err := s.Service.Open(ctx, in.Sandbox)
	if err != nil {
		return err
	}
	in.db = db
	in.db.Committed = func(ctx context.Context) {
		if err := sandbox.Ask(ctx, s.Service.DB, in.Organization); err != nil {
			s.Service.Log.WarnContext(ctx, "no worker learns of a sandbox's work; the next call asks again", "error", err)
		}
	}
	server := s.Inside(db, func() time.Time { return *in.now.Load() })
	server.sandbox = &sandboxed{Sandboxes: s, in: in,
		work: &work.Service{DB: db, Clock: server.Clock, Zone: server.Zone, PublicURL: server.PublicURL}}
	router := chi.NewRouter()
	router.Route("/api/v1", server.routes)
	in.routes = router
	return nil
}

// openPatience is how long opening a sandbox may take, also one whose schema is brought up to date.
const openPatience = 30 * time.Second

func (s *Sandboxes) leave(in *inside) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.users--
	s.closeUnused(in)
}

// makeRoom forgets a sandbox that nobody uses, if there are as many as may be. s.mu is locked.
func (s *Sandboxes) makeRoom() bool {
	for _, in := range s.open {
		if len(s.open) < maxOpen {
			return true
		}
		if in.users == 0 {
			s.forget(in)
		}
	}
	return len(s.open) < maxOpen
}

// forget lets new requests open the sandbox again. s.mu is locked.
func (s *Sandboxes) forget(in *inside) {
	if s.open[in.Organization] == in {
		delete(s.open, in.Organization)
	}
	s.closeUnused(in)
}

// closeUnused closes the connections of a sandbox that is forgotten and not used. s.mu is locked.
func (s *Sandboxes) closeUnused(in *inside) {
	if in.users == 0 && s.open[in.Organization] != in && in.db != nil {
		go in.db.Close()
	}
}
