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
	FirstName          string
	LastName           string
	MustChangePassword bool
	OwnPassword        bool      // the student chose it
	LastLogin          time.Time // zero: never
	CreatedBy          id.Organization
	CreatedVia         Origin
	passwordHash       string // "": no password
	proven             bool   // no partner can know the password

	// Staff, or of another organization than the one that made the account; known where Load
	// or LoadLocked read it.
	shared bool
}

// HasPassword says whether there is any password to sign in with.
func (a Account) HasPassword() bool { return a.passwordHash != "" }

// HasSetPassword says whether the student has taken the account into use with a password:
// chose one, or signed in with the one that was given.
func (a Account) HasSetPassword() bool {
	return a.OwnPassword || a.passwordHash != "" && !a.LastLogin.IsZero()
}

// Untouched says whether org made the account through the API and its student has neither
// signed in nor chosen a password: only then may org set sign-in details and hand out
// set-password links (reference: provisioning#existing-accounts). Whoever signs in sees what all of the
// student's organizations gave, and staff, of whatever organization, can do more than an API
// key can: no key lets anybody in as one who is staff, or of another organization too.
func (a Account) Untouched(org id.Organization) bool {
	return a.CreatedVia == ViaAPI && a.CreatedBy == org && a.LastLogin.IsZero() && !a.OwnPassword && !a.shared
}

// Load queues the reading of the account with the address; into stays zero when there is
// none. Ref changes memberships holds the lock of the address.
func Load(b *pg.Batch, email Email, into *Account) { queueByEmail(b, email, "", into) }

// LoadLocked is Load under the account's row lock: until the transaction ends, nobody
// signs in or changes the password.
func LoadLocked(b *pg.Batch, email Email, into *Account) {
	queueByEmail(b, email, "FOR NO KEY UPDATE", into)
}

// SameSignIn says whether both are one account that nobody signed in to and whose
// password nobody changed in between, or no account at all.
func (a Account) SameSignIn(b Account) bool {
	return a.ID == b.ID && a.passwordHash == b.passwordHash && a.OwnPassword == b.OwnPassword && a.LastLogin.Equal(b.LastLogin)
}

// LookUpUsername queues the question whether another account than the address's has the
// username.
func LookUpUsername(b *pg.Batch, username string, email Email, taken *bool) {
	queueTaken(b, username, email, taken)
}

// SetSignIn queues the writing of the account's username and must_change_password and,
// unless it is "", of a new password's hash. The caller holds the account's row lock.
// Named makes a fault of what it may violate.
func SetSignIn(b *pg.Batch, a Account, passwordHash string, now time.Time) {
	queueSignIn(b, a, passwordHash, now)
}

// Named turns the violation of the username's uniqueness into ErrUsernameTaken.
func Named(err error) error {
	if pg.Violates(err, "accounts_username") {
		return ErrUsernameTaken
	}
	return err
}

// LoadByID queues the reading of an account; into stays zero when there is none.
func LoadByID(b *pg.Batch, user id.User, into *Account) { queueByID(b, user, into) }

// Find reads an account by its id. NotFound when there is none.
func Find(ctx context.Context, q pg.Querier, user id.User) (Account, error) {
	a, err := selectAccount(ctx, q, user)
	if pg.None(err) {
		return Account{}, errNoUser(user)
	}
	return a, err
}

// Draft is an account to be made.
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

// maxUsernameTries bounds how often a derived username may be snatched away by another
// account that is made at the same time.
const maxUsernameTries = 20

// Create makes the account; the caller holds the lock of its address and has seen that
// there is none. Invalid (username_taken) when the sent username is another's.
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

// ErrUsernameTaken is the fault of a sent username that is another account's.
var ErrUsernameTaken = fault.Field("username", "username_taken", "username: it is taken; send another or leave it out")

// VouchedBy says whether the account came from the LMS of org and has no password, so
// that the LMS is the only way in.
func (a Account) VouchedBy(org id.Organization) bool {
	return a.CreatedVia == ViaLTI && a.CreatedBy == org && a.passwordHash == ""
}
