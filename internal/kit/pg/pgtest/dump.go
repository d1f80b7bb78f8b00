package pgtest

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

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

// ReadDump reads a compressed dump of testdata.
func ReadDump(t testing.TB, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Restore puts a dump in the place of all that the database has, on a connection of its own: dumps change its settings.
func Restore(t testing.TB, url, dump string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.PgConn().Exec(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n"+dump).ReadAll(); err != nil {
		t.Fatal(err)
	}
}
