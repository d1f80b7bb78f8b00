package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Root finds the checkout that this process was started in: the nearest folder above that holds
// this module's go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/registrar-dev/registrar\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("run this in a checkout of Registrar")
		}
		dir = parent
	}
}

// Build compiles those of the four programs that the checkout has into root/bin, and returns that
// folder.
func Build(ctx context.Context, root string) (string, error) {
	bin := filepath.Join(root, "bin")
	args := []string{"build", "-o", bin + string(filepath.Separator)}
	for _, name := range []string{"api-server", "worker", "webhook-sender", "operator", "operator/kubectl-registrar"} {
		if _, err := os.Stat(filepath.Join(root, name, "main.go")); err == nil {
			args = append(args, "./"+name)
		}
	}
	if len(args) == 3 {
		return bin, nil
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, bytes.TrimSpace(out))
	}
	return bin, nil
}
