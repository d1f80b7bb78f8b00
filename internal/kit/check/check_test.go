package check_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// recorder is a test that notes its failures.
type recorder struct {
	failures []string
	ended    bool
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) FailNow() { r.ended = true }

func TestFacts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		fact func(check.TB) bool
		want string // the failure; "": none
	}{
		{"equal", func(t check.TB) bool { return check.Equal(t, "n", 1, 1, "x") }, ""},
		{"not equal", func(t check.TB) bool { return check.Equal(t, "s", "a", "b", "of %d", 7) }, `s is "a", want "b": of 7`},
		{"true", func(t check.TB) bool { return check.True(t, "ok", true, "x") }, ""},
		{"not true", func(t check.TB) bool { return check.True(t, "ok", false, "x") }, "not so: ok: x"},
		{"false", func(t check.TB) bool { return check.False(t, "ok", false, "x") }, ""},
		{"not false", func(t check.TB) bool { return check.False(t, "ok", true, "x") }, "so, and should not be: ok: x"},
		{"no error", func(t check.TB) bool { return check.NoError(t, nil, "x") }, ""},
		{"an error", func(t check.TB) bool { return check.NoError(t, errors.New("lost"), "x") }, "lost: x"},
	} {
		for _, now := range []bool{false, true} {
			r := &recorder{}
			var tb check.TB = r
			if now {
				tb = check.Now(r)
			}
			holds := c.fact(tb)
			if got := fmt.Sprint(r.failures); check.Equal(t, "holds", holds, (c.want == ""), "%s: %v, %s", c.name, holds, got) {
				check.False(t, "got != fmt.Sprint([]string{c.want}) && c.want != \"\"", got != fmt.Sprint([]string{c.want}) && c.want != "", "%s: %v, %s", c.name, holds, got)
			}
			if r.ended != (now && c.want != "") {
				t.Errorf("%s: ended %v", c.name, r.ended)
			}
		}
	}
}
