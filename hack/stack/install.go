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
	RedisServer string // "": Redis runs inside the process that needs it
	Chromium    string // "": none; what needs a browser says so
	Prometheus  string // "": none; promtool is beside it
	PHP         string // "": none; runs the documented program of its own
}

// A need is one of the Tools, and how Debian calls its package.
type need struct {
	name, debian string
	found        func(Tools) bool
}

var (
	needPostgres   = need{"PostgreSQL (initdb and postgres)", "postgresql", func(t Tools) bool { return t.PostgresBin != "" }}
	needRedis      = need{"Redis (redis-server)", "redis-server", func(t Tools) bool { return t.RedisServer != "" }}
	needPrometheus = need{"Prometheus", "prometheus", func(t Tools) bool { return t.Prometheus != "" }}
	needPHP        = need{"PHP", "php-cli", func(t Tools) bool { return t.PHP != "" }}
	needChromium   = need{"Chromium", "chromium", func(t Tools) bool { return t.Chromium != "" }}
)

// EnsureServers finds PostgreSQL and Redis. What is missing is installed where this process is root
// and there is apt-get; elsewhere PostgreSQL is fetched as an archive, and Redis runs in-process.
// The error names what to install.
func EnsureServers(ctx context.Context, out io.Writer) (Tools, error) {
	return ensure(ctx, out, needPostgres, needRedis)
}

// EnsureAll also finds a browser, Prometheus and PHP. Without one its field is empty, which is not an error.
func EnsureAll(ctx context.Context, out io.Writer) (Tools, error) {
	return ensure(ctx, out, needPostgres, needRedis, needChromium, needPrometheus, needPHP)
}

func ensure(ctx context.Context, out io.Writer, needs ...need) (Tools, error) {
	tools := look()
	missing := slices.DeleteFunc(needs, func(n need) bool { return n.found(tools) })
	if len(missing) == 0 {
		return tools, nil
	}
	if _, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		if err := aptInstall(ctx, out, missing); err != nil {
			return tools, err
		}
		tools = look()
		missing = slices.DeleteFunc(missing, func(n need) bool { return n.found(tools) })
	}
	return fallBack(ctx, out, tools, missing)
}

// look finds what is there: on PATH, and where Debian keeps the servers of each PostgreSQL version.
func look() Tools {
	return Tools{
		PostgresBin: findPostgres(),
		RedisServer: firstOnPath("redis-server", "valkey-server"),
		Chromium:    firstOnPath("chromium", "chromium-browser", "google-chrome"),
		Prometheus:  firstOnPath("prometheus"),
		PHP:         firstOnPath("php"),
	}
}

func firstOnPath(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
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
	packages := make([]string, len(missing))
	for i, n := range missing {
		packages[i] = n.debian
	}
	fmt.Fprintf(out, "Installing %s with apt-get; this is done once.\n", strings.Join(packages, ", "))
	release, err := forbidServiceStart()
	if err != nil {
		return err
	}
	defer release()
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, append([]string{"install", "-y", "--no-install-recommends"}, packages...)...)
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

// fallBack does without a package manager what can be done without one.
func fallBack(ctx context.Context, out io.Writer, tools Tools, missing []need) (Tools, error) {
	for _, n := range missing {
		switch n.debian {
		case needPostgres.debian:
			bin, err := fetchPostgres(ctx, out)
			if err != nil {
				return tools, fmt.Errorf("%w\n%s", err, howToInstall(missing))
			}
			tools.PostgresBin = bin
		case needRedis.debian:
			fmt.Fprintln(out, "No redis-server on PATH: a small Redis runs in-process instead. Good for a look, not for load.")
		case needChromium.debian:
			fmt.Fprintln(out, "No Chromium on PATH: tests that need a browser will say so.")
		case needPrometheus.debian:
			fmt.Fprintln(out, "No Prometheus on PATH: tests that need it will say so.")
		case needPHP.debian:
			fmt.Fprintln(out, "No PHP on PATH: the test that needs it will say so.")
		}
	}
	return tools, nil
}

func howToInstall(missing []need) string {
	names, packages := make([]string, len(missing)), make([]string, len(missing))
	for i, n := range missing {
		names[i], packages[i] = n.name, n.debian
	}
	return fmt.Sprintf("Missing: %s. Install and put on PATH; on Debian and Ubuntu: sudo apt-get install -y %s",
		strings.Join(names, ", "), strings.Join(packages, " "))
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
