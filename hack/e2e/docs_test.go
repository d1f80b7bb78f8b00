package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// shell finds the commands of a page: the blocks fenced as sh.
var shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

func commands(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	var script strings.Builder
	for _, block := range shell.FindAllStringSubmatch(string(text), -1) {
		script.WriteString(block[1])
	}
	if script.Len() == 0 {
		t.Fatalf("%s has no commands", page)
	}
	return script.String()
}

// checkout copies what git knows of this checkout, and what it does not ignore, to a
// folder of its own: the commands of a page start and stop a whole Registrar there.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := stack.Root()
	must(t, err)
	dir := t.TempDir()
	list := exec.CommandContext(t.Context(), "sh", "-c",
		`git ls-files -z --cached --others --exclude-standard | xargs -0 -I{} sh -c 'test ! -e "$1" || printf "%s\0" "$1"' _ {} | tar --null -T - -cf - | tar -C "$0" -xf -`, dir)
	list.Dir = root
	if out, err := list.CombinedOutput(); err != nil {
		t.Fatalf("copying the checkout: %v\n%s", err, out)
	}
	return dir
}

func TestTheREADMEIsTrue(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	down := func(ctx context.Context) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "make", "down")
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	defer func() { _, _ = down(context.WithoutCancel(t.Context())) }()
	run := exec.CommandContext(ctx, "sh", "-e", "-c", commands(t, filepath.Join(dir, "README.md")))
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("a command of the README fails: %v\n%s", err, out)
	}
	if check.Contains(t, "the output", string(out), `"status":"success"`, "the call of the README does not provision:\n%s", out) {
		check.Contains(t, "the output", string(out), `"set_password_url":"http`, "the call of the README does not provision:\n%s", out)
	}
	if out, err := down(ctx); check.NoError(t, err, "`make down` left something running: %v\n%s", err, out) {
		check.Contains(t, "the output", string(out), "Nothing runs", "`make down` left something running: %v\n%s", err, out)
	}
}

// The commands for contributors end well in a fresh checkout.
func TestContributingIsTrue(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, "sh", "-e", "-c", commands(t, filepath.Join(dir, "CONTRIBUTING.md")))
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("a command of CONTRIBUTING.md fails: %v\n%s", err, out)
	}
}
