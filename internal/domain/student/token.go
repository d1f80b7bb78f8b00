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

// IssueLink queues the storing of a new link. Earlier links can be used until they expire or a
// password is set.
func IssueLink(b *pg.Batch, org id.Organization, user id.User, validDays int, now time.Time) Link {
	return issue(b, org, user, now.Truncate(time.Second).AddDate(0, 0, validDays), now)
}

func issue(b *pg.Batch, org id.Organization, user id.User, expires, now time.Time) Link {
	l := Link{Token: seal.Token(), ExpiresAt: expires}
	queueInsertLink(b, org, user, seal.Hash(l.Token), now, l.ExpiresAt)
	return l
}

// ErrLinkOver is the fault for every link that cannot be used: unknown, used, replaced or
// expired, or given to an organization for an account that has since become staff or joined
// another organization.
var ErrLinkOver = fault.New(fault.NotFound, "link_over", "this link has expired or was used already")

// FindLink reads the account whose password the link sets. The link can still be used, as mail
// scanners open links too. NotFound (ErrLinkOver) when it cannot be used.
func FindLink(ctx context.Context, q pg.Querier, token string, now time.Time) (Account, error) {
	a, err := selectLinkAccount(ctx, q, seal.Hash(token), now)
	if pg.None(err) {
		return Account{}, ErrLinkOver
	}
	return a, err
}

// SetOwnPassword stores the password that the student chose, and ends all of the student's
// links, this one too, and sessions. NotFound (ErrLinkOver) when the link cannot be used. Links
// of one account that are used at the same time wait for each other.
func SetOwnPassword(ctx context.Context, db *pg.DB, token, passwordHash string, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		user, mailed, err := takeLink(ctx, tx, seal.Hash(token), now)
		if pg.None(err) {
			return ErrLinkOver
		}
		if err != nil {
			return err
		}
		p := unproven // whoever holds the organization's key has the link, too
		if mailed {
			p = proven
		}
		var b pg.Batch
		own(&b, user, passwordHash, p, now)
		return b.Send(ctx, tx)
	})
}

// proof says who besides the person may know a password.
type proof string

const (
	proven    proof = "proven"    // nobody: a link to the mailbox alone set it, or the platform
	unproven  proof = "unproven"  // perhaps a partner
	unchanged proof = "unchanged" // the same as for the password before
)

// own queues a password as the person's own: partners cannot replace it, and all links and
// sessions end.
func own(b *pg.Batch, user id.User, passwordHash string, p proof, now time.Time) {
	queueOwnPassword(b, user, passwordHash, p, now)
	queueDeleteLinks(b, user)
	queueDeleteSessions(b, user)
}

// SetPassword queues a password that the platform gives the person. It counts as the
// person's own: partners cannot replace it, and all links and sessions end.
func SetPassword(b *pg.Batch, user id.User, passwordHash string, now time.Time) {
	own(b, user, passwordHash, proven, now)
}

// Disown queues the end of every way to sign in that a partner may have: links, sessions, and a
// password that a partner set or may know because it was chosen through a partner's link or
// session. It is for people who become staff, as a partner who made the account must not get a
// staff person's rights. A password that no partner can know stays. Others can ask for a link on
// the sign-in page.
func Disown(b *pg.Batch, user id.User, now time.Time) {
	queueDropUnproven(b, user, now)
	queueDeleteLinks(b, user)
	queueDeleteSessions(b, user)
}

// Withdraw queues the end of every way to sign in that the organization which made the account
// has, when the person joins org: its links, sessions from its LMS, and a password that it may
// know and nobody has signed in with. It returns the account as it will be. The
// caller holds the lock of the address, under which links are issued and passwords of partners
// set. Somebody who is left without a password can ask for a link on the sign-in page.
func Withdraw(b *pg.Batch, a Account, org id.Organization, now time.Time) Account {
	if a.CreatedVia != ViaAPI && a.CreatedVia != ViaLTI || a.CreatedBy == org {
		return a
	}
	WithdrawAll(b, []id.User{a.ID}, org, now)
	if a.CreatedVia == ViaAPI && a.LastLogin.IsZero() && !a.proven {
		a.passwordHash, a.OwnPassword, a.MustChangePassword = "", false, false
	}
	return a
}
