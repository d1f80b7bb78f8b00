package student

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// maxUsername is in characters (reference: limits#fields).
const maxUsername = 150

// ParseUsername reads a sent username. Usernames keep their case and are unique without
// regard to it. Invalid when it is too long or has refused characters.
func ParseUsername(text string) (string, error) {
	text = norm.NFKC.String(strings.TrimSpace(text))
	switch n := utf8.RuneCountInString(text); {
	case n == 0 || strings.IndexFunc(text, refused) >= 0:
		return "", fault.Field("username", "invalid_username", "username: use letters, digits and @ . + - _ only")
	case n > maxUsername:
		return "", fault.Field("username", "too_long", "username: %d characters are too many; send at most %d", n, maxUsername)
	}
	return text, nil
}

// CheckUsername refuses a username in the form of an email address that is not the student's own:
// whether it is taken would tell whether that address has an account. Invalid, with the field
// "username".
func CheckUsername(username string, own Email) error {
	if address, err := ParseEmail(username); err == nil && address != own && !DerivedFrom(username, own) {
		return fault.Field("username", "not_own_address",
			"username: an email address as the username can only be the student's own; send that one, another username or none")
	}
	return nil
}

// DerivedFrom says whether the username is the one that an account of the address gets by itself.
// Whether it is taken must not show either, as addresses of others may lead to the same one.
func DerivedFrom(username string, address Email) bool {
	return strings.EqualFold(username, usernameFor(address))
}

func refused(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@.+-_", r)
}

// usernameFor derives a username from the address.
func usernameFor(e Email) string {
	name := strings.Map(func(r rune) rune {
		if refused(r) {
			return '_'
		}
		return r
	}, norm.NFKC.String(string(e)))
	return cut(name, maxUsername)
}

// freeUsername is base, or else base-2, base-3 and so on: the first that is not among
// the taken names, which are in lower case.
func freeUsername(base string, taken map[string]bool) string {
	name := base
	for n := 2; taken[strings.ToLower(name)]; n++ {
		suffix := "-" + strconv.Itoa(n)
		name = cut(base, maxUsername-len(suffix)) + suffix
	}
	return name
}

func cut(s string, chars int) string {
	if r := []rune(s); len(r) > chars {
		return string(r[:chars])
	}
	return s
}
