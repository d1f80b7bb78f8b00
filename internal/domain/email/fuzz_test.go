package email

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// No name is shown with the parts of an address beside each other, in any way to write it.
func FuzzSafeName(f *testing.F) {
	for _, seed := range []string{"Ana", "Dr. Ana", "https://evil.test/x", "www.evil", "help@evil.test", "evil。test", "evil․test", "help＠evil", "a\r\nBcc: b@c.d",
		"a\u2028b.c", "ｈｔｔｐ：／／evil", "a\u200b.b", "\u202egnp.exe", "\xff.\xfe", "李小龍", "a\u2060.\u2060b", strings.Repeat("x", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !utf8.ValidString(name) {
			return // no way in takes it
		}
		shown := []rune(safeName(name))
		run := 0
		for i, r := range shown {
			check.False(t, "a line break", breaks(r), "%q is shown as %q", name, string(shown))
			if run++; unicode.IsSpace(r) || r == gap {
				run = 0
			}
			check.True(t, "the characters without a blank", run <= longest+1, "%q is shown as %q", name, string(shown))
			if i+1 < len(shown) && strings.ContainsAny(norm.NFKC.String(string(r)), ".@:/\\") {
				next := shown[i+1]
				check.True(t, "the parts are apart", next == joiner || next == gap || unicode.IsSpace(next), "%q is shown as %q", name, string(shown))
			}
		}
	})
}
