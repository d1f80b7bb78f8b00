// Package factor is what people show beside their password, or instead of it: the code of an
// authenticator app (TOTP), a passkey, a recovery code.
//
// A person may have several of each, with names. A code and a recovery code follow the password; a
// passkey, whose device has asked for a fingerprint or a PIN, stands alone. Each code is taken once:
// the time step of the last one is kept, and a recovery code is deleted. Wrong codes are counted in
// PostgreSQL, as the limits of requests fail open.
//
// Factors belong to the person and not to an organization. An organization says which of its roles
// need one (Policy).
package factor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Kind is what a factor is.
type Kind string

// The kinds.
const (
	TOTP    Kind = "totp"    // an authenticator app
	Passkey Kind = "passkey" // of a device, a password manager or a security key
)

// Factor is one that a person has.
type Factor struct {
	ID         uuid.UUID
	Kind       Kind
	Name       string
	CreatedAt  time.Time
	LastUsedAt *time.Time
}

// Label is the factor in words: authenticator app “Telephone”.
func (f Factor) Label() string {
	kind := "passkey"
	if f.Kind == TOTP {
		kind = "authenticator app"
	}
	return kind + " “" + f.Name + "”"
}

// Has says whether one of the factors is of the kind.
func Has(all []Factor, k Kind) bool {
	for _, f := range all {
		if f.Kind == k {
			return true
		}
	}
	return false
}

// most is how many factors a person may have, maxName how many characters a name.
const (
	most    = 10
	maxName = 60
)

// Service adds and checks factors.
type Service struct {
	DB  *pg.DB
	Box *seal.Box

	site    string             // what authenticators call it
	relying *webauthn.WebAuthn // nil: the site can have no passkeys
}

// ErrRefused is the one answer to a code, recovery code or passkey that is not taken: wrong, used
// before, too old, or another person's.
var ErrRefused = fault.New(fault.Unauthenticated, "wrong_factor", "this code or passkey is not accepted")

// ErrTooMany answers a person's tries while there were too many wrong ones, ErrFirstTooMany the first of them.
var (
	ErrTooMany      = fault.New(fault.Unauthenticated, "too_many_codes", "there were too many wrong codes; wait a few minutes")
	ErrFirstTooMany = fmt.Errorf("from now on: %w", ErrTooMany)
)

func checkName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n < 1 || n > maxName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return "", fault.Field("name", "invalid", "Give it a name of 1 to %d characters.", maxName)
	}
	return name, nil
}

// add stores a new factor. The person's first one comes with recovery codes.
func (s *Service) add(ctx context.Context, tx *pg.Tx, user id.User, f Factor, plain, credential []byte, step int64) ([]string, error) {
	sealed, err := s.Box.Seal(ctx, plain, place(f.ID))
	if err != nil {
		return nil, err
	}
	if err := lockPerson(ctx, tx, user); err != nil {
		return nil, err
	}
	there, err := Of(ctx, tx, user)
	if err != nil {
		return nil, err
	}
	if len(there) >= most {
		return nil, fault.New(fault.Conflict, "factor_limit", "You have %d of them already. Remove one first.", most)
	}
	if err := insert(ctx, tx, user, f, sealed, credential, step); err != nil {
		if pg.Violates(err, "factors_credential_id_key") {
			return nil, fault.New(fault.Conflict, "factor_exists", "This passkey is in use already.")
		}
		return nil, err
	}
	if len(there) > 0 {
		return nil, nil
	}
	return newRecoveryCodes(ctx, tx, user)
}

// Remove removes one of the person's factors; with the last one the recovery codes go. NotFound when
// the person has no such factor.
func Remove(ctx context.Context, tx *pg.Tx, user id.User, which uuid.UUID) (f Factor, left int, err error) {
	if err := lockPerson(ctx, tx, user); err != nil {
		return f, 0, err
	}
	if f, err = remove(ctx, tx, user, which); err != nil {
		if pg.None(err) {
			err = fault.New(fault.NotFound, "not_found", "you have no such way to sign in")
		}
		return f, 0, err
	}
	all, err := Of(ctx, tx, user)
	if err == nil && len(all) == 0 {
		err = deleteRecoveryCodes(ctx, tx, user)
	}
	return f, len(all), err
}

// RemoveAll takes all factors and recovery codes of a person who has lost them, and says which.
func RemoveAll(ctx context.Context, tx *pg.Tx, user id.User) ([]Factor, error) {
	if err := lockPerson(ctx, tx, user); err != nil {
		return nil, err
	}
	all, err := Of(ctx, tx, user)
	if err != nil {
		return nil, err
	}
	return all, errors.Join(removeAll(ctx, tx, user), deleteRecoveryCodes(ctx, tx, user))
}

func place(which uuid.UUID) string { return "factors/" + which.String() }

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
