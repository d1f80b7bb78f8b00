// Package student holds people's accounts: their identity, which is an email address on
// the whole platform, usernames, passwords and set-password links.
package student

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Origin is how an account came to be.
type Origin string

// The origins.
const (
	ViaAPI    Origin = "api"
	ViaRoster Origin = "roster"
	ViaStaff  Origin = "staff"
	ViaLTI    Origin = "lti"
)

// Account is a person on the platform.
type Account struct {
	ID                 id.User
	Email              Email
	Username           string
	FirstName          string // as the organization calls the person for which the account was read
	LastName           string // likewise
	MustChangePassword bool
	Language           string    // that the person chose for pages and mails; "": none
	OwnPassword        bool      // the student chose it
	LastLogin          time.Time // zero: never
	CreatedBy          id.Organization
	CreatedVia         Origin
	passwordHash       string // "": no password
	proven             bool   // the password proves the mailbox

	known bool // see Known
}

// HasPassword says whether there is any password to sign in with.
func (a Account) HasPassword() bool { return a.passwordHash != "" }

// HasSetPassword says whether the student chose a password, or signed in with a given one.
func (a Account) HasSetPassword() bool {
	return a.OwnPassword || a.passwordHash != "" && !a.LastLogin.IsZero()
}

// Untouched says whether org may set the account's sign-in details and get set-password links
// (reference: provisioning#existing-accounts): org made it through the API, and its student has
// neither signed in nor chosen a password. Where else the person is makes no difference, so that
// nobody learns it; what org knows opens org's own alone (Proof).
func (a Account) Untouched(org id.Organization) bool {
	return a.CreatedVia == ViaAPI && a.CreatedBy == org && a.LastLogin.IsZero() && !a.OwnPassword
}

// Known says whether the organization for which the account was read has, or had, the person, and so
// has names of its own. To one that does not, the names in the account must not be shown.
func (a Account) Known() bool { return a.known }

// Load queues the reading of the account with the address, with the names that org calls the person;
// into stays zero when there is none. Whoever changes memberships holds the lock of the address.
func Load(b *pg.Batch, org id.Organization, email Email, into *Account) {
	queueByEmail(b, org, email, "", into)
}

// LoadLocked is Load under the account's row lock: until the transaction ends, nobody
// signs in or changes the password.
func LoadLocked(b *pg.Batch, org id.Organization, email Email, into *Account) {
	queueByEmail(b, org, email, "FOR NO KEY UPDATE OF a", into)
}

// SameSignIn says whether both are one account that nobody signed in to and whose
// password nobody changed in between, or no account at all.
func (a Account) SameSignIn(b Account) bool {
	return a.ID == b.ID && a.passwordHash == b.passwordHash && a.OwnPassword == b.OwnPassword && a.LastLogin.Equal(b.LastLogin)
}

// Named turns the violation of the username's uniqueness into ErrUsernameTaken.
func Named(err error) error {
	if pg.Violates(err, "accounts_username") {
		return ErrUsernameTaken
	}
	return err
}

// erased says whether the account is the number that is left of a person who was erased.
func (a Account) erased() bool { return !strings.Contains(string(a.Email), "@") }

// Find reads an account by its id, with the names that it was made with, which are for its person
// alone. NotFound when there is none, or the person was erased.
func Find(ctx context.Context, q pg.Querier, user id.User) (Account, error) {
	a, err := selectAccount(ctx, q, user)
	if pg.None(err) || err == nil && a.erased() {
		return Account{}, errNoUser(user)
	}
	return a, err
}

// Draft has the fields of a new account.
type Draft struct {
	Email              Email
	Username           string // "": derived from the address
	FirstName          string
	LastName           string
	PasswordHash       string // of HashPassword; "": no password
	MustChangePassword bool
	CreatedBy          id.Organization
	CreatedVia         Origin
}

// maxUsernameTries bounds how often another account that is created at the same time may take
// the derived username first.
const maxUsernameTries = 20

// Create makes an account. The caller holds the lock of its address and has seen that it has no
// account. Invalid (username_taken) when another account has the given username.
func Create(ctx context.Context, tx *pg.Tx, d Draft, now time.Time) (Account, error) {
	derived := d.Username == ""
	if derived {
		d.Username = usernameFor(d.Email)
	}
	base := d.Username
	for range maxUsernameTries {
		a, err := insertAccount(ctx, tx, d, now)
		if !pg.None(err) {
			return a, err
		}
		if !derived {
			return Account{}, ErrUsernameTaken
		}
		taken, err := selectUsernames(ctx, tx, base)
		if err != nil {
			return Account{}, err
		}
		taken[strings.ToLower(d.Username)] = true // even if the database folds case in its own way
		d.Username = freeUsername(base, taken)
	}
	return Account{}, fmt.Errorf("no free username in %d tries", maxUsernameTries)
}

// ErrUsernameTaken is the fault of a given username that another account has.
var ErrUsernameTaken = fault.Field("username", "username_taken", "username: it is taken; send another or leave it out")

// CalledBy is what a mail of org calls the account: the username, or the address, which signs in as
// well, where another organization may have chosen the username. 0 is the site.
func (a Account) CalledBy(org id.Organization) string {
	if a.CreatedBy == org && org != 0 {
		return a.Username
	}
	return string(a.Email)
}
