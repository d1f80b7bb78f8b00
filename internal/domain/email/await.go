package email

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Watch lets requests wait for what becomes of a mail.
type Watch struct {
	db   *pg.DB
	rows *pg.Watch
}

// NewWatch makes a watch that nobody waits at yet.
func NewWatch(db *pg.DB) *Watch { return &Watch{db, pg.NewWatch(db, Channel)} }

// Run listens until ctx ends.
func (w *Watch) Run(ctx context.Context) error { return w.rows.Run(ctx) }

// nameOf names the mail in notifications.
func nameOf(mail id.Email) string { return strconv.FormatInt(int64(mail), 10) }

// Final waits until the mail's status is final, for the time limit at most, and gives the
// record as it is then: the zero Record, after the limit, where the organization has no such mail.
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
