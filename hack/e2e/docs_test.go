package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
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

// A reader who follows the README in a new clone, then the quick start, and then the way to a verified webhook in
// TypeScript, sees exactly what the pages show.
func TestTheWayFromANewCloneIsTrue(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	down := func(ctx context.Context) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "make", "down")
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	defer func() { _, _ = down(context.WithoutCancel(t.Context())) }()

	readme, start := readGuide(t, filepath.Join(dir, "README.md")), readGuide(t, filepath.Join(dir, "docs", "quickstart.md"))
	typescript := readGuide(t, filepath.Join(dir, "docs", "typescript.md"))
	check.True(t, "at most ten commands lead to a verified webhook", steps(typescript.scripts) <= 10, "%d", steps(typescript.scripts))
	scripts := slices.Concat(readme.scripts, start.scripts)
	if _, err := stack.EnsureLocked(t.Context(), os.Stderr, "../../api-server/client/typescript"); err == nil {
		for _, script := range typescript.scripts {
			scripts = append(scripts, strings.Replace(script, "PORT=8099", fmt.Sprint("PORT=", port(t)), 1))
		}
	} else {
		t.Run("typescript.md", func(t *testing.T) { nottested.Skip(t, "its packages cannot be had from npm: %v", err) })
	}
	printed := runInOrder(t, dir, scripts)
	readme.compare(t, printed[:len(readme.scripts)])
	start.compare(t, printed[len(readme.scripts):])
	all := strings.Join(printed[:len(readme.scripts)], "")
	check.Contains(t, "what the README's commands print", all, `"status":"success"`, "")
	check.Contains(t, "what the README's commands print", all, `"set_password_url":"http`, "")
	if len(scripts) > len(readme.scripts)+len(start.scripts) {
		check.Equal(t, "what the last command prints", printed[len(printed)-1], "enrollment.created kofi@demo-school.org IELTS Academic\n", "")
	}
	if out, err := down(t.Context()); check.NoError(t, err, "`make down` left something running: %v\n%s", err, out) {
		check.Contains(t, "what make down prints", string(out), "Everything is stopped.", "")
	}
	if out, err := down(t.Context()); check.NoError(t, err, "`make down` left something running: %v\n%s", err, out) {
		check.Contains(t, "what make down prints", string(out), "Nothing runs", "")
	}
}

// steps is how many commands a reader types or pastes: lines that continue no other.
func steps(scripts []string) (n int) {
	for _, script := range scripts {
		continues := false
		for line := range strings.Lines(script) {
			if line = strings.TrimSpace(line); !continues && line != "" {
				n++
			}
			continues = strings.HasSuffix(line, `\`) || strings.HasSuffix(line, "|")
		}
	}
	return n
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
