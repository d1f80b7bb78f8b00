package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestAnArchiveHoldsWhatWasPacked(t *testing.T) {
	at := time.Date(2026, time.December, 1, 10, 0, 0, 0, time.UTC)
	in := files{"LICENSE": []byte("text"), "folder/file": bytes.Repeat([]byte("long "), 10_000), "program": []byte("run")}
	for name, pack := range map[string]func() ([]byte, error){
		"a.tar.gz": func() ([]byte, error) { return in.tgz(at, "program") },
		"a.zip":    func() ([]byte, error) { return in.zip(at) },
	} {
		content, err := pack()
		must(t, err)
		again, err := pack()
		must(t, err)
		check.True(t, "the same bytes", bytes.Equal(content, again), "%s", name)
		file := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(file, content, 0o600))
		out, err := unpack(file)
		must(t, err)
		check.True(t, "what went in came out", maps.EqualFunc(in, out, bytes.Equal), "%s", name)
		must(t, os.WriteFile(file, content[:len(content)-20], 0o600))
		_, err = unpack(file)
		refused(t, err, name)
	}
}
