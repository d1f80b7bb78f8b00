package student

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Email is an address in its one canonical form: NFC, in lower case, its domain in
// ASCII. Two spellings of one address are equal. Dots and plus parts are kept, as
// whether they matter is the receiving domain's own affair.
type Email string

// maxEmail is in characters.
const maxEmail = 254

// domains maps names as a resolver would and refuses what no DNS name can be.
var domains = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// ParseEmail reads an address. Invalid, with the field "email", when it is none; the
// text is never part of the fault.
func ParseEmail(text string) (Email, error) {
	text = strings.ToLower(norm.NFC.String(strings.TrimSpace(text)))
	at := strings.LastIndexByte(text, '@')
	if at < 1 || !localPart(text[:at]) {
		return "", errEmail
	}
	domain, err := domains.ToASCII(text[at+1:])
	if err != nil || !hostName(domain) {
		return "", errEmail
	}
	canonical := norm.NFC.String(text[:at]) + "@" + domain
	if utf8.RuneCountInString(canonical) > maxEmail {
		return "", fault.Field("email", "too_long", "email: the address has more than %d characters", maxEmail)
	}
	return Email(canonical), nil
}

var errEmail = fault.Field("email", "invalid_email", "email: send one email address, such as name@institute.org")

// localPart accepts unquoted local parts, of any script.
func localPart(s string) bool {
	if len(s) > 64 || s[0] == '.' || s[len(s)-1] == '.' || strings.Contains(s, "..") {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return strings.ContainsRune(`"(),:;<>[\]@`, r) || !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError
	}) < 0
}

// hostName wants a name below a top-level domain that is not a number, or localhost.
func hostName(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	return s == "localhost" || dot > 0 && strings.Trim(s[dot+1:], "0123456789") != ""
}
