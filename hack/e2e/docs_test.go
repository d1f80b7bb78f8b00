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

	"github.com/registrar-dev/registrar/hack/internal/recording"
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
	list := command(t, "sh", "-c",
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

	root, err := stack.Root()
	must(t, err)
	readme, start := readGuide(t, filepath.Join(root, "README.md")), readGuide(t, filepath.Join(root, "docs", "quickstart.md"))
	typescript := readGuide(t, filepath.Join(root, "docs", "typescript.md"))
	commands := recording.Commands(strings.Join(typescript.scripts, ""))
	check.True(t, "at most ten commands lead to a verified webhook", len(commands) <= 10, "%q", commands)
	steps := recording.Steps(readme.text)
	var scripts []string
	for _, step := range steps {
		script := step.Command + "\n"
		if strings.Contains(step.Command, "$RECEIVER_LOG") {
			script = noorIsDone + script // a reader is slower than webhooks and mails
		}
		scripts = append(scripts, script)
	}
	scripts = slices.Concat(scripts, start.scripts)
	if _, err := stack.EnsureLocked(t.Context(), os.Stderr, "../../api-server/client/typescript"); err == nil {
		for _, script := range typescript.scripts {
			scripts = append(scripts, strings.Replace(script, "PORT=8099", fmt.Sprint("PORT=", port(t)), 1))
		}
	} else {
		t.Run("typescript.md", func(t *testing.T) { nottested.Skip(t, "its packages cannot be had from npm: %v", err) })
	}
	printed := runInOrder(t, dir, scripts)
	for i := range steps {
		steps[i].Output = recording.Shown(readable(printed[i]))
	}
	of := make([]string, len(readme.scripts)) // what each block of the README prints
	rest := printed
	for i, script := range readme.scripts {
		n := len(recording.Commands(script))
		of[i], rest = strings.Join(rest[:n], ""), rest[n:]
	}
	readme.compare(t, of)
	start.compare(t, rest)
	all := strings.Join(of, "")
	check.Contains(t, "what the README's commands print", all, `"status":"success"`, "")
	check.Contains(t, "what the README's commands print", all, `"set_password_url":"http`, "")
	compareRecording(t, filepath.Join(root, "docs", "recording.svg"), steps[1:]) // Registrar runs already when it begins
	if len(rest) > len(start.scripts) {
		check.Equal(t, "what the last command prints", printed[len(printed)-1], "enrollment.created kofi@demo-school.org IELTS Academic\n", "")
	}
	if out, err := down(t.Context()); check.NoError(t, err, "`make down` left something running: %v\n%s", err, out) {
		check.Contains(t, "what make down prints", string(out), "Everything is stopped.", "")
	}
	if out, err := down(t.Context()); check.NoError(t, err, "`make down` left something running: %v\n%s", err, out) {
		check.Contains(t, "what make down prints", string(out), "Nothing runs", "")
	}
}

// noorIsDone waits for what follows the README's call.
const noorIsDone = `until [ "$(grep -c noor@demo-school.org "$RECEIVER_LOG")" -ge 2 ] && grep -q "^Hello Noor" "$MAIL_DIR"/*; do sleep 0.1; done
`

// compareRecording holds the terminal that the README shows against what its commands have printed, or, with -update, draws it
// again.
func compareRecording(t *testing.T, file string, steps []recording.Step) {
	t.Helper()
	if *update {
		drawn, err := recording.SVG("One call for a student", "A terminal in which the commands of the README are typed. "+
			"A call makes a student, with account, membership and enrollment. The receiver has two signed webhooks, the student a welcome mail. "+
			"The same call again is answered with already_provisioned.", steps)
		must(t, err)
		must(t, os.WriteFile(file, drawn, 0o644))
		return
	}
	drawn, err := os.ReadFile(file)
	must(t, err)
	shown, err := recording.Read(drawn)
	must(t, err)
	check.Equal(check.Now(t), "number of commands that it shows", len(shown), len(steps), "")
	for i, step := range steps {
		check.Equal(t, "a command that it shows", shown[i].Command, step.Command, "")
		check.Equal(t, "what it shows of the output", constant(shown[i].Output), constant(step.Output), "of %s", step.Command)
	}
}

// The commands for contributors end well in a fresh checkout.
func TestContributingIsTrue(t *testing.T) {
	t.Parallel()
	dir := checkout(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*longLimit)
	defer cancel()
	run := exec.CommandContext(ctx, "sh", "-e", "-c", commands(t, filepath.Join(dir, "CONTRIBUTING.md")))
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("a command of CONTRIBUTING.md fails: %v\n%s", err, out)
	}
}
