// Package check holds the facts of a test, one a call, so that a failure says which one is wrong:
// what was got, what was wanted, and the context that the test gives.
//
//	if check.NoError(t, err, "import") &&
//		check.Equal(t, "len(mails)", len(mails), 1, "%q", mails) {
//		check.True(t, "has a link", strings.Contains(mails[0], "/set-password/"), "%s", mails[0])
//	}
package check

import (
	"fmt"
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
