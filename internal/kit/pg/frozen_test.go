package pg_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// A migration never changes once it is on main: databases that have applied it would differ
// from those that apply it later.
func TestMigrationsAreFrozen(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("migrations/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(list)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS: %q is not a line of sha256sum", line)
		}
		want[name] = sum
	}
	names, err := fs.Glob(pg.Migrations, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(pg.Migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		switch got := hex.EncodeToString(sum[:]); want[name] {
		case got:
		case "":
			t.Errorf("%s is new: add this line to migrations/SHA256SUMS once it is as it shall stay:\n%s  %[1]s", name, got)
		default:
			t.Errorf("%s has changed; write another migration instead", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s is gone; a migration stays", name)
	}
}
