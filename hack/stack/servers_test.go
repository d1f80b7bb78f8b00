package stack_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func freePort(t *testing.T) int {
	t.Helper()
	port, err := stack.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// startPostgres runs a throw-away server in a folder that its user may enter.
func startPostgres(t *testing.T, o stack.PostgresOptions) *stack.Postgres {
	t.Helper()
	tools, err := stack.EnsureServers(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	user, err := stack.ServiceUser()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := stack.TempDir(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o.Bin, o.User, o.Port = tools.PostgresBin, user, freePort(t)
	o.Dir, o.LogFile = filepath.Join(dir, "data"), filepath.Join(dir, "log")
	server, err := stack.StartPostgres(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestPostgresKeepsItsDataThroughStopAndCrash(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, stack.PostgresOptions{Durable: true, Password: "it's a secret"})
	url, err := server.EnsureDatabase(t.Context(), "registrar", "owner's")
	if err != nil {
		t.Fatal(err)
	}
	if query[bool](t, url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") {
		t.Error("the database's owner is a superuser")
	}
	if got := query[string](t, server.URL("postgres"), "SHOW fsync"); got != "on" {
		t.Errorf("fsync = %s on a durable server", got)
	}
	query[uint32](t, url, "SELECT lo_create(4711)")

	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := server.EnsureDatabase(t.Context(), "registrar", "owner's")
	if check.NoError(t, err, "EnsureDatabase again = %q, %v; want %q", again, err, url) {
		check.Equal(t, "again", again, url, "EnsureDatabase again = %q, %v; want %q", again, err, url)
	}
	if got := query[int](t, url, "SELECT count(*)::int FROM pg_largeobject_metadata WHERE oid = 4711"); got != 1 {
		t.Errorf("after a stop and a crash %d of 1 objects are left", got)
	}
}

func TestThrowAwayPostgresWaitsForNoDisk(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, stack.PostgresOptions{})
	if got := query[string](t, server.URL("postgres"), "SHOW fsync"); got != "off" {
		t.Errorf("fsync = %s", got)
	}
}

func TestRedisForgetsAndComesBackOnItsPort(t *testing.T) {
	t.Parallel()
	tools, err := stack.EnsureServers(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o := stack.RedisOptions{Server: tools.RedisServer, Port: freePort(t), LogFile: filepath.Join(t.TempDir(), "log")}
	r, err := stack.StartRedis(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Stop() })
	options, err := redis.ParseURL(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	for _, end := range []func() error{r.Stop, r.Kill} {
		if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Ping(t.Context()).Result(); err == nil {
			t.Fatal("it answers after its end")
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, err := client.Exists(t.Context(), "key").Result(); check.NoError(t, err, "after a new start: %d keys, %v", n, err) {
			check.Equal(t, "n", n, 0, "after a new start: %d keys, %v", n, err)
		}
	}
}

func TestPostgresDirMovesOutOfAFolderThatItsUserMayNotEnter(t *testing.T) {
	t.Parallel()
	user, err := stack.ServiceUser()
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state") // below a folder of mode 0700
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, moved, err := stack.PostgresDir(t.Context(), state, user)
	if err != nil {
		t.Fatal(err)
	}
	if moved {
		t.Cleanup(func() { _ = os.Remove(filepath.Dir(dir)) })
	}
	if moved != (user != nil) {
		t.Errorf("moved = %v to %s for user %v", moved, dir, user)
	}
}
