package main

import (
	"archive/tar"
	"errors"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/registrar-dev/registrar/hack/internal/licences"
	"github.com/registrar-dev/registrar/hack/internal/oci"
)

// user is who the programs run as: nobody in particular, and not root.
const user = "65532:65532"

// notices is where an image has the licences and notices of what is in it.
const notices = "THIRD-PARTY-NOTICES"

// newImage returns an image that holds the binary and the notices of what is in it, and a list of that. all
// are the dependencies that may be in the binary.
func newImage(name, arch, binary string, all []licences.Dependency) (im v1.Image, bom []byte, err error) {
	built, err := readBuild(binary)
	if err != nil {
		return nil, nil, err
	}
	within, err := built.contents(all)
	if err != nil {
		return nil, nil, err
	}
	if bom, err = built.spdx(name, arch, within); err != nil {
		return nil, nil, err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, nil, err
	}
	im, err = oci.Image(arch, v1.Config{
		User: user, Entrypoint: []string{"/" + name}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "registrar " + name,
			"org.opencontainers.image.source":   "https://github.com/registrar-dev/registrar",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.revision": built.revision,
		},
	}, built.at, func(w *tar.Writer) error {
		return errors.Join(oci.AddFile(w, name, 0o755, content), oci.AddFile(w, notices, 0o644, licences.Notices(name, within)))
	})
	return im, bom, err
}
