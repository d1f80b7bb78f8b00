// Command sdk generates the TypeScript client's calls and types from the partner API's document, into a folder that
// it makes again.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/registrar-dev/registrar/hack/stack"
)

//go:generate go run . ../../../api-server/client/typescript/src/generated

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("say which folder")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		fmt.Fprintln(os.Stderr, "There is no npm, so the TypeScript client stays as it is; the tests say whether it is stale.")
		return nil
	}
	root, err := stack.Root()
	if err != nil {
		return err
	}
	npm := filepath.Join(root, "hack/openapi/npm")
	modules, err := stack.EnsureLocked(ctx, os.Stderr, npm)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sdk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config, err := os.ReadFile(filepath.Join(npm, "openapi-ts.config.mjs"))
	if err != nil {
		return err
	}
	show := exec.CommandContext(ctx, "go", "run", "./api-server/internal/openapi/document")
	show.Dir, show.Stderr = root, os.Stderr
	document, err := show.Output()
	if err != nil {
		return fmt.Errorf("the document: %w", err)
	}
	err = errors.Join(os.Symlink(modules, filepath.Join(dir, "node_modules")),
		os.WriteFile(filepath.Join(dir, "openapi-ts.config.mjs"), config, 0o600), os.WriteFile(filepath.Join(dir, "partner.yaml"), document, 0o600))
	if err != nil {
		return err
	}
	generate := exec.CommandContext(ctx, filepath.Join(modules, ".bin", "openapi-ts"), "-f", "openapi-ts.config.mjs", "--no-log-file", "-s")
	generate.Dir = dir
	if out, err := generate.CombinedOutput(); err != nil {
		return fmt.Errorf("openapi-ts: %w\n%s", err, out)
	}
	if err := os.RemoveAll(args[0]); err != nil {
		return err
	}
	return os.CopyFS(args[0], os.DirFS(filepath.Join(dir, "sdk")))
}
