package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const postgresStartsWithin = time.Minute

// PostgresOptions say which server to run and where it keeps its data.
type PostgresOptions struct {
	Bin      string // the folder of initdb and postgres
	Dir      string // the data; made at the first start
	Port     int
	LogFile  string
	Password string   // of the superuser; "": whoever reaches the port is let in
	Durable  bool     // commits survive a power cut; false trades that for speed
	User     *User    // who owns the data and runs the server; see ServiceUser
	Settings []string // further "name=value", stronger than all others
}

// Postgres is a PostgreSQL server on 127.0.0.1. Stop is an orderly end; Kill is an immediate one,
// after which the next Start recovers from the log as after a crash.
type Postgres struct {
	*Program

	options PostgresOptions
}

// StartPostgres makes the data folder if there is none, starts the server, and returns once it
// takes connections.
func StartPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	if _, err := os.Stat(filepath.Join(o.Dir, "PG_VERSION")); errors.Is(err, os.ErrNotExist) {
		if err := initPostgres(ctx, o); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	p := &Postgres{options: o}
	p.Program = NewProgram(Command{
		Name:        "postgres",
		Path:        filepath.Join(o.Bin, "postgres"),
		Args:        o.arguments(),
		Env:         append(os.Environ(), "LC_ALL=C"),
		Dir:         o.Dir,
		LogFile:     o.LogFile,
		User:        o.User,
		StopSignal:  syscall.SIGINT, // "fast": open transactions are rolled back
		CrashSignal: syscall.SIGQUIT,
	})
	return p, p.Start(ctx)
}

// arguments are the whole configuration: postgresql.conf stays as initdb made it.
func (o PostgresOptions) arguments() []string {
	args := []string{
		"-D", o.Dir,
		"-p", strconv.Itoa(o.Port),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", // their paths are limited to some hundred bytes
		"-c", "max_connections=500",
		"-c", "shared_buffers=256MB",
	}
	if !o.Durable {
		args = append(args,
			"-c", "fsync=off",
			"-c", "synchronous_commit=off",
			"-c", "full_page_writes=off",
			"-c", "wal_level=minimal", // copies of a template database are not written twice
			"-c", "max_wal_senders=0",
		)
	}
	for _, s := range o.Settings {
		args = append(args, "-c", s)
	}
	return args
}

func initPostgres(ctx context.Context, o PostgresOptions) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	args := []string{"-D", o.Dir, "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions"}
	if !o.Durable {
		args = append(args, "--no-sync")
	}
	if err := o.User.own(o.Dir); err != nil {
		return err
	}
	if o.Password == "" {
		args = append(args, "--auth=trust")
	} else {
		file, err := passwordFile(o)
		if err != nil {
			return err
		}
		defer os.Remove(file)
		args = append(args, "--auth=scram-sha-256", "--pwfile="+file)
	}
	return o.run(ctx, "initdb", args...)
}

// run runs a program of PostgreSQL's as the server's user.
func (o PostgresOptions) run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(o.Bin, name), args...)
	cmd.Dir = o.Dir
	cmd.SysProcAttr = childAttributes(syscall.SIGTERM, o.User)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, strings.TrimSpace(out.String()))
	}
	return nil
}

// passwordFile hands the superuser's password to initdb: a command line would show it to everybody.
func passwordFile(o PostgresOptions) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(o.Dir), ".password-*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(o.Password + "\n")
	return f.Name(), errors.Join(err, f.Close(), o.User.own(f.Name()))
}

