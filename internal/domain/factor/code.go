package factor

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/boombuler/barcode/qr"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Codes are those of RFC 6238 that every app knows: six digits of SHA-1, a new one every 30 seconds.
// The one before and the one after are taken, too.
const (
	period = 30
	skew   = 1
)

var codes = totp.ValidateOpts{Period: period, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}

// After so many wrong codes within tryPeriod none is taken any more until it is over.
const (
	maxTries  = 10
	tryPeriod = 15 * time.Minute
)

// Seed is what an authenticator app and the site share.
type Seed struct {
	Secret string // base32, as a person can type it
	URL    string // otpauth:
}

var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewSeed draws a seed for the account of that name.
func (s *Service) NewSeed(account string) Seed {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return s.SeedOf(encoding.EncodeToString(b[:]), account)
}

// SeedOf is the seed with that secret.
func (s *Service) SeedOf(secret, account string) Seed {
	query := url.Values{"secret": {secret}, "issuer": {s.site}}
	return Seed{secret, "otpauth://totp/" + url.PathEscape(s.site+":"+account) + "?" + query.Encode()}
}

// Grouped is the secret in groups of four.
func (s Seed) Grouped() string { return grouped(s.Secret, " ") }

func grouped(text, between string) string {
	var parts []string
	for len(text) > 4 {
		parts, text = append(parts, text[:4]), text[4:]
	}
	return strings.Join(append(parts, text), between)
}

// QR is a QR code as the path of an SVG picture of Size × Size units.
type QR struct {
	Size int
	Path string
}

// QR shows the seed to the camera of a telephone.
func (s Seed) QR() (QR, error) {
	code, err := qr.Encode(s.URL, qr.M, qr.Auto)
	if err != nil {
		return QR{}, err
	}
	const margin = 4 // the quiet zone that cameras need
	size := code.Bounds().Dx()
	var path strings.Builder
	for y := range size {
		for x := range size {
			if r, _, _, _ := code.At(x, y).RGBA(); r == 0 {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+margin, y+margin)
			}
		}
	}
	return QR{size + 2*margin, path.String()}, nil
}

// step finds the time step, later than after, whose code it is; false when there is none.
func step(secret, typed string, now time.Time, after int64) (int64, bool) {
	current := now.Unix() / period
	for at := current - skew; at <= current+skew; at++ {
		code, err := totp.GenerateCodeCustom(secret, time.Unix(at*period, 0), codes)
		if err == nil && subtle.ConstantTimeCompare([]byte(code), []byte(typed)) == 1 && at > after {
			return at, true
		}
	}
	return 0, false
}

// plain is a code as it was typed, without blanks and hyphens, in capitals.
func plain(typed string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '-' {
			return -1
		}
		return unicode.ToUpper(r)
	}, typed)
}

// AddTOTP stores an authenticator app whose code shows that it has the seed. The person's first factor
// comes with recovery codes. Unauthenticated (ErrRefused) for a wrong code; Invalid on name; Conflict
// (factor_limit) for too many.
func (s *Service) AddTOTP(ctx context.Context, tx *pg.Tx, user id.User, name string, seed Seed, code string, now time.Time) (Factor, []string, error) {
	name, err := checkName(name)
	if err != nil {
		return Factor{}, nil, err
	}
	at, ok := step(seed.Secret, plain(code), now, 0)
	if !ok {
		return Factor{}, nil, ErrRefused
	}
	f := Factor{ID: newID(), Kind: TOTP, Name: name, CreatedAt: now}
	recovery, err := s.add(ctx, tx, user, f, []byte(seed.Secret), nil, at)
	return f, recovery, err
}

// CheckCode takes the present code of one of the person's authenticator apps, or a recovery code, once.
// It says whether it was one of these. Unauthenticated: ErrRefused, ErrTooMany, ErrFirstTooMany.
func (s *Service) CheckCode(ctx context.Context, user id.User, typed string, now time.Time) (recovery bool, err error) {
	tries, err := countTry(ctx, s.DB, user, now, now.Add(-tryPeriod))
	if err != nil {
		return false, err
	}
	switch {
	case tries == maxTries+1:
		return false, ErrFirstTooMany
	case tries > maxTries:
		return false, ErrTooMany
	}
	typed = plain(typed)
	recovery, err = s.takeCode(ctx, user, typed, now)
	if err == nil {
		err = forgetTries(ctx, s.DB, user)
	}
	return recovery, err
}

func (s *Service) takeCode(ctx context.Context, user id.User, typed string, now time.Time) (recovery bool, err error) {
	apps, err := selectApps(ctx, s.DB, user)
	if err != nil {
		return false, err
	}
	for _, app := range apps {
		secret, err := s.Box.Open(ctx, app.Sealed, place(app.ID))
		if err != nil {
			return false, err
		}
		at, ok := step(string(secret), typed, now, app.LastStep)
		if !ok {
			continue
		}
		taken, err := takeStep(ctx, s.DB, app.ID, at, now)
		if err != nil || taken {
			return false, err
		}
	}
	taken, err := takeRecoveryCode(ctx, s.DB, user, seal.Hash(typed))
	if err == nil && !taken {
		err = ErrRefused
	}
	return taken, err
}

// recoveryCodes is how many a person gets. Each has 80 random bits.
const recoveryCodes = 10

// newRecoveryCodes replaces the person's recovery codes.
func newRecoveryCodes(ctx context.Context, tx *pg.Tx, user id.User) ([]string, error) {
	shown, hashes := make([]string, recoveryCodes), make([][]byte, recoveryCodes)
	for i := range shown {
		var b [10]byte
		_, _ = rand.Read(b[:]) // never fails
		text := encoding.EncodeToString(b[:])
		shown[i], hashes[i] = grouped(text, "-"), seal.Hash(text)
	}
	return shown, errors.Join(deleteRecoveryCodes(ctx, tx, user), insertRecoveryCodes(ctx, tx, user, hashes))
}

// ReplaceRecoveryCodes gives a person who has factors new recovery codes; the others end.
func ReplaceRecoveryCodes(ctx context.Context, tx *pg.Tx, user id.User) ([]string, error) {
	if err := lockPerson(ctx, tx, user); err != nil {
		return nil, err
	}
	return newRecoveryCodes(ctx, tx, user)
}
