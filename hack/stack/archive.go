package stack

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/registrar-dev/registrar/hack/internal/oci"
)

// Image is a container image that is packed from files of this machine, for the local node alone.
type Image struct {
	Ref        string
	Entrypoint []string
	Env        []string
	User       string            // "uid:gid"
	StopSignal string            // "": SIGTERM
	Files      map[string]string // path inside → file or folder here
	Programs   map[string]string // the same, and what the dynamic linker loads with each
	Texts      map[string]string // path inside → content, executable
	Folders    []string          // empty ones that everybody may write to
}

// Pack writes the image as an archive that `ctr images import` understands.
func (im Image) Pack(ctx context.Context, archive string) error {
	config := v1.Config{Entrypoint: im.Entrypoint, Env: im.Env, User: im.User, StopSignal: im.StopSignal}
	packed, err := oci.Image(runtime.GOARCH, config, time.Unix(0, 0), func(w *tar.Writer) error { return im.fill(ctx, w) })
	if err == nil {
		_, err = oci.WriteArchive(archive, im.Ref, packed)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", im.Ref, err)
	}
	return nil
}

func (im Image) fill(ctx context.Context, w *tar.Writer) error {
	for _, dir := range append([]string{"tmp"}, im.Folders...) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: 0o1777}); err != nil {
			return err
		}
	}
	files := map[string]string{}
	for inside, here := range im.Files {
		files[inside] = here
	}
	for inside, here := range im.Programs {
		files[inside] = here
		libraries, err := linked(ctx, here)
		if err != nil {
			return err
		}
		for _, library := range libraries {
			files[library] = library
		}
	}
	for inside, here := range files {
		if err := addTree(w, inside, here); err != nil {
			return err
		}
	}
	for inside, text := range im.Texts {
		if err := oci.AddFile(w, inside, 0o755, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// addTree adds a file, or a folder with all in it; symbolic links become what they lead to.
func addTree(w *tar.Writer, inside, here string) error {
	real, err := filepath.EvalSymlinks(here)
	if err != nil {
		return err
	}
	return filepath.WalkDir(real, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // symbolic links are followed on purpose, in folders of this machine
		if err != nil {
			return err
		}
		return oci.AddFile(w, inside+strings.TrimPrefix(path, real), int64(info.Mode().Perm()|0o444), content)
	})
}

var loaded = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// linked lists what the dynamic linker loads for a program.
func linked(ctx context.Context, program string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "ldd", program).CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("not a dynamic executable")) {
		return nil, fmt.Errorf("ldd %s: %w %s", program, err, out)
	}
	var all []string
	for _, m := range loaded.FindAllSubmatch(out, -1) {
		all = append(all, string(m[1]))
	}
	return all, nil
}

const postgresEntrypoint = `#!/bin/sh
set -e
umask 077
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --no-locale --no-sync --no-instructions
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single -D "$PGDATA" postgres > /dev/null
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql
`

// PostgresImage is this machine's PostgreSQL as an image that is used as the official one is.
func PostgresImage(ref string, tools Tools) Image {
	version := filepath.Base(filepath.Dir(tools.PostgresBin))
	share, library := filepath.Join("/usr/share/postgresql", version), filepath.Join(filepath.Dir(tools.PostgresBin), "lib")
	programs := map[string]string{"/bin/sh": "/bin/sh"}
	for _, name := range []string{"postgres", "initdb", "pg_isready"} {
		programs[filepath.Join(tools.PostgresBin, name)] = filepath.Join(tools.PostgresBin, name)
	}
	return Image{Ref: ref, Entrypoint: []string{"/entrypoint"}, User: "999:999", StopSignal: "SIGINT", Programs: programs,
		Env:     []string{"PATH=" + tools.PostgresBin, "LC_ALL=C", "PGDATA=/var/lib/postgresql/data"},
		Files:   map[string]string{share: share, library: library, "/usr/share/zoneinfo": "/usr/share/zoneinfo"},
		Texts:   map[string]string{"/entrypoint": postgresEntrypoint, "/etc/passwd": "postgres:x:999:999::/:/bin/sh\n"}, //nolint:gosec // a user without a password
		Folders: []string{"/var/run/postgresql", "/var/lib/postgresql/data"}}
}

// ValkeyImage is this machine's Redis under the name of Valkey's image.
func ValkeyImage(ref string, tools Tools) Image {
	return Image{Ref: ref, User: "999:999", Env: []string{"PATH=/usr/bin"}, Folders: []string{"/data"},
		Programs: map[string]string{"/usr/bin/valkey-server": tools.RedisServer}}
}
