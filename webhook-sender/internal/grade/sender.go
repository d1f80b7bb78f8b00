package grade

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/webhook-sender/internal/advantage"
)

// Sender sends the marks that are due, until its context ends. Any number of them share the work.
type Sender struct {
	DB    *pg.DB
	Clock clock.Clock
	Log   *slog.Logger
	Poll  time.Duration // between two looks for what is due; 0 is 1 s

	client *advantage.Client

	mu     sync.Mutex
	inHand map[owner]int
	freed  chan struct{} // a mark was settled, so that its LMS may have another
}

type owner struct {
	organization id.Organization
	registration id.Registration
}

// lease is longer than the two calls of an attempt can take.
const lease = 2*advantage.Timeout + 20*time.Second

// New makes a Sender.
func New(db *pg.DB, client *advantage.Client, now clock.Clock, log *slog.Logger) *Sender {
	return &Sender{DB: db, Clock: now, Log: log, client: client,
		inHand: map[owner]int{}, freed: make(chan struct{}, 1)}
}

// Run sends until ctx ends, and then waits for what is in hand.
func (s *Sender) Run(ctx context.Context) {
	poll := s.Poll
	if poll == 0 {
		poll = time.Second
	}
	var under sync.WaitGroup
	defer under.Wait()
	away := false
	for ctx.Err() == nil {
		n, err := s.pass(ctx, &under)
		if err != nil && ctx.Err() == nil && !away {
			s.Log.WarnContext(ctx, "marks for LMSes are not sent; they wait in PostgreSQL", "error", err)
		}
		if away = err != nil; n > 0 {
			continue
		}
		timer := time.NewTimer(poll)
		select {
		case <-ctx.Done():
		case <-s.freed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pass begins to send what is due, and says how much that is.
func (s *Sender) pass(ctx context.Context, under *sync.WaitGroup) (int, error) {
	due, err := lms.Due(ctx, s.DB, s.busy(), s.Clock(), lease)
	for _, m := range due {
		o := owner{m.Organization, m.Registration}
		s.count(o, 1)
		under.Go(func() {
			defer s.count(o, -1)
			s.attempt(context.WithoutCancel(ctx), m)
		})
	}
	return len(due), err
}

func (s *Sender) busy() (all []lms.Busy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, n := range s.inHand {
		all = append(all, lms.Busy{Organization: o.organization, Registration: o.registration, InHand: n})
	}
	return all
}

func (s *Sender) count(o owner, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inHand[o] += n; s.inHand[o] == 0 {
		delete(s.inHand, o)
	}
	if n < 0 {
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}

// attempt sends one mark, and records the attempt. An error of our own leaves the mark to be handed out again.
func (s *Sender) attempt(ctx context.Context, m lms.Mark) {
	status, err := s.send(ctx, m)
	at := s.Clock()
	a, next := lms.MarkAttempt{At: at, Status: status}, time.Time{}
	var t *advantage.Trouble
	switch {
	case errors.As(err, &t):
		a.Status, a.Cause = t.Status, t.Cause
		if pause, more := webhook.Pause(m.Tries + 1); more {
			next = at.Add(pause)
		}
	case err != nil:
		s.Log.ErrorContext(ctx, "a mark was not sent", "organization", int64(m.Organization), "registration", int64(m.Registration), "error", err)
		return
	}
	if err := lms.Settle(ctx, s.DB, m, a, next); err != nil {
		s.Log.ErrorContext(ctx, "an attempt to send a mark is not recorded; it is sent again", "organization", int64(m.Organization), "registration", int64(m.Registration), "error", err)
	}
}
