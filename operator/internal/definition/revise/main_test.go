package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/internal/definition"
)

// root is the folder of the repository.
const root = "../../../../"

// record is where the repository's revisions are.
const record = root + "operator/internal/definition/revisions.txt"

// copied makes copies of the record and of the definitions.
func copied(t *testing.T) (revisions, folder string) {
	t.Helper()
	revisions, folder = filepath.Join(t.TempDir(), "revisions.txt"), t.TempDir()
	check.NoError(check.Now(t), os.WriteFile(revisions, read(t, record), 0o600), "")
	check.NoError(check.Now(t), os.CopyFS(folder, os.DirFS(root+"config/crd/bases")), "")
	return revisions, folder
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	check.NoError(check.Now(t), err, "")
	return text
}

func revisionOf(t *testing.T, revisions, name string) int {
	t.Helper()
	all, err := definition.Parse(string(read(t, revisions)))
	check.NoError(check.Now(t), err, "")
	for _, d := range all {
		if d.Name == name {
			return d.Revision
		}
	}
	return 0
}

// What is generated is what is there: a definition that was changed has another revision.
func TestTheDefinitionsHaveTheirRevisions(t *testing.T) {
	revisions, folder := copied(t)
	check.NoError(check.Now(t), revise(revisions, folder), "")
	check.Equal(t, "the record", string(read(t, revisions)), string(read(t, record)), "go generate ./operator/...")
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	check.NoError(t, err, "")
	check.True(t, "there are definitions", len(files) >= 5, "%d", len(files))
	for _, file := range files {
		for _, of := range []string{"config/crd/bases", "charts/registrar/files/crds"} {
			check.True(t, "the definition is as generated", bytes.Equal(read(t, file), read(t, filepath.Join(root, of, filepath.Base(file)))), "%s in %s: go generate ./operator/...", file, of)
		}
	}
}

func TestRevisionsAreCounted(t *testing.T) {
	revisions, folder := copied(t)
	const name = "apikeys.registrar.dev"
	file, chart := filepath.Join(folder, "registrar.dev_apikeys.yaml"), t.TempDir()
	was := revisionOf(t, revisions, name)
	replace := func(this, that string) {
		t.Helper()
		text := read(t, file)
		check.True(check.Now(t), "it is there", bytes.Contains(text, []byte(this)), "%s", this)
		check.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte(this), []byte(that)), 0o600), "")
		check.NoError(check.Now(t), revise(revisions, folder, chart), "")
	}
	replace("ApiKey is", "An ApiKey is")
	check.Equal(t, "the revision", revisionOf(t, revisions, name), was, "with another description")
	replace("- rkey\n", "- regkey\n")
	check.Equal(t, "the revision", revisionOf(t, revisions, name), was+1, "with another field")
	check.Equal(t, "the copy", string(read(t, filepath.Join(chart, filepath.Base(file)))), string(read(t, file)), "")
	replace("- regkey\n", "- rkey\n") // a revision that is back is newer, too
	check.Equal(t, "the revision", revisionOf(t, revisions, name), was+2, "")
	check.Equal(t, "of others", revisionOf(t, revisions, "organizations.registrar.dev"), revisionOf(t, record, "organizations.registrar.dev"), "")
}
