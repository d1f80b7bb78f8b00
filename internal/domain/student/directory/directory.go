// Package directory finds an organization's students for its staff: by the beginning of
// their name, either way round, or of their email address. Every list is read along an
// index and ends with its page, however many people the organization or the platform has.
package directory

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Person is one student as a list shows them.
type Person struct {
	ID        id.User
	Email     string
	FirstName string
	LastName  string
	Status    string // of the membership: active or inactive; "" when there is none any more
	// LastLogin is the last sign-in; zero for none, and where the organization does not see it (student.Account.SeenBy).
	LastLogin time.Time
}

// manner is what of a person the text was found in. A search goes through them one after
// the other, and finds nobody twice.
type manner int

const (
	byName manner = iota
	bySurname
	byEmail
	manners
)

// Position is where a page ended: the next one begins behind it. The zero Position is before all.
type Position struct {
	by   manner
	last id.User
}

// String is the place in an address.
func (p Position) String() string {
	if p.last == 0 {
		return ""
	}
	return strconv.Itoa(int(p.by)) + "-" + strconv.FormatInt(int64(p.last), 10)
}

// ParsePosition reads what String wrote; anything else is the zero Position.
func ParsePosition(text string) Position {
	before, after, _ := strings.Cut(text, "-")
	by, err := strconv.Atoi(before)
	last, err2 := strconv.ParseInt(after, 10, 64)
	if err != nil || err2 != nil || by < 0 || manner(by) >= manners || last < 1 {
		return Position{}
	}
	return Position{manner(by), id.User(last)}
}

// Search lists up to limit students of the organization of whom text is the beginning of
// the name or the address, by name; the empty text lists everybody. next is where the next
// page begins, the zero Position when there is none.
func Search(ctx context.Context, q pg.Querier, org id.Organization, text string, after Position, limit int) (found []Person, next Position, err error) {
	last := manners
	if strings.TrimSpace(text) == "" {
		last = byName + 1 // everybody has a name
	}
	var places []Position
	for by := after.by; by < last && len(found) <= limit; by++ {
		more, err := selectSome(ctx, q, org, by, text, after.last, limit+1-len(found))
		if err != nil {
			return nil, Position{}, err
		}
		for _, p := range more {
			found, places = append(found, p), append(places, Position{by, p.ID})
		}
		after.last = 0
	}
	if len(found) <= limit {
		return found, Position{}, nil
	}
	return found[:limit], places[limit-1], nil
}

// Some reads those of the users who are students of the organization, by id.
func Some(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) ([]Person, error) {
	if len(users) == 0 {
		return nil, nil
	}
	return selectUsers(ctx, q, org, users)
}
