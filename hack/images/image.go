package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"
)

// user is who the programs run as: nobody in particular, and not root.
const user = "65532:65532"

// platform is an image's content for one architecture.
type platform struct {
	arch                  string
	layer                 []byte // a gzipped tar
	config, manifest, bom []byte
	created               time.Time
}

// image is one program for all its architectures.
type image struct {
	name, ref string
	platforms []platform
}

// The media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *target           `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type target struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

func newPlatform(name, arch, binary string) (platform, error) {
	p := platform{arch: arch}
	built, err := readBuild(binary)
	if err != nil {
		return p, err
	}
	p.created = built.at
	if p.bom, err = built.spdx(name, arch); err != nil {
		return p, err
	}
	plain, err := layerOf(name, binary)
	if err != nil {
		return p, err
	}
	if p.layer, err = compress(plain); err != nil {
		return p, err
	}
	p.config, err = json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "created": p.created.Format(time.RFC3339),
		"config": map[string]any{
			"User": user, "Entrypoint": []string{"/" + name}, "WorkingDir": "/",
			"Labels": map[string]string{
				"org.opencontainers.image.title":    "registrar " + name,
				"org.opencontainers.image.source":   "https://github.com/registrar-dev/registrar",
				"org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.revision": built.revision,
			},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{digest(plain)}},
		"history": []map[string]string{{"created": p.created.Format(time.RFC3339), "created_by": "hack/images"}},
	})
	if err != nil {
		return p, err
	}
	p.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": typeManifest,
		"config": describe(typeConfig, p.config), "layers": []descriptor{describe(typeLayer, p.layer)},
	})
	return p, err
}

func describe(mediaType string, content []byte) descriptor {
	return descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// layerOf is a tar that holds the binary alone.
func layerOf(name, binary string) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err = add(w, name, 0o755, content)
	if err == nil {
		err = w.Close()
	}
	return out.Bytes(), err
}

func add(w *tar.Writer, name string, mode int64, content []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func compress(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// write makes an OCI layout in a tar. Beside it stands the manifest.json of `docker save`, for
// loaders that know nothing else; it names this machine's architecture, or else the first.
func (im image) write(out io.Writer) (indexDigest string, err error) {
	w := tar.NewWriter(out)
	blobs := map[string][]byte{}
	var manifests []descriptor
	for _, p := range im.platforms {
		d := describe(typeManifest, p.manifest)
		d.Platform = &target{p.arch, "linux"}
		manifests = append(manifests, d)
		for _, content := range [][]byte{p.layer, p.config, p.manifest} {
			blobs[digest(content)] = content
		}
	}
	inner, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests})
	if err != nil {
		return "", err
	}
	blobs[digest(inner)] = inner
	named := describe(typeIndex, inner)
	named.Annotations = map[string]string{"io.containerd.image.name": im.ref, "org.opencontainers.image.ref.name": im.ref}
	outer, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{named}})
	if err != nil {
		return "", err
	}
	legacy, err := im.dockerManifest()
	if err != nil {
		return "", err
	}
	files := []file{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", outer}, {"manifest.json", legacy}}
	for name, content := range blobs {
		files = append(files, file{"blobs/sha256/" + name[len("sha256:"):], content})
	}
	slices.SortFunc(files[3:], func(a, b file) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	for _, f := range files {
		if err := add(w, f.name, 0o644, f.content); err != nil {
			return "", err
		}
	}
	return named.Digest, w.Close()
}

type file struct {
	name    string
	content []byte
}

func (im image) dockerManifest() ([]byte, error) {
	i := max(0, slices.IndexFunc(im.platforms, func(p platform) bool { return p.arch == runtime.GOARCH }))
	if len(im.platforms) == 0 {
		return nil, fmt.Errorf("%s: no architecture", im.name)
	}
	p := im.platforms[i]
	blob := func(content []byte) string { return "blobs/sha256/" + digest(content)[len("sha256:"):] }
	return json.Marshal([]map[string]any{{"Config": blob(p.config), "RepoTags": []string{im.ref}, "Layers": []string{blob(p.layer)}}})
}
