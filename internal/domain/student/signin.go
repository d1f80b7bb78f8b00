package student

import (
	"context"
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

// SignIn finds whose email address or username and password these are, and remembers the
// moment as the last sign-in. Unauthenticated (ErrSignIn) otherwise, after the same work
// whether there is such an account or not. An address wins over a username that reads
// like it.
func SignIn(ctx context.Context, q pg.Querier, name, password string, now time.Time) (Account, error) {
	email, err := ParseEmail(name)
	if err != nil {
		email = "" // then it can only be a username
	}
	a, err := selectByName(ctx, q, email, usernameOf(name))
	if err != nil && !pg.None(err) {
		return Account{}, err
	}
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

func usernameOf(name string) string { return norm.NFKC.String(strings.TrimSpace(name)) }

// SignInName is one text for all spellings of a name that SignIn takes for the same.
func SignInName(name string) string {
	if email, err := ParseEmail(name); err == nil {
		return string(email)
	}
	return strings.ToLower(usernameOf(name))
}

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
// the one of a; all of the person's links and sessions end. It gives a with the new password,
// for which the caller begins a new session: the one at the keyboard need not be the person if
// the password before was not the person's alone. Unauthenticated (ErrSignIn) when the
// password is not a's any more.
func ChangePassword(ctx context.Context, db *pg.DB, a Account, passwordHash string, now time.Time) (Account, error) {
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		err := lockWithPassword(ctx, tx, a.ID, a.passwordHash)
		if pg.None(err) {
			return ErrSignIn
		}
		if err != nil {
			return err
		}
		var b pg.Batch
		own(&b, a.ID, passwordHash, unchanged, now)
		return b.Send(ctx, tx)
	})
	if err == nil {
		a.passwordHash = passwordHash
	}
	return a, err
}

func errNoUser(user id.User) error {
	return fault.New(fault.NotFound, "not_found", "there is no user %d", user)
}
