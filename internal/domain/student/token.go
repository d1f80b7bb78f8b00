package student

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Link is the right to set a password once.
type Link struct {
	Token     string // stored only as its hash
	ExpiresAt time.Time
}

// IssueLink queues the storing of a new link, which the organization is given: it proves no more than
// the organization. Earlier links can be used until they expire or a password is set.
func IssueLink(b *pg.Batch, org id.Organization, user id.User, validDays int, now time.Time) Link {
	return issue(b, org, user, false, now.Truncate(time.Second).AddDate(0, 0, validDays), now)
}

// IssueMailedLink is IssueLink for a mail of the organization's to the account's own address: the
// link proves the mailbox. Nobody but the mail may have it.
func IssueMailedLink(b *pg.Batch, org id.Organization, user id.User, validDays int, now time.Time) Link {
	return issue(b, org, user, true, now.Truncate(time.Second).AddDate(0, 0, validDays), now)
}

func issue(b *pg.Batch, org id.Organization, user id.User, mailed bool, expires, now time.Time) Link {
	l := Link{Token: seal.Token(), ExpiresAt: expires}
	queueInsertLink(b, org, user, mailed, l, now)
	return l
}

// ErrLinkOver is the fault for every link that cannot be used: unknown, used, replaced or
// expired, or given to an organization before the person chose a password.
var ErrLinkOver = fault.New(fault.NotFound, "link_over", "this link has expired or was used already")

// FindLink reads the account whose password the link sets, and what the link proves. The link can
// still be used, as mail scanners open links too. NotFound (ErrLinkOver) when it cannot be used.
func FindLink(ctx context.Context, q pg.Querier, token string, now time.Time) (Account, Proof, error) {
	a, p, err := selectLinkAccount(ctx, q, seal.Hash(token), now)
	if pg.None(err) {
		return Account{}, "", ErrLinkOver
	}
	return a, p, err
}

// SetOwnPassword stores the password that the student chose over a link, which uses the link up, and
// returns the account and what the link, and so the password, proves. With the mailbox all other
// links and all sessions end, and the person counts as signed in. What an organization was given
// ends only what that organization has. The same transaction does what is also to be done. NotFound
// (ErrLinkOver) when the link cannot be used. Links of one account that are used at the same time wait
// for each other.
func SetOwnPassword(
	ctx context.Context, db *pg.DB, token, passwordHash string, now time.Time, also ...func(*pg.Tx) error,
) (a Account, p Proof, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		var user id.User
		user, p, err = takeLink(ctx, tx, seal.Hash(token), now)
		if pg.None(err) {
			return ErrLinkOver
		}
		if err != nil {
			return err
		}
		var b pg.Batch
		own(&b, user, passwordHash, p, now)
		if err := b.Send(ctx, tx); err != nil {
			return err
		}
		if p == Mailbox {
			a, err = updateLastLogin(ctx, tx, user, now)
		} else {
			a, err = selectAccount(ctx, tx, user)
		}
		if err != nil {
			return err
		}
		return each(tx, also)
	})
	return a, p, err
}

// own queues a password as the person's own: partners cannot replace it. The links and sessions end
// that prove no more than it.
func own(b *pg.Batch, user id.User, passwordHash string, p Proof, now time.Time) {
	queueOwnPassword(b, user, passwordHash, p, now)
	queueEndWays(b, user, p)
}

// SetPassword queues a password that the platform gives the person. It counts as the
// person's own and proves the mailbox: partners cannot replace it, and all links and sessions end.
func SetPassword(b *pg.Batch, user id.User, passwordHash string, now time.Time) {
	own(b, user, passwordHash, Mailbox, now)
}
