package student

import (
	"context"
	"crypto/rand"
	_ "embed"
	"math/big"
	"runtime"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/unicode/norm"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Lengths of a password, in characters, and how many of them must differ.
const (
	minPassword  = 8
	maxPassword  = 128
	minDifferent = 5
)

// CheckPassword applies the platform's password rules for the person: 8 to 128
// characters of which 5 differ, no blank at either end, not digits alone, not a common one, not like
// the person's email, username or name. Invalid, with the field "password"; the password is never part of the fault.
func CheckPassword(password string, email Email, username, firstName, lastName string) error {
	bad := func(code, text string) error { return fault.Field("password", code, "password: %s", text) }
	password = norm.NFC.String(password) // as it is hashed
	n := utf8.RuneCountInString(password)
	switch {
	case n < minPassword:
		return bad("password_too_short", "too short; use at least 8 characters")
	case n > maxPassword:
		return bad("password_too_long", "too long; use at most 128 characters")
	case !utf8.ValidString(password) || strings.IndexFunc(password, breaksLines) >= 0:
		return bad("password_invalid", "contains control characters; use letters, digits, signs and blanks")
	case strings.TrimSpace(password) != password: // nobody sees them in a mail, or copies them
		return bad("password_outer_blanks", "begins or ends with a blank; send it without")
	case strings.Trim(password, "0123456789") == "":
		return bad("password_only_digits", "digits alone are too easy to guess; add letters or signs")
	case different(password) < minDifferent:
		return bad("password_too_uniform", "too few different characters; use at least 5 different ones")
	case commonPasswords()[strings.ToLower(strings.TrimSpace(password))]:
		return bad("password_too_common", "one of the most common passwords; choose another")
	case similar(password, string(email), username, firstName, lastName, firstName+lastName):
		return bad("password_too_similar", "too similar to the email address, username or name; choose another")
	}
	return nil
}

// different counts the characters of a text that differ.
func different(text string) int {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return len(seen)
}

// breaksLines says whether a character cannot be shown within a line.
func breaksLines(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// similar says whether the password is mostly one of the texts or of their words.
func similar(password string, texts ...string) bool {
	p := []rune(strings.ToLower(password))
	for _, t := range texts {
		t = strings.ToLower(t)
		words := strings.FieldsFunc(t, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		local, _, _ := strings.Cut(t, "@")
		for _, w := range append(words, t, local) {
			r := []rune(w)
			if 20*common(p, r) >= 7*(len(p)+len(r)) { // two thirds and a bit: 0.7 of both together
				return true
			}
		}
	}
	return false
}

// common is the length of the longest common subsequence.
func common(a, b []rune) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// commonList holds the passwords of 8 characters and more, and not of digits alone, among
// the 20,000 most frequent of the known leaks (Royce Williams's list of 2018, as Django
// ships it), sorted, in lower case.
//
//go:embed common-passwords.txt
var commonList string

var commonPasswords = sync.OnceValue(func() map[string]bool {
	set := make(map[string]bool, 8100)
	for line := range strings.Lines(commonList) {
		set[strings.TrimSpace(line)] = true
	}
	return set
})

// argon is OWASP's first choice: 19 MiB and two passes, one lane.
var argon = &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}

// CheapHashes makes new hashes cost next to nothing until the process ends. It is for tests, and package
// archtest holds that nothing else calls it. Call it before the first hash.
func CheapHashes() {
	argon = &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
}

// hashing bounds how many hashes the process computes at once: each takes a core for
// tens of milliseconds, and 19 MiB.
var hashing = make(chan struct{}, min(runtime.GOMAXPROCS(0), 4))

// HashPassword makes the stored form of a password, of which it is one however its accents were
// typed (NFC). It waits for its turn and computes
// for tens of milliseconds: never call it in a transaction.
func HashPassword(ctx context.Context, password string) (string, error) {
	var hash string
	err := hashTurn(ctx, func() (err error) {
		hash, err = argon2id.CreateHash(norm.NFC.String(password), argon)
		return err
	})
	return hash, err
}

// samePassword says whether hash was made of the password; it costs what HashPassword
// does. The empty hash is of no password.
func samePassword(ctx context.Context, password, hash string) (bool, error) {
	if hash == "" {
		return false, nil
	}
	var same bool
	err := hashTurn(ctx, func() (err error) {
		same, err = argon2id.ComparePasswordAndHash(norm.NFC.String(password), hash)
		return err
	})
	return same, err
}

func hashTurn(ctx context.Context, compute func() error) error {
	select {
	case hashing <- struct{}{}:
		defer func() { <-hashing }()
		return compute()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// alphabet of generated passwords: no characters that are read for one another.
const alphabet = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// GeneratePassword draws 14 characters, 81 random bits, with at least one small letter,
// one capital and one digit.
func GeneratePassword() string {
	for {
		var b strings.Builder
		for range 14 {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
			if err != nil {
				panic(err) // crypto/rand never fails
			}
			b.WriteByte(alphabet[n.Int64()])
		}
		if p := b.String(); strings.ContainsAny(p, "23456789") && strings.ToLower(p) != p && strings.ToUpper(p) != p {
			return p
		}
	}
}
