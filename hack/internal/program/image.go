package program

import (
	"archive/tar"
	"context"
	"errors"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/registrar-dev/registrar/hack/internal/oci"
)

// user is who the programs run as: nobody in particular, and not root.
const user = "65532:65532"

// Notices is where an image, or an archive, has the licences and notices of what is in it.
const Notices = "THIRD-PARTY-NOTICES"

// WriteImage writes the image of one of InImages for some architectures to dir/file, and beside it a list of what is in each
// as an SPDX document, program-arch.spdx.json. It returns the image's digest and the programs in it.
func (s Source) WriteImage(ctx context.Context, name, ref, dir, file string, arches ...string) (digest v1.Hash, programs []*Binary, err error) {
	var images []v1.Image
	for _, arch := range arches {
		b, err := s.Build(ctx, "./"+name, Platform{"linux", arch})
		if err != nil {
			return digest, nil, err
		}
		im, err := s.image(b)
		if err != nil {
			return digest, nil, err
		}
		bom, err := s.SPDX(b)
		if err != nil {
			return digest, nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name+"-"+arch+".spdx.json"), bom, 0o644); err != nil {
			return digest, nil, err
		}
		images, programs = append(images, im), append(programs, b)
	}
	digest, err = oci.WriteArchive(filepath.Join(dir, file), ref, images...)
	return digest, programs, err
}

// image returns an image that holds the binary and the notices of what is in it.
func (s Source) image(b *Binary) (v1.Image, error) {
	labels := map[string]string{
		"org.opencontainers.image.title":    "registrar " + b.Name,
		"org.opencontainers.image.source":   "https://github.com/registrar-dev/registrar",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.revision": s.Revision,
	}
	if s.Version != "" {
		labels["org.opencontainers.image.version"] = s.Version
	}
	return oci.Image(b.Platform.Arch, v1.Config{User: user, Entrypoint: []string{"/" + b.Name}, WorkingDir: "/", Labels: labels}, s.At, func(w *tar.Writer) error {
		return errors.Join(oci.AddFile(w, b.Name, 0o755, b.Content), oci.AddFile(w, Notices, 0o644, b.Notices()))
	})
}
