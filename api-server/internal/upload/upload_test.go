package upload

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestOnlyTheRequestsOwnEndIsItsFault(t *testing.T) {
	for name, c := range map[string]struct {
		body   io.Reader
		broken bool
	}{
		"a body that comes to its end":      {strings.NewReader("a,b\n"), false},
		"a body that breaks off":            {io.MultiReader(strings.NewReader("a,"), iotest.ErrReader(io.ErrUnexpectedEOF)), true},
		"a body whose connection times out": {iotest.TimeoutReader(strings.NewReader("a,b\nc,d\n")), false},
	} {
		u := &upload{Reader: iotest.OneByteReader(c.body)}
		_, err := io.Copy(io.Discard, u)
		if check.Equal(t, "u.broken", u.broken, c.broken, "%s: broken = %t, want %t (%v)", name, u.broken, c.broken, err) {
			check.Equal(t, "u.broken", u.broken, errors.Is(err, io.ErrUnexpectedEOF), "%s: broken = %t, want %t (%v)", name, u.broken, c.broken, err)
		}
	}
}
