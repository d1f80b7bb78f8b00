// Package version says of which release a program is.
package version

import (
	"fmt"
	"runtime"
	"slices"
)

// What the linker sets in a released program (hack/internal/program), with -X.
var number, revision, day string

// Number is the release's, such as 1.2.3; "" for a program that was built otherwise.
func Number() string { return number }

// Line says of which release the called program is, such as "worker 1.2.3 (4e7208e1c2aa of 2026-12-01, go1.26.1)".
func Line(program string) string {
	if number == "" {
		return fmt.Sprintf("%s of no release (%s)", program, runtime.Version())
	}
	return fmt.Sprintf("%s %s (%s of %s, %s)", program, number, revision, day, runtime.Version())
}

// Asked reports whether a program's arguments ask for its version alone.
func Asked(args []string) bool {
	return len(args) == 1 && slices.Contains([]string{"version", "--version", "-version"}, args[0])
}
