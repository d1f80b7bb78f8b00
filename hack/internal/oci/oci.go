// Package oci makes container images of files, without a Docker daemon.
package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image returns an image for Linux of one layer, which fill writes. The same files, configuration
// and time give the same bytes.
func Image(arch string, config v1.Config, created time.Time, fill func(*tar.Writer) error) (v1.Image, error) {
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	if err := errors.Join(fill(w), w.Close()); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(plain.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{OS: "linux", Architecture: arch, Created: v1.Time{Time: created}, Config: config, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "hack/images"}})
}

// AddFile adds a file of unknown age.
func AddFile(w *tar.Writer, name string, mode int64, content []byte) error {
	err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}

// WriteArchive writes an OCI layout in a tar, with an image for each architecture, and returns the
// digest of their index. Beside it stands the manifest.json of `docker save`, for loaders that know
// nothing else; it names this machine's architecture, or else the first.
func WriteArchive(archive, ref string, images ...v1.Image) (digest v1.Hash, err error) {
	var platforms v1.ImageIndex = empty.Index
	var legacy v1.Image
	for _, im := range images {
		config, err := im.ConfigFile()
		if err != nil {
			return digest, err
		}
		if legacy == nil || config.Architecture == runtime.GOARCH {
			legacy = im
		}
		platforms = mutate.AppendManifests(platforms, mutate.IndexAddendum{Add: im, Descriptor: v1.Descriptor{Platform: config.Platform()}})
	}
	if legacy == nil {
		return digest, errors.New("an image needs an architecture")
	}
	if digest, err = platforms.Digest(); err != nil {
		return digest, err
	}
	dir, err := os.MkdirTemp("", "registrar-image-")
	if err != nil {
		return digest, err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: platforms, Descriptor: v1.Descriptor{
		Annotations: map[string]string{"io.containerd.image.name": ref, "org.opencontainers.image.ref.name": ref}}})); err != nil {
		return digest, err
	}
	if err := writeLegacy(filepath.Join(dir, "manifest.json"), ref, legacy); err != nil {
		return digest, err
	}
	out, err := os.Create(archive)
	if err != nil {
		return digest, err
	}
	w := tar.NewWriter(out)
	return digest, errors.Join(addAll(w, os.DirFS(dir)), w.Close(), out.Close())
}

// writeLegacy writes what `docker save` says of an image whose blobs lie as in an OCI layout.
func writeLegacy(file, ref string, im v1.Image) error {
	manifest, err := im.Manifest()
	if err != nil {
		return err
	}
	blob := func(d v1.Descriptor) string { return "blobs/sha256/" + d.Digest.Hex }
	text, err := json.Marshal(tarball.Manifest{{Config: blob(manifest.Config), RepoTags: []string{ref}, Layers: []string{blob(manifest.Layers[0])}}})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func addAll(w *tar.Writer, files fs.FS) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return AddFile(w, name, 0o644, content)
	})
}
