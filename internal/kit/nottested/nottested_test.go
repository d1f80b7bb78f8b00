package nottested_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// skipper is a test that is skipped.
type skipper struct{ name, why string }

func (s *skipper) Helper()                          {}
func (s *skipper) Name() string                     { return s.name }
func (s *skipper) Skipf(format string, args ...any) { s.why = fmt.Sprintf(format, args...) }

func TestWhatIsNotTestedIsSaidOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "not-tested")
	if lines, err := nottested.Read(file); check.Equal(t, "number of lines", len(lines), 0, "nothing was skipped: %q, %v", lines, err) {
		check.NoError(t, err, "nothing was skipped: %q, %v", lines, err)
	}
	t.Setenv(nottested.File, file)
	node, rules := &skipper{name: "TestTheChartOnANode"}, &skipper{name: "TestAlerts"}
	for range 2 {
		nottested.Skip(node, "this machine cannot be a node: %v", errors.New("no root\nhere"))
	}
	nottested.Skip(rules, "no promtool on PATH")
	if want := "NOT TESTED: no promtool on PATH"; rules.why != want {
		t.Errorf("skipped with %q, want %q", rules.why, want)
	}
	want := []string{"TestAlerts: no promtool on PATH", "TestTheChartOnANode: this machine cannot be a node: no root here"}
	if lines, err := nottested.Read(file); check.Slices(t, "lines", lines, want, "%q, %v; want %q", lines, err, want) {
		check.NoError(t, err, "%q, %v; want %q", lines, err, want)
	}
}
