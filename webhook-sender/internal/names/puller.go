// Package names pulls the people of LMSes' courses as rosters (LTI: Names and Role Provisioning Services). What is pending is a row
// (lms.Pull). A process that dies leaves its pulls to be handed out again.
package names

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/flow/membership"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/webhook-sender/internal/advantage"
)

// Puller makes the pulls that are due, until its context ends. Any number of them share the work, and of each LMS one course is
// pulled at a time, so that one that is late or away holds up its own alone.
type Puller struct {
	DB    *pg.DB
	Clock clock.Clock
	Log   *slog.Logger
	Poll  time.Duration // between two looks for what is due; 0 is 1 s

	client *advantage.Client
	long   chan struct{} // a place for each long list that may be in memory
}

const (
	atOnce = 16
	// deadline is that of a whole pull; lease leaves time to hand it over.
	deadline = 2 * time.Minute
	lease    = deadline + 2*time.Minute
	// Lists of more than ordinary bytes, of which an LMS may send many, are in memory two at a time.
	ordinary  = 4 << 20
	longLists = 2
)

// New makes a Puller.
func New(db *pg.DB, client *advantage.Client, now clock.Clock, log *slog.Logger) *Puller {
	return &Puller{DB: db, Clock: now, Log: log, client: client, long: make(chan struct{}, longLists)}
}

// Run pulls until ctx ends, and then waits for what is in hand.
func (p *Puller) Run(ctx context.Context) {
	poll := p.Poll
	if poll == 0 {
		poll = time.Second
	}
	var under sync.WaitGroup
	defer under.Wait()
	places, away := make(chan struct{}, atOnce), false
	for range clock.Ticks(ctx, poll) {
		free := cap(places) - len(places)
		if free == 0 {
			continue
		}
		due, err := lms.DuePulls(ctx, p.DB, free, p.Clock(), lease)
		if err != nil && ctx.Err() == nil && !away {
			p.Log.WarnContext(ctx, "rosters of LMSes are not pulled; they wait in PostgreSQL", "error", err)
		}
		away = err != nil
		for _, pull := range due {
			places <- struct{}{}
			under.Go(func() {
				defer func() { <-places }()
				p.attempt(context.WithoutCancel(ctx), pull)
			})
		}
	}
}

// attempt makes one pull, and records it. An error of our own leaves the pull to be handed out again.
func (p *Puller) attempt(ctx context.Context, pull lms.Pull) {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	a, err := p.pull(ctx, pull)
	log := p.Log.With("organization", int64(pull.Organization), "context", int64(pull.ID))
	if err != nil {
		log.ErrorContext(ctx, "a roster of an LMS was not pulled", "error", err)
		return
	}
	if err := lms.SettlePull(ctx, p.DB, pull, a); err != nil {
		log.ErrorContext(ctx, "a pull of an LMS's roster is not recorded; it is made again", "error", err)
	}
}

// errBusy ends a pull for which there is no place.
var errBusy = errors.New("names: no place for a long list")

func (p *Puller) pull(ctx context.Context, pull lms.Pull) (a lms.PullAttempt, err error) {
	within, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	isLong := false
	defer func() {
		if isLong {
			<-p.long
		}
	}()
	members, err := p.read(within, pull, func() error {
		if isLong {
			return nil
		}
		select {
		case p.long <- struct{}{}:
			isLong = true
			return nil
		case <-within.Done():
			return errBusy
		}
	})
	a.At = p.Clock()
	if errors.Is(err, errBusy) {
		a.Cause = "Other long lists of members were being read for two minutes; this one waits for another turn."
		return a, nil
	}
	var t *advantage.Trouble
	if errors.As(err, &t) {
		a.Status, a.Cause = t.Status, t.Cause
		if within.Err() != nil {
			a.Cause = "The LMS takes more than two minutes to list the course’s members."
		}
		return a, nil
	}
	if err != nil {
		return a, err
	}
	if mine, err := pull.InHand(ctx, p.DB); err != nil || !mine {
		return a, err // settling finds that it is another's, too
	}
	for _, m := range members {
		if m.Active && m.Role == lms.RoleStudent && m.Email == "" {
			a.NoAddress++
		}
	}
	a.Members = len(members)
	a.Run, err = membership.Import(ctx, p.DB, pull, members, a.At)
	if fault.KindOf(err) == fault.Unavailable && fault.Has(err, "too_many_runs") {
		a.Cause, err = "Too many roster imports of the organization wait already.", nil
	}
	return a, err
}
