package pgtest

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Dump is what pg_dump says of the database.
func Dump(t testing.TB, db *pg.DB) string {
	t.Helper()
	program, err := exec.LookPath("pg_dump")
	if err != nil {
		installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump") // the pattern is well formed
		if len(installed) == 0 {
			t.Fatalf("%v: it comes with PostgreSQL", err)
		}
		slices.Sort(installed)
		program = installed[len(installed)-1]
	}
	out, err := exec.CommandContext(t.Context(), program, db.Config().ConnString()).Output() //nolint:gosec // PostgreSQL's program
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return string(out)
}
