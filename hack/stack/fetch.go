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
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "registrar")
	dir := filepath.Join(cache, "axe-core-"+axeVersion)
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if _, err := os.Stat(file); err == nil {
		return file, nil
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
	fmt.Fprintln(out, "Fetching axe-core from npm into", dir)
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", scratch, "axe-core@"+axeVersion)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, lastLines(string(text), 10))
	}
	renameErr := os.Rename(scratch, dir)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("npm has left no %s: %w", file, renameErr)
	}
	return file, nil
}
