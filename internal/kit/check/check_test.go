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
		{"slices", func(t check.TB) bool { return check.Slices(t, "s", []int{1, 2}, []int{1, 2}, "x") }, ""},
		{"other slices", func(t check.TB) bool { return check.Slices(t, "s", []int{2, 1}, []int{1, 2}, "x") }, "s is []int{2, 1}, want []int{1, 2}: x"},
		{"one of", func(t check.TB) bool { return check.OneOf(t, "n", 2, []int{1, 2}, "x") }, ""},
		{"none of", func(t check.TB) bool { return check.OneOf(t, "n", 3, []int{1, 2}, "x") }, "n is 3, want one of [1 2]: x"},
		{"contains", func(t check.TB) bool { return check.Contains(t, "s", "abc", "b", "x") }, ""},
		{"contains not", func(t check.TB) bool { return check.Contains(t, "s", "abc", "d", "x") }, `s is "abc", want "d" in it: x`},
		{"lacks", func(t check.TB) bool { return check.Lacks(t, "s", "abc", "d", "x") }, ""},
		{"lacks not", func(t check.TB) bool { return check.Lacks(t, "s", "abc", "b", "x") }, `s is "abc", want no "b" in it: x`},
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
			failures, failed := "[]", c.want != ""
			if failed {
				failures = fmt.Sprint([]string{c.want})
			}
			check.Equal(t, "what the fact returns", holds, !failed, "%s", c.name)
			check.Equal(t, "failures", fmt.Sprint(r.failures), failures, "%s", c.name)
			check.Equal(t, "the test has ended", r.ended, now && failed, "%s, now: %t", c.name, now)
		}
	}
}
