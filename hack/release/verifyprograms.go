package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/registrar-dev/registrar/hack/internal/program"
)

func (v *verification) checkImages(ctx context.Context) (string, error) {
	if len(v.refs) != len(program.InImages) {
		return "", fmt.Errorf("%s has %d images", imagesFile, len(v.refs))
	}
	said := ""
	for _, name := range program.InImages {
		line, err := v.checkImage(ctx, name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		said = line
	}
	return fmt.Sprintf("%d, for %s; they say %q", len(v.refs), strings.Join(arches, " and "), said), nil
}

// checkImage reads every byte of an image, and has the program in it say its version where this machine can.
func (v *verification) checkImage(ctx context.Context, name string) (said string, err error) {
	blobs, err := unpack(v.path(imageFile(name, v.version)))
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp("", "registrar-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := blobs.write(work); err != nil {
		return "", err
	}
	outer, err := layout.ImageIndexFromPath(work)
	if err != nil {
		return "", err
	}
	if err := validate.Index(outer); err != nil {
		return "", err
	}
	manifests, err := outer.IndexManifest()
	if err != nil || len(manifests.Manifests) != 1 {
		return "", errors.Join(err, fmt.Errorf("%d images in one archive", len(manifests.Manifests)))
	}
	digest := manifests.Manifests[0].Digest
	if want := v.registry + "/" + name + ":" + v.version + "@" + digest.String(); v.refs[name] != want {
		return "", fmt.Errorf("the archive is of %s, and %s says %s", want, imagesFile, v.refs[name])
	}
	inner, err := outer.ImageIndex(digest)
	if err != nil {
		return "", err
	}
	for _, arch := range arches {
		line, err := v.checkArch(ctx, inner, name, arch)
		if err != nil {
			return "", fmt.Errorf("%s: %w", arch, err)
		}
		if line != "" {
			said = line
		}
	}
	return said, nil
}

func (v *verification) checkArch(ctx context.Context, index v1.ImageIndex, name, arch string) (string, error) {
	manifests, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(manifests.Manifests, func(d v1.Descriptor) bool { return d.Platform.OS == "linux" && d.Platform.Architecture == arch })
	if at < 0 {
		return "", errors.New("no image")
	}
	im, err := index.Image(manifests.Manifests[at].Digest)
	if err != nil {
		return "", err
	}
	config, err := im.ConfigFile()
	if err != nil {
		return "", err
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != v.version {
		return "", fmt.Errorf("its label says version %q", got)
	}
	if got := config.Config.Labels["org.opencontainers.image.revision"]; got != v.revision {
		return "", fmt.Errorf("its label says commit %q, and the provenance %q", got, v.revision)
	}
	plain := mutate.Extract(im)
	var layer bytes.Buffer
	if _, err := layer.ReadFrom(plain); err != nil {
		return "", errors.Join(err, plain.Close())
	}
	in, err := unpacked("layer.tar", layer.Bytes())
	if err := errors.Join(err, plain.Close()); err != nil {
		return "", err
	}
	if len(in) != 2 || len(in[program.Notices]) == 0 {
		return "", fmt.Errorf("it holds %v, not the program and %s", slices.Sorted(maps.Keys(in)), program.Notices)
	}
	return v.checkProgram(ctx, name, in[name], "--version", program.Platform{OS: "linux", Arch: arch})
}

// checkProgram reads what Go says of a program, and has it say its version where this machine can.
func (v *verification) checkProgram(ctx context.Context, name string, content []byte, ask string, p program.Platform) (said string, err error) {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	if filepath.Base(info.Path) != name || setting(info, "GOOS") != p.OS || setting(info, "GOARCH") != p.Arch || setting(info, "CGO_ENABLED") != "0" {
		return "", fmt.Errorf("it is %s for %s-%s, not %s for %s", info.Path, setting(info, "GOOS"), setting(info, "GOARCH"), name, p)
	}
	if p.OS != runtime.GOOS || p.Arch != runtime.GOARCH {
		return "", nil
	}
	work, err := os.MkdirTemp("", "registrar-program-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	file := filepath.Join(work, name)
	if err := os.WriteFile(file, content, 0o755); err != nil {
		return "", err
	}
	out, err := program.Source{}.Run(ctx, work, nil, file, ask)
	want := name + " " + v.version + " (" + program.Source{Revision: v.revision}.ShortRevision() + " of "
	if said = strings.TrimSpace(out); err == nil && !strings.HasPrefix(said, want) {
		err = fmt.Errorf("it says that it is %q, not %q", said, want)
	}
	return said, err
}

func setting(info *debug.BuildInfo, name string) string {
	for _, s := range info.Settings {
		if s.Key == name {
			return s.Value
		}
	}
	return ""
}

func (v *verification) checkPlugins(ctx context.Context) (string, error) {
	for _, p := range v.plugin {
		in, err := unpack(v.path(pluginFile(v.version, p)))
		if err != nil {
			return "", err
		}
		if len(in) != 3 || len(in["LICENSE"]) == 0 || len(in[program.Notices]) == 0 {
			return "", fmt.Errorf("%s holds %v, not %s and its licences", p, slices.Sorted(maps.Keys(in)), executable(p))
		}
		if _, err := v.checkProgram(ctx, plugin, in[executable(p)], "version", p); err != nil {
			return "", fmt.Errorf("%s: %w", p, err)
		}
	}
	return fmt.Sprintf("%d platforms", len(v.plugin)), nil
}
