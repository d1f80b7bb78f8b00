package email

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Watch lets requests wait until a mail's status is final.
type Watch struct {
	db   *pg.DB
	rows *wake.Watch
}

// NewWatch makes a watch.
func NewWatch(db *pg.DB) *Watch { return &Watch{db, wake.NewWatch(db.Wakes, Channel)} }

// Run listens until ctx ends.
func (w *Watch) Run(ctx context.Context) error { return w.rows.Run(ctx) }

// nameOf names the mail in notifications.
func nameOf(mail id.Email) string { return strconv.FormatInt(int64(mail), 10) }

// Final waits until the mail's status is final, but not longer than limit, and returns the record.
// When the organization has no such mail, it returns the zero Record after the limit.
func (w *Watch) Final(ctx context.Context, org id.Organization, mail id.Email, limit time.Duration) (r Record, err error) {
	err = w.rows.Until(ctx, nameOf(mail), limit, func(ctx context.Context) (bool, error) {
		r, err = Find(ctx, w.db, org, mail)
		return r.Status.Final(), err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return Find(ctx, w.db, org, mail)
	}
	return r, err
}
