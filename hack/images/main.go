// Command images builds the programs' container images without a Docker daemon: one static binary
// and the notices of what is in it FROM scratch, for each architecture, in an archive that `docker load`, `ctr images import`,
// `skopeo copy oci-archive:` and `crane push` understand. The same sources give the same bytes. An
// SPDX list of what is inside, with its licences, lies beside each. What is released is built by hack/release.
//
//	make images                                             all programs for amd64 and arm64, into bin/images
//	make images ARGS='-arch amd64 -tag dev worker'          one of them
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/registrar-dev/registrar/hack/internal/program"
	"github.com/registrar-dev/registrar/hack/stack"
)

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
	source, err := program.Of(ctx, root, "")
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		wanted = program.InImages
	}
	for _, name := range wanted {
		ref, file := o.registry+"/"+name+":"+o.tag, name+".tar"
		digest, _, err := source.WriteImage(ctx, name, ref, o.out, file, o.arches...)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%s@%s\n  %s\n", ref, digest, filepath.Join(o.out, file))
	}
	return nil
}
