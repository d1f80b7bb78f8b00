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
	student.Load(&b, 0, address, &a)
	if err := b.Send(ctx, tx); err != nil || a.ID == 0 {
		return err
	}
	now := o.Clock()
	link, err := student.ResetLink(ctx, tx, a.ID, now)
	if err != nil || link.Token == "" {
		return err
	}
	reset := email.PasswordReset{LinkExpires: link.ExpiresAt}
	if reset.Student, reset.OfSite, err = o.correspondents(ctx, tx, a); err != nil {
		return err
	}
	reset.LoginURL = o.PublicURL + "/sign-in/"
	_, err = o.Mail.Queue(ctx, tx, now, email.Message{User: a.ID, Recipient: string(address), Content: reset,
		Secrets: email.Secrets{SetPasswordURL: o.PublicURL + "/set-password/" + link.Token}})
	return err
}

// correspondents are the names of whom the mail comes from and goes to: the person's organization,
// where there is exactly one, and what it calls the person; else the site, and nobody by name, as a
// name would be that of one organization in a mail that is not its own.
func (o *Service) correspondents(ctx context.Context, tx *pg.Tx, a student.Account) (s email.Student, ofSite bool, err error) {
	belongings, err := org.Belongings(ctx, tx, a.ID)
	if err != nil {
		return s, false, err
	}
	if len(belongings) == 1 {
		called, err := student.FindAll(ctx, tx, belongings[0].Organization, []id.User{a.ID})
		a := called[a.ID]
		return email.Student{FirstName: a.FirstName, LastName: a.LastName, Organization: belongings[0].Name,
			Username: a.CalledBy(belongings[0].Organization)}, false, err
	}
	site, err := url.Parse(o.PublicURL)
	if err != nil {
		return s, false, err
	}
	return email.Student{Organization: site.Hostname(), Username: a.CalledBy(0)}, true, nil
}
