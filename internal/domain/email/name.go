package email

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// longest is how many characters of a name may follow each other without a blank.
const longest = 60

// joiner and gap take no room. A mail program makes no link of what they part.
const (
	joiner = '\u2060' // WORD JOINER
	gap    = '\u200b' // ZERO WIDTH SPACE, where a line may break
)

// safeName is a person's name as a mail shows it, in its texts and headers: what a mail program would
// make a link of, is none (reference: students#names). The name stays as readable as it is. It holds
// characters outside ASCII then, so that a header has it encoded.
func safeName(name string) string {
	if risky(name) {
		name = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(name, "\uFFFD"), breaks), " "+string(joiner))
		return parted(name)
	}
	return name
}

// risky says whether a name has an address or a line break in it, or many characters without a blank.
func risky(name string) bool {
	runes, run := []rune(name), 0
	for i, r := range runes {
		if run++; unicode.IsSpace(r) {
			run = 0
		}
		if breaks(r) || r == '@' || run > longest || joins(r) && i+1 < len(runes) && !unicode.IsSpace(runes[i+1]) {
			return true
		}
	}
	return false
}

// joins says whether a character stands between the parts of an address, however wide it is written.
func joins(r rune) bool { return strings.ContainsAny(norm.NFKC.String(string(r)), ".@:/\\\u3002") }

func breaks(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

func parted(name string) string {
	var b strings.Builder
	run := 0
	for _, r := range name {
		if unicode.IsSpace(r) {
			run = 0
		}
		if run == longest {
			b.WriteRune(gap)
			run = 0
		}
		b.WriteRune(r)
		if run++; joins(r) {
			b.WriteRune(joiner)
		}
	}
	return b.String()
}

// fullName is the name of a header.
func (s Student) fullName() string {
	return safeName(strings.TrimSpace(s.FirstName + " " + s.LastName))
}
