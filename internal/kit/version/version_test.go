package version

import (
	"runtime"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestAProgramSaysOfWhichReleaseItIs(t *testing.T) {
	check.Equal(t, "the line", Line("worker"), "worker of no release ("+runtime.Version()+")", "without a release")
	number, revision, day = "1.2.3", "4e7208e1c2aa", "2026-12-01"
	t.Cleanup(func() { number, revision, day = "", "", "" })
	check.Equal(t, "the line", Line("worker"), "worker 1.2.3 (4e7208e1c2aa of 2026-12-01, "+runtime.Version()+")", "in a release")
	check.Equal(t, "the number", Number(), "1.2.3", "")
	check.True(t, "--version asks", Asked([]string{"--version"}), "")
	check.False(t, "a further argument asks", Asked([]string{"--version", "-h"}), "")
	check.False(t, "no argument asks", Asked(nil), "")
}
