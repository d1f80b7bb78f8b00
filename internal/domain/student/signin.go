package student

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// ErrSignIn is the one answer to whatever is wrong with a sign-in, so that nobody learns
// which addresses have accounts.
var ErrSignIn = fault.New(fault.Unauthenticated, "wrong_sign_in", "the email address or username and the password do not match")

// Candidate is a name that somebody typed to sign in with, and the account that it leads to, if any.
type Candidate struct {
	Account  Account // zero for a name that leads nowhere
	spelling string
}

// ResolveName finds the account whose email address or username the name is, however it is typed:
// in capitals, in full-width or other compatible forms, or with blanks around it. An address wins
// over a username that reads like it.
func ResolveName(ctx context.Context, q pg.Querier, name string) (Candidate, error) {
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", "\uFFFD"), "\uFFFD") // PostgreSQL reads nothing else
	var emails []Email
	for _, form := range []string{name, usernameOf(name)} {
		if email, err := ParseEmail(form); err == nil {
			emails = append(emails, email) // else it can only be a username
		}
	}
	a, err := selectByName(ctx, q, emails, usernameOf(name))
	if err != nil && !pg.None(err) {
		return Candidate{}, err
	}
	return Candidate{a, spelling(name)}, nil
}

// Keys are what tries are counted by, always two, so that counting shows nothing of the account.
// The first is the same for all spellings of one name, whether it leads to an account or not. The
// second is the account's, whatever name it was called by.
func (c Candidate) Keys() [2]string {
	account := "nobody:" + c.spelling
	if c.Account.ID != 0 {
		account = "account:" + strconv.FormatInt(int64(c.Account.ID), 10)
	}
	return [2]string{"name:" + c.spelling, account}
}

// spelling is one text for a name in all of its forms. An address and the username that is derived
// from it are one name.
func spelling(name string) string {
	name = usernameOf(name)
	if email, err := ParseEmail(name); err == nil {
		name = string(email)
	}
	return strings.ToLower(usernameFor(Email(name)))
}

// SignIn compares the password with the account's, and remembers the moment as the last sign-in.
// Unauthenticated (ErrSignIn) when it is another, after the same work whether there is such an
// account or not.
func (c Candidate) SignIn(ctx context.Context, q pg.Querier, password string, now time.Time) (Account, error) {
	a := c.Account
	hash := a.passwordHash
	if hash == "" {
		hash = nobodysHash()
	}
	same, err := samePassword(ctx, password, hash)
	if err != nil {
		return Account{}, err
	}
	if !same || a.passwordHash == "" {
		return Account{}, ErrSignIn
	}
	// The password may have been replaced while it was compared.
	a, err = updateSignedIn(ctx, q, a.ID, a.passwordHash, now)
	if pg.None(err) {
		return Account{}, ErrSignIn
	}
	return a, err
}

// PasswordMark tells an account's passwords apart and shows nothing of them; "" for no password.
func (a Account) PasswordMark() string {
	if a.passwordHash == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(seal.Hash(a.passwordHash)[:12])
}

func usernameOf(name string) string { return norm.NFKC.String(strings.TrimSpace(name)) }

// nobodysHash is of a password that nobody knows, to compare with where there is none.
var nobodysHash = sync.OnceValue(func() string {
	hash, err := HashPassword(context.Background(), seal.Token())
	if err != nil {
		panic(err) // the context never ends
	}
	return hash
})

// NoteSignIn remembers a sign-in that happened elsewhere on the platform; an earlier one
// than is known changes nothing. NotFound when there is no such user.
func NoteSignIn(ctx context.Context, q pg.Querier, user id.User, at time.Time) (Account, error) {
	a, err := updateLastLogin(ctx, q, user, at)
	if pg.None(err) {
		return Account{}, errNoUser(user)
	}
	return a, err
}

// Owns says whether the password is the account's.
func (a Account) Owns(ctx context.Context, password string) (bool, error) {
	return samePassword(ctx, password, a.passwordHash)
}

// ChangePassword stores the password that a signed-in person chose, who has shown to know
// the one of a. The new one proves what that one did, as the one at the keyboard need not be the
// person, and the links and sessions end that prove no more. It gives a with the new password,
// for which the caller begins a new session. The same transaction does what is also to be done.
// Unauthenticated (ErrSignIn) when the password is not a's any more.
func ChangePassword(
	ctx context.Context, db *pg.DB, a Account, passwordHash string, now time.Time, also ...func(*pg.Tx) error,
) (Account, error) {
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		err := lockWithPassword(ctx, tx, a.ID, a.passwordHash)
		if pg.None(err) {
			return ErrSignIn
		}
		if err != nil {
			return err
		}
		var b pg.Batch
		own(&b, a.ID, passwordHash, a.Proof(), now)
		if err := b.Send(ctx, tx); err != nil {
			return err
		}
		return each(tx, also)
	})
	if err == nil {
		a.passwordHash, a.OwnPassword, a.MustChangePassword = passwordHash, true, false
	}
	return a, err
}

func each(tx *pg.Tx, also []func(*pg.Tx) error) error {
	for _, do := range also {
		if err := do(tx); err != nil {
			return err
		}
	}
	return nil
}

func errNoUser(user id.User) error {
	return fault.New(fault.NotFound, "not_found", "there is no user %d", user)
}
