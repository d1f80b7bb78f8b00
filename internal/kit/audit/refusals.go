package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Refusal is a request that was turned away, and from where it came.
type Refusal struct {
	Organization id.Organization // 0: not known
	Actor        Actor
	Action       string // "refused API key: expired"
	Target       string // what it was tried with, as people know it; never a secret
	Address      string
}

const (
	refusalInterval = time.Minute
	mostRefusals    = 100 // different ones of an interval; more are counted as one
)

// Refusals counts what is turned away and writes a row a minute for each kind, key or account, and
// address, with its number: nobody fills the log by trying. A request does not wait for it.
type Refusals struct {
	db  *pg.DB
	now clock.Clock
	log *slog.Logger

	mu      sync.Mutex
	counted map[Refusal]int
}

// NewRefusals makes a Refusals that writes while Run runs.
func NewRefusals(db *pg.DB, now clock.Clock, log *slog.Logger) *Refusals {
	return &Refusals{db: db, now: now, log: log, counted: map[Refusal]int{}}
}

// Note counts a refusal.
func (r *Refusals) Note(what Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.counted[what]; !known && len(r.counted) >= mostRefusals {
		what = Refusal{Actor: Unknown, Action: "refused more", Target: "of different kinds, keys, accounts or addresses"}
	}
	r.counted[what]++
}

// Run writes what was counted until ctx ends, and then once more.
func (r *Refusals) Run(ctx context.Context) error {
	clock.Every(ctx, refusalInterval, r.flush)
	return nil
}

func (r *Refusals) flush(ctx context.Context) {
	if err := r.Flush(ctx); err != nil {
		r.log.WarnContext(ctx, "refusals wait to be written to the audit log", "error", err)
	}
}

// Flush writes what was counted. What cannot be written is counted on.
func (r *Refusals) Flush(ctx context.Context) error {
	r.mu.Lock()
	counted := r.counted
	r.counted = map[Refusal]int{}
	r.mu.Unlock()
	if len(counted) == 0 {
		return nil
	}
	err := insertRefusals(ctx, r.db, counted, r.now())
	if err != nil {
		r.mu.Lock()
		for what, n := range r.counted {
			counted[what] += n
		}
		r.counted = counted
		r.mu.Unlock()
	}
	return err
}
