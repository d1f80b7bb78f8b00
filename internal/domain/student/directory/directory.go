// Package directory finds an organization's students for its staff: by the beginnings of any words of
// their names, with or without accents, or by that of their email address. Every list is read along an
// index and ends with its page, however many people the organization or the platform has.
package directory

import (
	"cmp"
	"context"
	"slices"
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
	byWords manner = iota
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

// Search lists up to limit students of the organization: everybody by name for the empty text, and else those each
// word of the text begins a word of whose name, and then those the text begins the address of. next is where the
// next page begins, the zero Position when there is none.
func Search(ctx context.Context, q pg.Querier, org id.Organization, text string, after Position, limit int) (found []Person, next Position, err error) {
	if strings.TrimSpace(text) == "" {
		found, err = selectEverybody(ctx, q, org, after.last, limit+1)
	} else {
		var s search
		if s, err = newSearch(ctx, q, org, text); err != nil {
			return nil, Position{}, err
		}
		var places []Position
		if found, places, err = s.find(ctx, q, after, limit+1); err == nil && len(found) > limit {
			return found[:limit], places[limit-1], nil
		}
	}
	if err != nil || len(found) <= limit {
		return found, Position{}, err
	}
	return found[:limit], Position{byWords, found[limit-1].ID}, nil
}

// Matches is how many students Search finds, and Most+1 for more than Most.
func Matches(ctx context.Context, q pg.Querier, org id.Organization, text string) (int, error) {
	if strings.TrimSpace(text) == "" {
		return countEverybody(ctx, q, org, Most+1)
	}
	s, err := newSearch(ctx, q, org, text)
	if err != nil {
		return 0, err
	}
	return s.count(ctx, q, Most+1)
}

// Most is up to where students are counted exactly.
const Most = 1000

// search is a text to look for.
type search struct {
	org    id.Organization
	text   string
	words  []string // plain; none in a text of punctuation
	driver string   // the one with the fewest names, along which names are read
}

// mostWords is how many words of a text are looked for, probe how many names with each are looked at to find the
// word with the fewest.
const mostWords, probe = 8, 1000

func newSearch(ctx context.Context, q pg.Querier, org id.Organization, text string) (search, error) {
	s := search{org: org, text: text}
	found, err := selectWords(ctx, q, org, text)
	if err != nil || len(found) == 0 {
		return s, err
	}
	slices.SortStableFunc(found, func(a, b probed) int {
		return cmp.Or(cmp.Compare(a.Names, b.Names), -cmp.Compare(len(a.Word), len(b.Word)))
	})
	for _, w := range found[:min(len(found), mostWords)] {
		s.words = append(s.words, w.Word)
	}
	s.driver = s.words[0]
	return s, nil
}

// find reads students behind a position, and gives each with its own.
func (s search) find(ctx context.Context, q pg.Querier, after Position, limit int) (found []Person, places []Position, err error) {
	if after.by == byWords && s.driver != "" {
		for at := (wordsPosition{last: after.last}); len(found) < limit; {
			// A name with the word twice comes twice.
			rows, err := s.selectNamed(ctx, q, at, limit)
			if err != nil {
				return nil, nil, err
			}
			for _, r := range rows {
				if at = (wordsPosition{r.Words, r.ID}); s.first(r.Words) && len(found) < limit {
					found, places = append(found, r.Person), append(places, Position{byWords, r.ID})
				}
			}
			if len(rows) < limit {
				break
			}
		}
	}
	if len(found) == limit {
		return found, places, nil
	}
	if after.by == byWords {
		after.last = 0
	}
	more, err := s.selectAddressed(ctx, q, after.last, limit-len(found))
	for _, p := range more {
		found, places = append(found, p), append(places, Position{byEmail, p.ID})
	}
	return found, places, err
}

// first says whether of the rotations of a name that begin with the word this is the first in their order.
func (s search) first(words string) bool {
	all := strings.Split(words, " ")
	for i := range all {
		if r := strings.Join(append(slices.Clone(all[i:]), all[:i]...), " "); r < words && strings.HasPrefix(r, s.driver) {
			return false
		}
	}
	return true
}

// Some reads those of the users who are students of the organization, by id.
func Some(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) ([]Person, error) {
	if len(users) == 0 {
		return nil, nil
	}
	return selectUsers(ctx, q, org, users)
}
