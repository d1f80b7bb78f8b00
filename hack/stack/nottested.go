package stack

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// NotTestedFile is the environment variable that names the file in which NotTested writes.
const NotTestedFile = "REGISTRAR_NOT_TESTED"

// Skipper is a *testing.T.
type Skipper interface {
	Helper()
	Name() string
	Skipf(format string, args ...any)
}

// NotTested skips a test that this machine cannot run. `make test` says so in its end: go test
// by itself keeps it to itself.
func NotTested(t Skipper, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if name := os.Getenv(NotTestedFile); name != "" {
		if err := appendLine(name, t.Name()+": "+why); err != nil {
			why += "; and nobody is told: " + err.Error()
		}
	}
	t.Skipf("NOT TESTED: %s", why)
}

func appendLine(name, line string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// ReadNotTested gives what was skipped, a line each, in order and once.
func ReadNotTested(name string) ([]string, error) {
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return slices.Compact(lines), err
}
