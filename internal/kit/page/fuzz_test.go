package page

import (
	"bytes"
	"encoding/base64"
	"slices"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// A cursor that is taken is one that was made, to the letter; with the right signature,
// whatever it signs is read or refused.
func FuzzDecode(f *testing.F) {
	key, list := bytes.Repeat([]byte{7}, 32), List{Organization: 7, Name: "results", Filters: []string{"kind=test"}}
	for _, p := range []Position{nil, {0}, {1, -1}, {1 << 62, -1 << 63}} {
		f.Add(encode(key, list, p))
	}
	f.Add("")
	f.Add("AQEH")
	f.Add(encode(key, List{Organization: 8, Name: "results"}, Position{1}))
	f.Fuzz(func(t *testing.T, cursor string) {
		if p, err := decode(key, list, cursor); err == nil {
			check.Equal(t, "the cursor of what is read", encode(key, list, p), cursor, "%v", p)
		}
		signed := append(head(list), cursor...)
		text := base64.RawURLEncoding.EncodeToString(append(slices.Clone(signed), sign(key, signed)...))
		if p, err := decode(key, list, text); err == nil {
			check.True(t, "no more numbers are read than there are bytes", len(p) <= len(cursor), "%d numbers of %d bytes", len(p), len(cursor))
		}
	})
}
