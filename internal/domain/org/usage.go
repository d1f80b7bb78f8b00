package org

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// usageInterval is how long a use waits to be written, together with others.
const usageInterval = 5 * time.Second

// Usage notes when and from where keys are used: for each key the first use of a day. A request
// never waits for it.
type Usage struct {
	db  *pg.DB
	log *slog.Logger

	mu      sync.Mutex
	day     clock.Date
	noted   map[id.APIKey]struct{} // on that day, written or pending
	pending []use
}

type use struct {
	organization id.Organization
	key          id.APIKey
	day          clock.Date
	from         netip.Addr
}

// NewUsage makes a Usage that writes while Run runs.
func NewUsage(db *pg.DB, log *slog.Logger) *Usage {
	return &Usage{db: db, log: log, noted: map[id.APIKey]struct{}{}}
}

// Note notes a use of the key, on the platform's day.
func (u *Usage) Note(p Principal, day clock.Date, from netip.Addr) {
	if p.Key.LastUsedOn != nil && !p.Key.LastUsedOn.Before(day) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.day.Before(day) {
		u.day = day
		clear(u.noted)
	}
	if _, known := u.noted[p.Key.ID]; known {
		return
	}
	u.noted[p.Key.ID] = struct{}{}
	u.pending = append(u.pending, use{p.Organization.ID, p.Key.ID, day, from})
}

// Run writes what is noted until ctx ends, and then once more.
func (u *Usage) Run(ctx context.Context) error {
	clock.Every(ctx, usageInterval, u.flush)
	return nil
}

// flush is Flush, whose uses are tried again the next time.
func (u *Usage) flush(ctx context.Context) {
	if err := u.Flush(ctx); err != nil {
		u.log.WarnContext(ctx, "the last uses of API keys wait to be written", "error", err)
	}
}

// Flush writes what is noted. What cannot be written stays noted.
func (u *Usage) Flush(ctx context.Context) error {
	u.mu.Lock()
	uses := u.pending
	u.pending = nil
	u.mu.Unlock()
	if len(uses) == 0 {
		return nil
	}
	err := updateLastUsed(ctx, u.db, uses)
	if err != nil {
		u.mu.Lock()
		u.pending = append(uses, u.pending...)
		u.mu.Unlock()
	}
	return err
}
