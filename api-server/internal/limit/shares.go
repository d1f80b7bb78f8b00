package limit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Shares are places in this process of which one organization gets a part alone, whatever the
// number of its keys: the others find some free. Those that wait for one get it in the order in
// which they came, past those whose organization has its part.
type Shares struct {
	Name     string // in metrics
	All      int    // places
	Each     int    // of them, of one organization
	Patience time.Duration

	mu      sync.Mutex
	taken   int
	of      map[id.Organization]*holder
	waiting []*waiter
}

// holder is what an organization has, while it has something.
type holder struct{ taken, waiting int }

type waiter struct {
	of    id.Organization
	ready chan struct{} // closed with the place
}

// queue is how many of one organization may wait. They cost memory alone; it is more than one key
// may send at once.
const queue = 256

// Try takes a place if one is free for the organization; leave gives it back.
func (s *Shares) Try(of id.Organization) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.free(of) {
		return nil, false
	}
	return s.take(of), true
}

// Wait is Try, but waits for a place until ctx ends, and for Patience at most.
func (s *Shares) Wait(ctx context.Context, of id.Organization) (leave func(), ok bool) {
	w, leave := s.line(of)
	if w == nil {
		return leave, leave != nil
	}
	over := time.NewTimer(s.Patience)
	defer over.Stop()
	select {
	case <-w.ready:
	case <-over.C:
	case <-ctx.Done():
	}
	if s.giveUp(w) {
		return nil, false
	}
	return s.leaving(of), true
}

// line takes a place, or one in the queue; neither where that is full, too.
func (s *Shares) line(of id.Organization) (w *waiter, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free(of) {
		return nil, s.take(of)
	}
	h := s.holder(of)
	if h.waiting == queue {
		return nil, nil
	}
	h.waiting++
	w = &waiter{of, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	return w, nil
}

// giveUp takes w out of the queue; false where it has its place by now.
func (s *Shares) giveUp(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, w)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.holder(w.of).waiting--
	s.forget(w.of)
	return true
}

func (s *Shares) free(of id.Organization) bool {
	h := s.of[of]
	return s.taken < s.All && (h == nil && s.Each > 0 || h != nil && h.taken < s.Each)
}

func (s *Shares) take(of id.Organization) (leave func()) {
	s.taken++
	s.holder(of).taken++
	return s.leaving(of)
}

func (s *Shares) leaving(of id.Organization) func() {
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken--
		s.holder(of).taken--
		s.forget(of)
		s.admit()
	})
}

// admit gives the place that came free to the first in the queue who may have it.
func (s *Shares) admit() {
	i := slices.IndexFunc(s.waiting, func(w *waiter) bool { return s.free(w.of) })
	if i < 0 {
		return
	}
	w := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.holder(w.of).waiting--
	s.take(w.of)
	close(w.ready)
}

func (s *Shares) holder(of id.Organization) *holder {
	if s.of == nil {
		s.of = map[id.Organization]*holder{}
	}
	h := s.of[of]
	if h == nil {
		h = &holder{}
		s.of[of] = h
	}
	return h
}

func (s *Shares) forget(of id.Organization) {
	if h := s.of[of]; h != nil && *h == (holder{}) {
		delete(s.of, of)
	}
}
