// Package nottested skips tests that a machine cannot run, and has `make test` say so at its end.
package nottested

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// File is the environment variable that names the file in which Skip writes.
const File = "REGISTRAR_NOT_TESTED"

// Skipper is a *testing.T.
type Skipper interface {
	Helper()
	Name() string
	Skipf(format string, args ...any)
}

// Skip skips a test that this machine cannot run, and notes it in File. Without the note nobody
// would see it: go test says "ok" of a skipped test.
func Skip(t Skipper, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if name := os.Getenv(File); name != "" {
		if err := appendLine(name, t.Name()+": "+why); err != nil {
			why += "; which was not noted: " + err.Error()
		}
	}
	t.Skipf("NOT TESTED: %s", why)
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the developer names the file
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// Read returns what was skipped, a line each, sorted and without repeats.
func Read(name string) ([]string, error) {
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return slices.Compact(lines), err
}
