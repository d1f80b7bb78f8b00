package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tools are the servers and programs of other projects that this machine has.
type Tools struct {
	PostgresBin string // the folder of initdb and postgres
	RedisServer string
	Chromium    string // "": none; what needs a browser says so
	Prometheus  string // "": none; promtool is beside it
	PHP         string // "": none; runs the documented program of its own
}

// A need is something of another project, with the name of its Debian package. find says where it
// is; "" when it is missing.
type need struct {
	name, debian string
	find         func() string
}

var (
	needPostgres   = need{"PostgreSQL (initdb and postgres)", "postgresql", findPostgres}
	needRedis      = need{"Redis (redis-server)", "redis-server", onPath("redis-server", "valkey-server")}
	needPgBouncer  = need{"PgBouncer", "pgbouncer", onPath("pgbouncer", "/usr/sbin/pgbouncer")}
	needPatroni    = need{"Patroni", "patroni", onPath("patroni")}
	needPythonEtcd = need{"Patroni's module for etcd", "python3-etcd", onDisk("/usr/lib/python3/dist-packages/etcd")}
	needEtcd       = need{"etcd", "etcd-server", onPath("etcd")}
	needHAProxy    = need{"HAProxy", "haproxy", onPath("haproxy", "/usr/sbin/haproxy")}
	needPrometheus = need{"Prometheus", "prometheus", onPath("prometheus")}
	needPHP        = need{"PHP", "php-cli", onPath("php")}
	needChromium   = need{"Chromium", "chromium", onPath("chromium", "chromium-browser", "google-chrome")}
)

// EnsureServers finds PostgreSQL and Redis. What is missing is installed where this process is root
// and there is apt-get; elsewhere the error names what to install.
func EnsureServers(ctx context.Context, out io.Writer) (Tools, error) {
	err := ensure(ctx, out, needPostgres, needRedis)
	return Tools{PostgresBin: needPostgres.find(), RedisServer: needRedis.find()}, err
}

// EnsureAll also finds a browser, Prometheus and PHP. Without one its field is empty, which is not an error.
func EnsureAll(ctx context.Context, out io.Writer) (Tools, error) {
	tools, err := EnsureServers(ctx, out)
	if err != nil {
		return tools, err
	}
	if err := ensure(ctx, out, needChromium, needPrometheus, needPHP, needPgBouncer, needPatroni, needPythonEtcd, needEtcd, needHAProxy); err != nil {
		fmt.Fprintln(out, "Tests that need what is missing will say so:", err)
	}
	tools.Chromium, tools.Prometheus, tools.PHP = needChromium.find(), needPrometheus.find(), needPHP.find()
	return tools, nil
}

func ensure(ctx context.Context, out io.Writer, needs ...need) error {
	found := func(n need) bool { return n.find() != "" }
	missing := slices.DeleteFunc(needs, found)
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		if err := aptInstall(ctx, out, missing); err != nil {
			return err
		}
		missing = slices.DeleteFunc(missing, found)
	}
	if len(missing) == 0 {
		return nil
	}
	var names []string
	for _, n := range missing {
		names = append(names, n.name)
	}
	return fmt.Errorf("missing: %s; on Debian and Ubuntu: sudo apt-get install -y %s", strings.Join(names, ", "), strings.Join(packages(missing), " "))
}

// packages are the Debian packages of what is missing.
func packages(missing []need) []string {
	all := make([]string, len(missing))
	for i, n := range missing {
		all[i] = n.debian
	}
	return all
}

func onPath(names ...string) func() string {
	return func() string {
		for _, name := range names {
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
		return ""
	}
}

func onDisk(path string) func() string {
	return func() string {
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return path
	}
}

func findPostgres() string {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && hasPostgres(filepath.Dir(path)) {
			return filepath.Dir(path)
		}
	}
	bins, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return ""
	}
	bins = slices.DeleteFunc(bins, func(bin string) bool { return !hasPostgres(bin) })
	if len(bins) == 0 {
		return ""
	}
	return slices.MaxFunc(bins, func(a, b string) int { return majorOf(a) - majorOf(b) })
}

func hasPostgres(bin string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return false
		}
	}
	return true
}

// majorOf reads the version out of /usr/lib/postgresql/15/bin.
func majorOf(bin string) int {
	major, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	if err != nil {
		return 0
	}
	return major
}

// aptInstall installs Debian packages without letting their services start: the stack runs servers
// of its own, and a machine's ports are not ours to take.
func aptInstall(ctx context.Context, out io.Writer, missing []need) error {
	names := packages(missing)
	fmt.Fprintf(out, "Installing %s with apt-get; this is done once.\n", strings.Join(names, ", "))
	release, err := forbidServiceStart()
	if err != nil {
		return err
	}
	defer release()
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, append([]string{"install", "-y", "--no-install-recommends"}, names...)...)
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, lastLines(out.String(), 20))
	}
	return nil
}

// forbidServiceStart is Debian's own way to install a server without starting it: policy-rc.d is
// asked before every start. One that is there already is left alone, and ours is removed again.
func forbidServiceStart() (release func(), err error) {
	const policy = "/usr/sbin/policy-rc.d"
	f, err := os.OpenFile(policy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString("#!/bin/sh\nexit 101\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(policy))
	}
	return func() { _ = os.Remove(policy) }, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
