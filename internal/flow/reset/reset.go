// Package reset mails people who forgot their password, or never had one, a link to set one.
//
// A request does not show whether an address has an account: Ask does the same for every
// address, and the worker does later what depends on the account.
package reset

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Ask stores and queues a request for a new password of the address.
func Ask(ctx context.Context, db *pg.DB, address student.Email, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		reset, err := student.AskReset(ctx, tx, address, now)
		if err != nil {
			return err
		}
		return outbox.Add(ctx, tx, task.PasswordReset, reset, 0, now)
	})
}

// Service answers requests.
type Service struct {
	DB        *pg.DB
	Mail      email.Service
	Clock     clock.Clock
	PublicURL string // the base of every link, without a slash at its end
}

// Answer carries out a claimed request: it queues the mail if the address has an account. A lost
// claim is not an error.
func (o *Service) Answer(ctx context.Context, ref task.Outbox) error {
	err := o.DB.InTx(ctx, func(tx *pg.Tx) error {
		claimed, err := outbox.Load(ctx, tx, ref)
		if err != nil {
			return err
		}
		address, err := student.TakeReset(ctx, tx, claimed.Subject)
		if err == nil && address != "" {
			err = o.write(ctx, tx, address)
		}
		if err != nil {
			return err
		}
		return outbox.Done(ctx, tx, ref)
	})
	if errors.Is(err, outbox.ErrLost) {
		return nil
	}
	return err
}

func (o *Service) write(ctx context.Context, tx *pg.Tx, address student.Email) error {
	var b pg.Batch
	var a student.Account
	b.Lock(pg.LockEmail, string(address))
	student.Load(&b, address, &a)
	if err := b.Send(ctx, tx); err != nil || a.ID == 0 {
		return err
	}
	now := o.Clock()
	link, err := student.ResetLink(ctx, tx, a.ID, now)
	if err != nil || link.Token == "" {
		return err
	}
	sender, ofSite, err := o.sender(ctx, tx, a.ID)
	if err != nil {
		return err
	}
	_, err = o.Mail.Queue(ctx, tx, now, email.Message{User: a.ID, Recipient: string(address),
		Content: email.PasswordReset{LinkExpires: link.ExpiresAt, OfSite: ofSite, Student: email.Student{FirstName: a.FirstName, LastName: a.LastName,
			Organization: sender, Username: a.Username, LoginURL: o.PublicURL + "/sign-in/"}},
		Secrets: email.Secrets{SetPasswordURL: o.PublicURL + "/set-password/" + link.Token}})
	return err
}

// sender is the name that the mail comes from: that of the person's organization where there is
// exactly one, else the site's.
func (o *Service) sender(ctx context.Context, tx *pg.Tx, user id.User) (name string, ofSite bool, err error) {
	belongings, err := org.Belongings(ctx, tx, user)
	if err != nil {
		return "", false, err
	}
	if len(belongings) == 1 {
		return belongings[0].Name, false, nil
	}
	site, err := url.Parse(o.PublicURL)
	if err != nil {
		return "", false, err
	}
	return site.Hostname(), true, nil
}
