package student

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Name is what an organization calls a person.
type Name struct {
	User      id.User
	FirstName string
	LastName  string
}

// SetNames queues what org calls people whom it takes in and who have an account already
// (reference: students#names). Names that it has for somebody stay; people of whom it has none get
// these. It comes before the membership in the batch, which would enter the person without names.
func SetNames(b *pg.Batch, org id.Organization, names ...Name) {
	if len(names) == 0 {
		return
	}
	users, first, last := make([]id.User, len(names)), make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		users[i], first[i], last[i] = n.User, n.FirstName, n.LastName
	}
	queueNames(b, org, users, first, last)
}

// maxName is in characters (reference: limits#fields).
const maxName = 150

// CheckName applies the rules of names to the first_name or last_name that field is (reference:
// students#names). A mail program would make a link of an address in a name, in a mail that other
// people trust. Invalid, with the field.
func CheckName(field, name string) error {
	lower := strings.ToLower(norm.NFKC.String(name))
	switch n := utf8.RuneCountInString(name); {
	case n > maxName:
		return fault.Field(field, "too_long", "%s: %d characters are too many; send at most %d", field, n, maxName)
	case strings.IndexFunc(name, breaksLines) >= 0:
		return fault.Field(field, "invalid", "%s: contains control characters, such as a line break; remove them", field)
	case strings.Contains(lower, "http") || strings.Contains(lower, "www.") || strings.Contains(lower, "//"):
		return fault.Field(field, "link_in_name", "%s: contains a link (http, www. or //); send the name alone", field)
	}
	return nil
}
