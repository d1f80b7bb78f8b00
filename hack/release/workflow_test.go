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

- What [came](docs/README.md).

## [1.2.2] - 2026-11-30

- What was there.
`

func TestReleaseNotesAreTheVersionsPartOfTheChangelog(t *testing.T) {
	for _, c := range []struct {
		version    string
		final      bool
		want       string
		unreleased bool
	}{
		{"1.2.3", true, "### Added\n\n- What [came](https://github.com/registrar-dev/registrar/blob/v1.2.3/docs/README.md).\n", false},
		{"1.2.2", false, "- What was there.\n", false},
		{"1.2.4", false, "A trial of version 1.2.4: these are the unreleased changes.\n\n- Not yet.\n", true},
		{"1.2.4", true, "", false},
		{"1.2", true, "", false},
	} {
		got, unreleased, err := notesOf(changes, c.version, c.final)
		check.Equal(t, "the notes", got, c.want, "%+v: %v", c, err)
		check.Equal(t, "they are the unreleased changes", unreleased, c.unreleased, "%+v", c)
		check.Equal(t, "the version is refused", err != nil, c.want == "", "%+v: %v", c, err)
	}
}

// The workflow makes the release by the program that anybody has, publishes what that has left in dist, and no step of it is a
// shell that stumbles.
func TestTheWorkflowReleasesWhatTheProgramMakes(t *testing.T) {
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	workflow, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`make release VERSION="$VERSION" ARGS="-final -install=false `, `make release VERSION="$VERSION" ARGS="-final -built `, "done < dist/" + imagesFile,
		"dist/$program-$VERSION.tar", "dist/$program-$arch.spdx.json", "dist/registrar-$VERSION.tgz", "--notes-file dist/" + notesFile + " dist/*", "--bundle dist/" + sumsBundle + " dist/" + sumsFile} {
		check.Contains(t, "the workflow", string(workflow), want, "")
	}
	check.False(t, "the workflow builds by itself", regexp.MustCompile(`go (build|run)|helm package|make images|npm `).Match(workflow), "")
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
