package edge

import (
	"fmt"
	"slices"
	"strings"
)

// maxUnread bounds how many fields are warned of by name.
const maxUnread = 10

// Unread warns of the fields that nobody has read, with the nearest of those that somebody has: a
// misspelt field is ignored, and would otherwise be missed in silence (reference:
// conventions#unknown-fields). It is called when all readers are through.
func (b *Body) Unread() []string {
	var unread []string
	for _, name := range b.Names() {
		if !b.read[name] {
			unread = append(unread, name)
		}
	}
	var warnings []string
	for _, name := range unread[:min(len(unread), maxUnread)] {
		if near := b.nearest(name); near != "" {
			warnings = append(warnings, fmt.Sprintf("`%s` is not a field; did you mean `%s`?", shorten(name), near))
		} else {
			warnings = append(warnings, fmt.Sprintf("`%s` is not a field, and was ignored", shorten(name)))
		}
	}
	if more := len(unread) - maxUnread; more > 0 {
		warnings = append(warnings, fmt.Sprintf("%d more names are not fields, and were ignored", more))
	}
	return warnings
}

// shorten makes a name of at most 60 characters that can be shown within a line.
func shorten(name string) string {
	runes := []rune(strings.Trim(fmt.Sprintf("%q", name), `"`))
	if len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return string(runes)
}

// nearest is the field that a misspelt one may have meant: one that begins with it or that it begins
// with, or else the one that the fewest typing mistakes lead to; "" when none is near.
func (b *Body) nearest(name string) string {
	name = plain(name)
	if n := len(name); n < 2 || n > 60 {
		return ""
	}
	best, least := "", 2+len(name)/4 // one more than may be wrong
	known := make([]string, 0, len(b.read))
	for field := range b.read {
		known = append(known, field)
	}
	slices.Sort(known)
	for _, field := range known {
		if d := mistakes(name, plain(field)); d < least {
			best, least = field, d
		}
	}
	if best != "" {
		return best
	}
	for _, field := range known {
		if f := plain(field); len(name) > 2 && (strings.HasPrefix(f, name) || strings.HasPrefix(name, f)) {
			return field
		}
	}
	return ""
}

// plain takes firstName and first-name for first_name.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// mistakes is how many letters are wrong, missing, too many or exchanged with the next one.
func mistakes(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
