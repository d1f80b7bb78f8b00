package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The files of a release whose names have no version in them: the newest can be had by one address.
const (
	sumsFile       = "SHA256SUMS"
	sumsSignature  = "SHA256SUMS.sig"
	sumsBundle     = "SHA256SUMS.sigstore.json" // the workflow's signature
	publicKey      = "release.pub"
	provenanceFile = "provenance.json"
	envelopeFile   = "provenance.dsse.json"
	imagesFile     = "images.txt"
	notesFile      = "release-notes.md"
	crdsFile       = "crds.yaml"
	partnerAPI     = "openapi-partner.yaml"
	platformAPI    = "openapi-platform.yaml"

	payload          = ".payload.json"
	payloadSignature = ".payload.json.sig"
	plugin           = "kubectl-registrar"
)

// overlays are the folders of config that kubectl installs the operator from.
var overlays = []string{"default", "cluster-wide"}

func operatorFile(overlay string) string { return "operator-" + overlay + ".yaml" }
func imageFile(name, v string) string    { return name + "-" + v + ".tar" }
func chartFile(v string) string          { return "registrar-" + v + ".tgz" }
func listFile(v string) string           { return "registrar-" + v + ".spdx.json" }
func clientFile(v string) string         { return "registrar-dev-client-" + v + ".tgz" }
func schemasFile(v string) string        { return "event-schemas-" + v + ".tar.gz" }
func docsFile(v string) string           { return "docs-" + v + ".tar.gz" }

// kinds say what a file is, by its name; the first that fits.
var kinds = []struct {
	name  *regexp.Regexp
	about string
}{
	{regexp.MustCompile(`^kubectl-registrar-`), "kubectl's plugin"},
	{regexp.MustCompile(`^registrar-dev-client-`), "TypeScript client, for npm"},
	{regexp.MustCompile(`^docs-`), "documentation as a site"},
	{regexp.MustCompile(`^event-schemas-`), "JSON Schemas of the events"},
	{regexp.MustCompile(`^openapi-`), "OpenAPI document"},
	{regexp.MustCompile(`^operator-.*\.yaml$`), "operator for kubectl apply"},
	{regexp.MustCompile(`^crds\.yaml$`), "definitions of the resources"},
	{regexp.MustCompile(`^images\.txt$`), "images with their digests"},
	{regexp.MustCompile(`^release-notes`), "what the version brings"},
	{regexp.MustCompile(`^registrar-.*\.spdx\.json$`), "list of all that is in the release"},
	{regexp.MustCompile(`\.spdx\.json$`), "list of what is in an image"},
	{regexp.MustCompile(`^registrar-.*\.tgz$`), "Helm chart"},
	{regexp.MustCompile(`\.tar$`), "image for all architectures"},
	{regexp.MustCompile(`\.payload\.json$`), "what cosign signs of an image"},
	{regexp.MustCompile(`\.sig$`), "signature"},
	{regexp.MustCompile(`^provenance\.dsse`), "provenance, signed"},
	{regexp.MustCompile(`^provenance`), "from what and how it was built"},
	{regexp.MustCompile(`^release\.pub$`), "public key"},
	{regexp.MustCompile(`^SHA256SUMS$`), "sums of all files"},
}

func about(name string) string {
	for _, k := range kinds {
		if k.name.MatchString(name) {
			return k.about
		}
	}
	return ""
}

// files are contents by path.
type files map[string][]byte

// tgz packs files. The same files and time give the same bytes. Those that executable names can be run.
func (f files) tgz(at time.Time, executable ...string) ([]byte, error) {
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(packed)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		mode := int64(0o644)
		if slices.Contains(executable, name) {
			mode = 0o755
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(f[name])), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f[name]); err != nil {
			return nil, err
		}
	}
	err = errors.Join(w.Close(), packed.Close())
	return out.Bytes(), err
}

// zip packs files for Windows.
func (f files) zip(at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		in, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return nil, err
		}
		if _, err := in.Write(f[name]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// largest is how large a file in an archive may be that is read.
const largest = 1 << 30

// unpack reads an archive: .tar, .tgz, .tar.gz or .zip.
func unpack(file string) (files, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := unpacked(path.Base(filepath.ToSlash(file)), content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return all, nil
}

func unpacked(name string, content []byte) (files, error) {
	all := files{}
	if strings.HasSuffix(name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil, err
		}
		for _, f := range r.File {
			in, err := f.Open()
			if err != nil {
				return nil, err
			}
			if all[f.Name], err = io.ReadAll(io.LimitReader(in, largest)); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	var plain io.Reader = bytes.NewReader(content)
	if strings.HasSuffix(name, "gz") {
		unzipped, err := gzip.NewReader(plain)
		if err != nil {
			return nil, err
		}
		plain = unzipped
	}
	r := tar.NewReader(plain)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if all[h.Name], err = io.ReadAll(io.LimitReader(r, largest)); err != nil {
			return nil, err
		}
	}
}

// below reads a folder's files.
func below(dir string) (_ files, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	all := files{}
	return all, fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		all[name], err = root.ReadFile(name)
		return err
	})
}

// under puts files into a folder.
func (f files) under(folder string) files {
	moved := files{}
	for name, content := range f {
		moved[path.Join(folder, name)] = content
	}
	return moved
}

// write writes files.
func (f files) write(dir string) error {
	for name, content := range f {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, 0o644)); err != nil {
			return err
		}
	}
	return nil
}
