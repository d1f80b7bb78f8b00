package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const changes = `# Changelog

## [Unreleased]

- Not yet.

## [1.2.3] - 2026-12-01

### Added

- What came.

## [1.2.2] - 2026-11-30

- What was there.
`

func TestReleaseNotesAreTheVersionsPartOfTheChangelog(t *testing.T) {
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "CHANGELOG.md")
	if err := os.WriteFile(file, []byte(changes), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"1.2.3": "### Added\n\n- What came.\n\n", "1.2.2": "- What was there.\n", "1.2": "", "1.2.4": ""} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "release-notes"), version)
		cmd.Env = append(os.Environ(), "CHANGELOG="+file)
		out, err := cmd.Output()
		check.Equal(t, "the notes", string(out), want, "%s: %v", version, err)
		check.Equal(t, "the version is refused", err != nil, want == "", "%s: %v", version, err)
	}
}

// A release has every program that there is, and no step of it is a shell that stumbles.
func TestTheReleaseHasEveryProgram(t *testing.T) {
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	workflow, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	loop := regexp.MustCompile(`for program in ([a-z -]+);`).FindSubmatch(workflow)
	if check.True(t, "programs are released", loop != nil, "%s", workflow) {
		check.Equal(t, "the programs that are released", string(loop[1]), strings.Join(programs, " "), "want those that are built")
	}
	scripts := regexp.MustCompile(`(?m)^        run: \|\n((?:          .*\n)+)`).FindAllSubmatch(workflow, -1)
	if len(scripts) < 4 {
		t.Fatalf("%d scripts found", len(scripts))
	}
	for _, script := range scripts {
		cmd := exec.CommandContext(t.Context(), "bash", "-n")
		cmd.Stdin = strings.NewReader(string(script[1]))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, script[1])
		}
	}
}

// A tag can be moved to other code after it was looked at; a commit cannot.
func TestActionsArePinned(t *testing.T) {
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	pinned := regexp.MustCompile(`^[a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range regexp.MustCompile(`uses: *(.*)`).FindAllSubmatch(text, -1) {
			if !pinned.Match(action[1]) {
				t.Errorf("%s uses %s, which is no commit with its version", filepath.Base(file), action[1])
			}
		}
	}
}
