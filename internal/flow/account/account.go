// Package account is what people and keys sign in with, as far as somebody has to hear of it: staff are
// mailed when their account is used from a browser that was not known and when what they sign in with
// changes, owners and admins when their organization gets an API key. The mail is queued in the
// transaction of what it is about.
package account

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service has the commands that are followed by a notice.
type Service struct {
	DB        *pg.DB
	Mail      email.Service
	Factors   *factor.Service
	Clock     clock.Clock
	PublicURL string // the base of every link, without a slash at its end
}

// Visit is where a person does something.
type Visit struct {
	Browser string // in plain words
	Address string // the client's, or its network
	Session string // by the hash of its token
}

// NoteNewDevice mails staff that somebody signed in to a from a browser that was not known.
func (s *Service) NoteNewDevice(ctx context.Context, a student.Account, from Visit) error {
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		return s.notify(ctx, tx, a, "", email.SecurityNotice{Notice: email.NoticeNewDevice}, from)
	})
}

// ChangePassword is student.ChangePassword, with a notice to staff.
func (s *Service) ChangePassword(ctx context.Context, a student.Account, hash string, from Visit) (student.Account, error) {
	return student.ChangePassword(ctx, s.DB, a, hash, s.Clock(), func(tx *pg.Tx) error {
		return s.notify(ctx, tx, a, "changed password", email.SecurityNotice{Notice: email.NoticePasswordChanged}, from)
	})
}

// SetOwnPassword is student.SetOwnPassword, with a notice to staff who had a password before.
func (s *Service) SetOwnPassword(ctx context.Context, before student.Account, token, hash string, from Visit) (student.Account, student.Proof, error) {
	return student.SetOwnPassword(ctx, s.DB, token, hash, s.Clock(), func(tx *pg.Tx) error {
		if !before.HasPassword() {
			return nil
		}
		return s.notify(ctx, tx, before, "changed password over a mailed link", email.SecurityNotice{Notice: email.NoticePasswordChanged}, from)
	})
}

// notify queues the notice to whoever is staff somewhere, and writes what was done, unless it is "", into
// the audit log of each organization on whose staff the person is.
func (s *Service) notify(ctx context.Context, tx *pg.Tx, a student.Account, done string, n email.SecurityNotice, from Visit) error {
	belongings, err := org.Belongings(ctx, tx, a.ID)
	if err != nil {
		return err
	}
	var orgs []id.Organization
	for _, b := range belongings {
		if b.Role.Staff() && b.Status == org.MemberActive {
			orgs = append(orgs, b.Organization)
		}
	}
	if len(orgs) == 0 {
		return nil
	}
	now := s.Clock()
	if done != "" {
		by := audit.Actor{Kind: audit.Staff, ID: int64(a.ID), Name: string(a.Email)}
		if err := audit.WriteOwn(ctx, tx, by, orgs, done, n.Subject, from.Address, now); err != nil {
			return err
		}
	}
	n.At, n.Browser, n.From, n.URL = now, from.Browser, from.Address, s.PublicURL+"/sessions/"
	return s.queue(ctx, tx, 0, a, n)
}

func (s *Service) queue(ctx context.Context, tx *pg.Tx, o id.Organization, to student.Account, n email.SecurityNotice) error {
	site, err := url.Parse(s.PublicURL)
	if err != nil {
		return err
	}
	n.Site, n.Account = site.Hostname(), string(to.Email)
	_, err = s.Mail.Queue(ctx, tx, n.At, email.Message{Organization: o, User: to.ID, Recipient: string(to.Email), Content: n})
	return err
}

// CreateKey is org.CreateKey, with a notice to all owners and admins. NotFound for a key of a sandbox that does not exist.
func (s *Service) CreateKey(ctx context.Context, by audit.Actor, o org.Organization, wanted org.Key) (key org.Key, text string, err error) {
	if err := s.findSandbox(ctx, o, wanted); err != nil {
		return key, "", err
	}
	return org.CreateKey(ctx, s.DB, by, o.ID, wanted, s.Clock(), s.noticeOfKey(ctx, by, o))
}

// ReplaceKey is org.ReplaceKey. There is a notice of the first key of a resource, and none of one that follows another. NotFound for
// a key of a sandbox that does not exist.
func (s *Service) ReplaceKey(
	ctx context.Context, by audit.Actor, o org.Organization, wanted org.Key, first bool, until time.Time,
) (key org.Key, text string, err error) {
	if err := s.findSandbox(ctx, o, wanted); err != nil {
		return key, "", err
	}
	var also []func(*pg.Tx, org.Key) error
	if first && s.PublicURL != "" {
		also = append(also, s.noticeOfKey(ctx, by, o))
	}
	return org.ReplaceKey(ctx, s.DB, by, o.ID, wanted, until, s.Clock(), also...)
}

func (s *Service) findSandbox(ctx context.Context, o org.Organization, wanted org.Key) error {
	if !wanted.Sandbox {
		return nil
	}
	_, err := sandbox.Find(ctx, s.DB, o.ID)
	return err
}

// noticeOfKey queues the mails about a new key.
func (s *Service) noticeOfKey(ctx context.Context, by audit.Actor, o org.Organization) func(*pg.Tx, org.Key) error {
	return func(tx *pg.Tx, made org.Key) error {
		return s.notifyManagers(ctx, tx, o, email.SecurityNotice{Notice: email.NoticeKeyCreated, Organization: o.Name,
			Subject: made.Name, By: by.Name, At: made.CreatedAt, URL: s.PublicURL + "/console/" + o.Slug + "/api-keys/"})
	}
}

func (s *Service) notifyManagers(ctx context.Context, tx *pg.Tx, o org.Organization, n email.SecurityNotice) error {
	managers, err := org.Managers(ctx, tx, o.ID)
	if err != nil || len(managers) == 0 {
		return err
	}
	accounts, err := student.FindAll(ctx, tx, o.ID, managers)
	if err != nil {
		return err
	}
	for _, user := range slices.Sorted(slices.Values(managers)) {
		if a := accounts[user]; a.ID != 0 {
			if err := s.queue(ctx, tx, o.ID, a, n); err != nil {
				return err
			}
		}
	}
	return nil
}
