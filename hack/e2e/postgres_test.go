package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
)

// ownPostgres has the options of a PostgreSQL server that this test alone uses, and may restart. Its files go with the test.
func ownPostgres(t *testing.T) stack.PostgresOptions {
	t.Helper()
	tools, err := stack.EnsureServers(t.Context(), os.Stderr)
	must(t, err)
	user, err := stack.ServiceUser()
	must(t, err)
	dir, err := stack.TempDir(t.Context(), user)
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return stack.PostgresOptions{Bin: tools.PostgresBin, User: user, Port: port(t),
		Dir: filepath.Join(dir, "postgres"), LogFile: filepath.Join(dir, "postgres.log")}
}

// startPostgres starts such a server until the test ends, with a database for Registrar, whose owner's address it returns.
func startPostgres(t *testing.T, o stack.PostgresOptions) (server *stack.Postgres, owner string) {
	t.Helper()
	server, err := stack.StartPostgres(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	owner, err = server.EnsureDatabase(t.Context(), "registrar", "secret")
	must(t, err)
	migrate(t, filepath.Dir(o.LogFile), owner)
	return server, owner
}