// Freeze halts the server and all its processes in the middle of what they do, as a machine that hangs
// would: connections stay open, and nobody answers. Thaw lets them go on.
func (p *Postgres) Freeze() error { return p.signalAll(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (p *Postgres) Thaw() error { return p.signalAll(syscall.SIGCONT) }

// signalAll signals the server, and the processes that it has started, which have groups of their own.
func (p *Postgres) signalAll(s syscall.Signal) error {
	if err := p.Signal(s); err != nil {
		return err
	}
	p.mu.Lock()
	server := p.run.identity.PID
	p.mu.Unlock()
	all, err := procfs.AllProcs()
	if err != nil {
		return err
	}
	for _, one := range all {
		if stat, err := one.Stat(); err == nil && stat.PPID == server { // others may just have ended
			if err := syscall.Kill(one.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}

// Start starts a stopped or killed server again, on the same port with the same data.
func (p *Postgres) Start(ctx context.Context) error {
	return p.startUntil(ctx, postgresStartsWithin, func(ctx context.Context) error { return connects(ctx, p.URL("postgres")) })
}

// connects fails unless a connection to the database can be made.
func connects(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// URL is the superuser's connection URL for a database.
func (p *Postgres) URL(database string) string {
	return p.urlOf("postgres", p.options.Password, database)
}

func (p *Postgres) urlOf(user, password, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(user),
		Host:     fmt.Sprintf("127.0.0.1:%d", p.options.Port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// EnsureDatabase makes a database with an owner of the same name who is not a superuser, unless
// they exist, and returns the owner's connection URL. The programs' roles (RoleURL) have the same
// password; they may do nothing yet.
func (p *Postgres) EnsureDatabase(ctx context.Context, name, password string) (string, error) {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	roles := []string{name}
	for _, program := range pg.Programs {
		roles = append(roles, pg.RoleOf(RolePrefix, program))
	}
	for _, role := range roles {
		if err := ensureRole(ctx, conn, role, password); err != nil {
			return "", err
		}
	}
	return p.urlOf(name, password, name), ensureOwned(ctx, conn, name)
}

// EnsureSandboxes makes the database beside which sandboxes have theirs, with an owner who may make databases and
// nothing in those of others, unless they exist, and returns the owner's connection URL.
func (p *Postgres) EnsureSandboxes(ctx context.Context, name, password string) (string, error) {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if err := ensureRole(ctx, conn, name, password); err != nil {
		return "", err
	}
	if _, err := conn.Exec(ctx, "ALTER ROLE "+pgx.Identifier{name}.Sanitize()+" CREATEDB"); err != nil {
		return "", err
	}
	return p.urlOf(name, password, name), ensureOwned(ctx, conn, name)
}

func ensureOwned(ctx context.Context, conn *pgx.Conn, name string) error {
	var exists bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists)
	if quoted := (pgx.Identifier{name}).Sanitize(); err == nil && !exists {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+quoted+" OWNER "+quoted)
	}
	return err
}

func ensureRole(ctx context.Context, conn *pgx.Conn, name, password string) error {
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, name).Scan(&exists); err != nil {
		return err
	}
	verb := "CREATE"
	if exists {
		verb = "ALTER"
	}
	_, err := conn.Exec(ctx, verb+" ROLE "+pgx.Identifier{name}.Sanitize()+" LOGIN PASSWORD '"+strings.ReplaceAll(password, "'", "''")+"'")
	return err
}

// PostgresDir chooses the folder for a server's data: below state, or, when the user who runs the
// server may not enter that, one in /var/tmp that belongs to this checkout. The second result says
// that it had to move.
func PostgresDir(ctx context.Context, state string, u *User) (string, bool, error) {
	if u.canEnter(ctx, state) {
		return filepath.Join(state, "postgres"), false, nil
	}
	dir := filepath.Join("/var/tmp", fmt.Sprintf("registrar-%016x", hashOf(state)))
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", true, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", true, err
	}
	// The name can be guessed: a folder that somebody else made there is not used.
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(owner.Uid) != os.Geteuid() {
		return "", true, fmt.Errorf("%s belongs to somebody else", dir)
	}
	return filepath.Join(dir, "postgres"), true, nil
}

// TempDir makes a folder for a throw-away server's data, which the caller removes.
func TempDir(ctx context.Context, u *User) (string, error) {
	parent := os.TempDir()
	if !u.canEnter(ctx, parent) {
		parent = "/var/tmp"
	}
	return tempDirIn(parent)
}

func tempDirIn(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "registrar-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) // the user of the server must pass through it
}

// own gives a file or folder to the user; to nobody, when there is no other user.
func (u *User) own(name string) error {
	if u == nil {
		return nil
	}
	return os.Chown(name, int(u.UID), int(u.GID))
}

// canEnter reports whether the user may reach what lies in dir.
func (u *User) canEnter(ctx context.Context, dir string) bool {
	if u == nil {
		return true
	}
	cmd := exec.CommandContext(ctx, "test", "-x", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.credential()}
	cmd.Dir = "/"
	return cmd.Run() == nil
}
