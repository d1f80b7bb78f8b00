// Command images builds the programs' container images without a Docker daemon: one static binary
// and the notices of what is in it FROM scratch, for each architecture, in an archive that `docker load`, `ctr images import`,
// `skopeo copy oci-archive:` and `crane push` understand. The same sources give the same bytes. An
// SPDX list of what is inside, with its licences, lies beside each.
//
//	make images                                             all programs for amd64 and arm64, into bin/images
//	make images ARGS='-arch amd64 -tag dev worker'          one of them
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/registrar-dev/registrar/hack/internal/licences"
	"github.com/registrar-dev/registrar/hack/internal/oci"
	"github.com/registrar-dev/registrar/hack/stack"
)

// Programs are all that the checkout may have.
var programs = []string{"api-server", "worker", "webhook-sender", "operator"}

type options struct {
	registry, tag, out string
	arches             []string
}

func main() {
	var o options
	flag.StringVar(&o.registry, "registry", "ghcr.io/registrar-dev", "registry and path before the programs' names")
	flag.StringVar(&o.tag, "tag", "dev", "tag of the images")
	flag.StringVar(&o.out, "out", "bin/images", "folder for the archives, below the checkout unless absolute")
	arches := flag.String("arch", "amd64,arm64", "architectures, separated by commas")
	flag.Parse()
	o.arches = strings.Split(*arches, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be deferred
	}
}

func run(ctx context.Context, o options, wanted []string) error {
	root, err := stack.Root()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(o.out) {
		o.out = filepath.Join(root, o.out)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if len(wanted) == 0 {
		for _, name := range programs {
			if _, err := os.Stat(filepath.Join(root, name, "main.go")); err == nil {
				wanted = append(wanted, name)
			}
		}
	}
	for _, name := range wanted {
		if err := makeImage(ctx, root, o, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func makeImage(ctx context.Context, root string, o options, name string) error {
	work, err := os.MkdirTemp("", "registrar-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var images []v1.Image
	for _, arch := range o.arches {
		binary := filepath.Join(work, arch, name)
		if err := compile(ctx, root, "./"+name, arch, binary); err != nil {
			return err
		}
		all, err := licences.Of(ctx, root, arch, false, "./"+name)
		if err != nil {
			return err
		}
		im, bom, err := newImage(name, arch, binary, all)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.out, name+"-"+arch+".spdx.json"), bom, 0o644); err != nil {
			return err
		}
		images = append(images, im)
	}
	ref, archive := o.registry+"/"+name+":"+o.tag, filepath.Join(o.out, name+".tar")
	digest, err := oci.WriteArchive(archive, ref, images...)
	if err == nil {
		fmt.Printf("%s@%s\n  %s\n", ref, digest, archive)
	}
	return err
}

// buildFlags make a binary that holds no path and no debugging table.
var buildFlags = []string{"-trimpath", "-ldflags", "-s -w"}

// compile builds without the paths of this machine, so that others get the same bytes.
func compile(ctx context.Context, root, pkg, arch, out string) error {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, buildFlags, []string{"-o", out, pkg})...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build for %s: %w\n%s", arch, err, text)
	}
	return nil
}
