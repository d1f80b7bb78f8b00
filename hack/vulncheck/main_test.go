package main

import (
	"archive/zip"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

const index = `{"modified": "2026-11-20T10:30:00Z"}`

func TestADatabaseIsFoundWhereverItIs(t *testing.T) {
	dir := t.TempDir()
	folder, file := filepath.Join(dir, "folder"), filepath.Join(dir, "vulndb.zip")
	if err := os.MkdirAll(filepath.Join(folder, "index"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, indexFile), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	zipped, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(zipped)
	if err := w.AddFS(os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	for _, name := range []string{folder, "file://" + folder, file, server.URL, server.URL + "/"} {
		work := t.TempDir()
		address, modified, err := locate(t.Context(), name, work)
		check.NoError(t, err, "%s", name)
		check.Equal(t, "modified", modified, time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC), "%s", name)
		want := name
		switch name {
		case folder:
			want = "file://" + folder
		case file:
			want = "file://" + work
		}
		check.Equal(t, "address", address, want, "%s", name)
	}
}

func TestWithoutADatabaseNothingIsChecked(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	empty := filepath.Join(t.TempDir(), "empty.zip")
	if err := os.WriteFile(empty, []byte("no zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(t.TempDir(), "missing"), t.TempDir(), empty, server.URL} {
		err := run(t.Context(), name)
		if err == nil {
			t.Fatalf("%s passes", name)
		}
		for _, want := range []string{"no vulnerability database, so nothing was checked", "/vulndb.zip", "GOVULNDB="} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in:\n%v", name, want, err)
			}
		}
	}
}
