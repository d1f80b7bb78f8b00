package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const poolerStartsWithin = 20 * time.Second

// PgBouncerOptions say which server to run, and for whom.
type PgBouncerOptions struct {
	Server      string // pgbouncer
	Port        int
	LogFile     string
	User        *User  // see ServiceUser
	DatabaseURL string // the owner's, of PostgreSQL itself; the programs' roles get through as well
}

// PgBouncer is a connection pooler on 127.0.0.1 in transaction mode, as its package configures it otherwise.
type PgBouncer struct {
	*Program

	dir string
	url string
}

// EnsurePgBouncer finds the server, or installs it as EnsureServers does.
func EnsurePgBouncer(ctx context.Context) (server string, err error) {
	if err := ensure(ctx, os.Stderr, needPgBouncer); err != nil {
		return "", err
	}
	return needPgBouncer.find(), nil
}

// StartPgBouncer starts the server and returns once it leads to the database.
func StartPgBouncer(ctx context.Context, o PgBouncerOptions) (*PgBouncer, error) {
	u, err := url.Parse(o.DatabaseURL)
	if err != nil {
		return nil, err
	}
	dir, err := TempDir(ctx, o.User)
	if err != nil {
		return nil, err
	}
	users := filepath.Join(dir, "users")
	password, _ := u.User.Password()
	known := fmt.Appendf(nil, "%q %q\n", u.User.Username(), password)
	for _, program := range pg.Programs {
		known = fmt.Appendf(known, "%q %q\n", pg.RoleOf(RolePrefix, program), password)
	}
	if err := os.WriteFile(users, known, 0o644); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
max_client_conn = 1000
`, u.Hostname(), u.Port(), o.Port, users)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	u.Host = hostPort(o.Port)
	p := &PgBouncer{dir: dir, url: u.String()}
	p.Program = NewProgram(Command{Name: "pgbouncer", Path: o.Server, Args: []string{file}, Dir: dir, LogFile: o.LogFile, User: o.User})
	return p, p.Start(ctx)
}

// Start starts a stopped or killed server again.
func (p *PgBouncer) Start(ctx context.Context) error {
	return p.startUntil(ctx, poolerStartsWithin, func(ctx context.Context) error { return connects(ctx, p.url) })
}

// URL is the database's address through the pooler.
func (p *PgBouncer) URL() string { return p.url }

// Close ends the server and removes its files.
func (p *PgBouncer) Close() error { return errors.Join(p.Stop(), os.RemoveAll(p.dir)) }
