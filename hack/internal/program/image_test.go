package program

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/registrar-dev/registrar/hack/internal/licences"
	"github.com/registrar-dev/registrar/hack/internal/oci"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// A small program stands for ours, which take long to compile for another machine.
const source = "package main\n\nfunc main() { println(\"hello\") }\n"

// library stands for what licences.Of finds.
var library = licences.Dependency{Name: licences.Stdlib, Version: "1.26", Licences: []string{"BSD-3-Clause"}, Texts: []licences.Text{{Name: "LICENSE", Content: []byte("Redistribution is permitted.")}}}

func buildImage(t *testing.T) (first v1.Image, archive []byte, indexDigest v1.Hash) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.org/hello\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var images []v1.Image
	for _, arch := range []string{"amd64", "arm64"} {
		binary := filepath.Join(dir, arch)
		s, p := Source{Root: dir, At: time.Unix(0, 0).UTC()}, Platform{"linux", arch}
		if err := s.Compile(t.Context(), ".", p, binary); err != nil {
			t.Fatal(err)
		}
		b, err := read(binary, p, []licences.Dependency{library})
		if err != nil {
			t.Fatal(err)
		}
		b.Name = "hello"
		im, err := s.image(b)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, im)
	}
	file := filepath.Join(dir, "hello.tar")
	indexDigest, err := oci.WriteArchive(file, "registry.example/hello:1", images...)
	if err != nil {
		t.Fatal(err)
	}
	if archive, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	return images[0], archive, indexDigest
}

func digest(content []byte) v1.Hash {
	sum := sha256.Sum256(content)
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}
}

func untar(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(content))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func into[T any](t *testing.T, content []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatalf("%v in %q", err, content)
	}
	return v
}

func TestArchiveIsAnOCILayoutForEachArchitecture(t *testing.T) {
	_, archive, indexDigest := buildImage(t)
	files := untar(t, archive)
	blob := func(d v1.Descriptor) []byte {
		t.Helper()
		content := files["blobs/sha256/"+d.Digest.Hex]
		check.Equal(check.Now(t), "digest", digest(content), d.Digest, "%s is not what its descriptor says", d.Digest)
		check.Equal(check.Now(t), "size", int64(len(content)), d.Size, "%s is not what its descriptor says", d.Digest)
		return content
	}
	outer := into[v1.IndexManifest](t, files["index.json"])
	check.Equal(check.Now(t), "number of manifests", len(outer.Manifests), 1, "%+v", outer)
	check.Equal(check.Now(t), "the first manifest's digest", outer.Manifests[0].Digest, indexDigest, "%+v", outer)
	check.Equal(check.Now(t), "io.containerd.image.name", outer.Manifests[0].Annotations["io.containerd.image.name"], "registry.example/hello:1", "%+v", outer)
	inner := into[v1.IndexManifest](t, blob(outer.Manifests[0]))
	if len(inner.Manifests) != 2 {
		t.Fatalf("%+v", inner)
	}
	for _, d := range inner.Manifests {
		m := into[v1.Manifest](t, blob(d))
		c := into[v1.ConfigFile](t, blob(m.Config))
		if check.Equal(t, "c.Architecture", c.Architecture, d.Platform.Architecture, "%+v for %+v", c, d.Platform) &&
			check.Equal(t, "c.Config.User", c.Config.User, "65532:65532", "%+v for %+v", c, d.Platform) {
			check.Equal(t, "entrypoint", c.Config.Entrypoint[0], "/hello", "%+v for %+v", c, d.Platform)
		}
		plain, err := gzip.NewReader(bytes.NewReader(blob(m.Layers[0])))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(plain)
		check.NoError(check.Now(t), err, "the layer is not the one of the configuration: %v", err)
		check.Equal(check.Now(t), "digest", digest(layer), c.RootFS.DiffIDs[0], "the layer is not the one of the configuration: %v", err)
		if inside := untar(t, layer); check.Equal(t, "number of files", len(inside), 2, "the layer holds %d files", len(inside)) {
			check.True(t, "the program is in the layer", len(inside["hello"]) != 0, "the layer holds %d files", len(inside))
			check.Contains(t, "the notices", string(inside[Notices]), "Redistribution is permitted.", "the layer holds %d files", len(inside))
		}
	}
	legacy := into[[]struct {
		Config   string
		RepoTags []string
		Layers   []string
	}](t, files["manifest.json"])
	if got := into[v1.ConfigFile](t, files[legacy[0].Config]); check.Equal(t, "got.Architecture", got.Architecture, runtime.GOARCH, "%+v, %+v", legacy, got) &&
		check.True(t, "the layer is there", files[legacy[0].Layers[0]] != nil, "%+v, %+v", legacy, got) {
		check.Equal(t, "tag", legacy[0].RepoTags[0], "registry.example/hello:1", "%+v, %+v", legacy, got)
	}
}

func TestTheSameSourcesGiveTheSameBytes(t *testing.T) {
	_, first, _ := buildImage(t)
	_, second, _ := buildImage(t)
	if !bytes.Equal(first, second) {
		t.Error("two builds differ")
	}
}

func TestSPDXListsWhatIsInABinaryWithItsLicences(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	all := []licences.Dependency{library, {Name: "example.org/elsewhere", Version: "v1.0.0", Module: true, Licences: []string{"MIT"}}}
	for _, m := range info.Deps {
		all = append(all, licences.Dependency{Name: m.Path, Version: m.Version, Module: true, Licences: []string{"Apache-2.0", "MIT"}})
	}
	b, err := read(self, Platform{"linux", runtime.GOARCH}, all)
	if err != nil {
		t.Fatal(err)
	}
	content, err := Source{At: time.Unix(0, 0).UTC()}.SPDX(b)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := spdxjson.Read(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	check.Equal(t, "number of packages", len(doc.Packages), len(info.Deps)+2, "and the module itself and Go's library")
	for i, p := range doc.Packages {
		want := "Apache-2.0 AND MIT"
		switch {
		case i == 0:
			want = "Apache-2.0"
		case p.PackageName == licences.Stdlib:
			want = "BSD-3-Clause"
		}
		check.Equal(t, "licence", p.PackageLicenseConcluded, want, "%s", p.PackageName)
	}
	// A module of which no licence is known stops the build.
	if _, err := contents(info, all[:len(all)-1]); len(info.Deps) > 0 && err == nil {
		t.Error("a module without a licence is in the image")
	}
}
