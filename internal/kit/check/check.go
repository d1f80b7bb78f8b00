// Package check holds the facts of a test, one a call, so that a failure says which one is wrong:
// what was got, what was wanted, and the context that the test gives.
//
//	if check.NoError(t, err, "import") &&
//		check.Equal(t, "number of mails", len(mails), 1, "%q", mails) {
//		check.Contains(t, "the mail", mails[0], "/set-password/", "sent to %s", address)
//	}
package check

import (
	"fmt"
	"slices"
	"strings"
)

// TB is what the checks need of a *testing.T, or of a *rapid.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// Now ends the test with the first fact that is wrong.
func Now(t TB) TB { return ending{t} }

type ending struct{ TB }

func (e ending) Errorf(format string, args ...any) {
	e.Helper()
	e.TB.Errorf(format, args...)
	e.FailNow()
}

// Equal says whether got is want. what names the fact; the context is a format with its arguments.
func Equal[T comparable](t TB, what string, got, want T, context string, args ...any) bool {
	t.Helper()
	if got == want {
		return true
	}
	t.Errorf("%s is %#v, want %#v: %s", what, got, want, fmt.Sprintf(context, args...))
	return false
}

// Slices says whether got has the elements of want, in their order.
func Slices[T comparable](t TB, what string, got, want []T, context string, args ...any) bool {
	t.Helper()
	if slices.Equal(got, want) {
		return true
	}
	t.Errorf("%s is %#v, want %#v: %s", what, got, want, fmt.Sprintf(context, args...))
	return false
}

// OneOf says whether got is one of want.
func OneOf[T comparable](t TB, what string, got T, want []T, context string, args ...any) bool {
	t.Helper()
	if slices.Contains(want, got) {
		return true
	}
	t.Errorf("%s is %#v, want one of %v: %s", what, got, want, fmt.Sprintf(context, args...))
	return false
}

// Contains says whether a text has a part.
func Contains(t TB, what, text, part, context string, args ...any) bool {
	t.Helper()
	if strings.Contains(text, part) {
		return true
	}
	t.Errorf("%s is %q, want %q in it: %s", what, text, part, fmt.Sprintf(context, args...))
	return false
}

// Lacks says whether a text does not have a part.
func Lacks(t TB, what, text, part, context string, args ...any) bool {
	t.Helper()
	if !strings.Contains(text, part) {
		return true
	}
	t.Errorf("%s is %q, want no %q in it: %s", what, text, part, fmt.Sprintf(context, args...))
	return false
}

// True says whether what holds.
func True(t TB, what string, holds bool, context string, args ...any) bool {
	t.Helper()
	if holds {
		return true
	}
	t.Errorf("not so: %s: %s", what, fmt.Sprintf(context, args...))
	return false
}

// False says whether what does not hold.
func False(t TB, what string, holds bool, context string, args ...any) bool {
	t.Helper()
	if !holds {
		return true
	}
	t.Errorf("so, and should not be: %s: %s", what, fmt.Sprintf(context, args...))
	return false
}

// NoError says whether err is nil.
func NoError(t TB, err error, context string, args ...any) bool {
	t.Helper()
	if err == nil {
		return true
	}
	t.Errorf("%v: %s", err, fmt.Sprintf(context, args...))
	return false
}
