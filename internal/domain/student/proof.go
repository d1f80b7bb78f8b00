package student

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Proof is what a way to sign in shows of whoever uses it: that the mailbox is theirs, or only that
// one organization let them in. Passwords, links and sessions have one. The zero Proof opens nothing.
//
// An account may belong to several organizations, one of which may know its password or have kept
// a link. Two things hold whatever organizations do, and in whatever order:
//   - no call of one changes what opens for the student of another;
//   - no secret that one has ever known opens anything of another.
type Proof string

// Mailbox is the proof of a link that was sent to the account's own address and given to no
// organization, and of a password that was chosen over one or given by the platform. It opens all
// that the person has, and staff pages need it.
const Mailbox Proof = "mailbox"

const byOrganization = "organization "

// ByOrganization is the proof of whatever the organization knows or could have used itself: a
// password that it set, the link in an answer to it, a password chosen over that link, and a launch
// from its LMS. It opens what belongs to the organization alone.
func ByOrganization(o id.Organization) Proof {
	return Proof(byOrganization + strconv.FormatInt(int64(o), 10))
}

// Opens says whether whoever shows the proof may see what the person has in the organization. All
// that reads by a session asks it.
func (p Proof) Opens(o id.Organization) bool {
	return p == Mailbox || o != 0 && p == ByOrganization(o)
}

// Proof is what signing in with the account's password proves. A password that does not prove the
// mailbox came from the organization that made the account, or over a link that it was given: no
// other organization can set one.
func (a Account) Proof() Proof {
	switch {
	case a.passwordHash == "":
		return ""
	case a.proven:
		return Mailbox
	}
	return ByOrganization(a.CreatedBy)
}

// organization is the one that the proof is of; 0 for the mailbox and for none.
func (p Proof) organization() id.Organization {
	digits, _ := strings.CutPrefix(string(p), byOrganization)
	o, _ := strconv.ParseInt(digits, 10, 64) // "mailbox" is no number
	return id.Organization(o)
}

// FindBy is Find for what reads by a session of the proof: an organization's has the names that the
// organization calls the person, and the account as it may know it (SeenBy).
func FindBy(ctx context.Context, q pg.Querier, user id.User, p Proof) (a Account, err error) {
	o := p.organization()
	if o == 0 {
		return Find(ctx, q, user)
	}
	var b pg.Batch
	LoadByID(&b, o, user, &a)
	if err := b.Send(ctx, q); err != nil {
		return a, err
	}
	if a.ID == 0 {
		return a, errNoUser(user)
	}
	return a, nil
}

// SeenBy is the account as the organization may know it. A password that opens only what another
// organization shows is none to it, nor is a sign-in with one its affair.
func (a Account) SeenBy(o id.Organization) Account {
	if !a.proven && a.CreatedBy != 0 && a.CreatedBy != o {
		a.passwordHash, a.OwnPassword, a.MustChangePassword, a.LastLogin = "", false, false, time.Time{}
	}
	return a
}
