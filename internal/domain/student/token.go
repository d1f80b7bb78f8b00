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

// IssueLink queues the storing of a fresh link. Earlier ones stay good until they expire
// or a password is set.
func IssueLink(b *pg.Batch, org id.Organization, user id.User, validDays int, now time.Time) Link {
	return issue(b, org, user, now.Truncate(time.Second).AddDate(0, 0, validDays), now)
}

func issue(b *pg.Batch, org id.Organization, user id.User, expires, now time.Time) Link {
	l := Link{Token: seal.Token(), ExpiresAt: expires}
	queueInsertLink(b, org, user, seal.Hash(l.Token), now, l.ExpiresAt)
	return l
}

// ErrLinkOver is the one answer to links that are unknown, used, replaced or expired, and
// to those that an organization was given for an account that has joined a staff, or another
// organization, since.
var ErrLinkOver = fault.New(fault.NotFound, "link_over", "this link has expired or was used already")

// FindLink reads whose password the link sets, and consumes nothing: mail scanners open
// links. NotFound (ErrLinkOver) when it is no good any more.
func FindLink(ctx context.Context, q pg.Querier, token string, now time.Time) (Account, error) {
	a, err := selectLinkAccount(ctx, q, seal.Hash(token), now)
	if pg.None(err) {
		return Account{}, ErrLinkOver
	}
	return a, err
}

// SetOwnPassword stores the student's own password and ends all of the student's links,
// the used one among them, and sessions. NotFound (ErrLinkOver) when the link is no good any more, also
// when somebody else used it a moment ago. Two uses of links at once go one by one.
func SetOwnPassword(ctx context.Context, tx *pg.Tx, token, passwordHash string, now time.Time) error {
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
}

// proof says who may know a password beside the person.
type proof string

const (
	proven    proof = "proven"    // nobody: a link to the mailbox alone set it, or the platform
	unproven  proof = "unproven"  // perhaps a partner
	unchanged proof = "unchanged" // who knew the one before
)

// own queues a password of the person's own: no partner may replace it, and all links and
// sessions end.
func own(b *pg.Batch, user id.User, passwordHash string, p proof, now time.Time) {
	queueOwnPassword(b, user, passwordHash, p, now)
	queueDeleteLinks(b, user)
	queueDeleteSessions(b, user)
}

// SetPassword queues a password that the platform gives the person. It counts as the
// person's own: no partner may replace it, and all links and sessions end.
func SetPassword(b *pg.Batch, user id.User, passwordHash string, now time.Time) {
	own(b, user, passwordHash, proven, now)
}

// Disown queues the end of all ways in that a partner may have: links, sessions, and a
// password that a partner set or generated, or that was chosen over a link which a partner
// was given, or after signing in with such a password. It is for who joins a staff, whose
// powers no partner who made the account may have. A password of which no partner can know
// stays; who has none asks for a link on the sign-in page.
func Disown(b *pg.Batch, user id.User, now time.Time) {
	queueDropUnproven(b, user, now)
	queueDeleteLinks(b, user)
	queueDeleteSessions(b, user)
}

// Withdraw queues the end of what another organization, which made the account, can sign in
// with, when the person joins org: its links, what its LMS has signed in, and a password that
// it may know and nobody has signed in with. It gives the account as it is afterwards. The
// caller holds the lock of the address, under which links are given and passwords of partners
// set. Ref is left without a password asks for a link on the sign-in page.
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

// WithdrawAll is Withdraw for several people; those whose account org made itself keep what
// they have.
func WithdrawAll(b *pg.Batch, users []id.User, org id.Organization, now time.Time) {
	queueWithdraw(b, org, users, now)
}

// DropExpiredLinks deletes the links that are over, which nobody can use any more.
func DropExpiredLinks(ctx context.Context, q pg.Querier, now time.Time) (int64, error) {
	return deleteExpiredLinks(ctx, q, now)
}
