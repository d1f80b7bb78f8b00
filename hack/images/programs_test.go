package main

import (
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The four programs as they are released: for both architectures, static, and with a list of all
// that is in each.
func TestEveryProgramIsMadeForBothArchitectures(t *testing.T) {
	dir := t.TempDir()
	o := options{registry: "registry.example/registrar", tag: "1.2.3", out: dir, arches: []string{"amd64", "arm64"}}
	if err := run(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	uses := map[string]string{"api-server": "github.com/go-chi/chi/v5", "worker": "github.com/hibiken/asynq",
		"webhook-sender": "github.com/hibiken/asynq", "operator": "sigs.k8s.io/controller-runtime"}
	for name, module := range uses {
		t.Run(name, func(t *testing.T) {
			archive, err := os.ReadFile(filepath.Join(dir, name+".tar"))
			if err != nil {
				t.Fatal(err)
			}
			files := untar(t, archive)
			blob := func(d v1.Descriptor) []byte { return files["blobs/sha256/"+d.Digest.Hex] }
			outer := into[v1.IndexManifest](t, files["index.json"])
			if got := outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != "registry.example/registrar/"+name+":1.2.3" {
				t.Errorf("named %q", got)
			}
			inner := into[v1.IndexManifest](t, blob(outer.Manifests[0]))
			if len(inner.Manifests) != 2 {
				t.Fatalf("%d architectures", len(inner.Manifests))
			}
			for i, want := range []struct {
				arch    string
				machine elf.Machine
			}{{"amd64", elf.EM_X86_64}, {"arm64", elf.EM_AARCH64}} {
				d := inner.Manifests[i]
				if check.Equal(t, "d.Platform.Architecture", d.Platform.Architecture, want.arch, "manifest %d is for %+v", i, d.Platform) {
					check.Equal(t, "d.Platform.OS", d.Platform.OS, "linux", "manifest %d is for %+v", i, d.Platform)
				}
				layer := into[v1.Manifest](t, blob(d)).Layers[0]
				checkBinary(t, unzip(t, blob(layer)), name, want.machine)
				checkList(t, unzip(t, blob(layer)), name, filepath.Join(dir, name+"-"+want.arch+".spdx.json"), module)
			}
		})
	}
}

// unzip gives the one file of a layer.
func unzip(t *testing.T, layer []byte) map[string][]byte {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return untar(t, content)
}

func checkBinary(t *testing.T, inside map[string][]byte, name string, machine elf.Machine) {
	t.Helper()
	if len(inside) != 2 {
		t.Fatalf("the layer holds %d files", len(inside))
	}
	program, err := elf.NewFile(bytes.NewReader(inside[name]))
	if err != nil {
		t.Fatal(err)
	}
	if program.Machine != machine {
		t.Errorf("built for %s, want %s", program.Machine, machine)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s for %s needs a dynamic linker, and the image has none", name, machine)
		}
	}
}

// checkList holds the list beside the image against what Go wrote into the binary.
func checkList(t *testing.T, inside map[string][]byte, name, file, module string) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(inside[name]))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, p := range into[struct {
		Packages []struct{ Name, VersionInfo, LicenseConcluded string }
	}](t, content).Packages {
		listed[p.Name] = p.VersionInfo
		check.True(t, "a licence is known", p.LicenseConcluded != "" && p.LicenseConcluded != "NOASSERTION", "%s: %s", filepath.Base(file), p.Name)
	}
	said := string(inside[notices])
	for _, m := range info.Deps {
		if listed[m.Path] != m.Version {
			t.Errorf("%s: %s %s is listed as %q", filepath.Base(file), m.Path, m.Version, listed[m.Path])
		}
		check.Contains(t, "the notices", said, "\n"+m.Path+" "+m.Version+": ", "%s", name)
	}
	for _, text := range []string{"Permission is hereby granted, free of charge", "The Go Authors"} {
		check.True(t, "the text is there", strings.Contains(said, text), "%s: %s", name, text)
	}
	if check.True(t, "the module is listed", listed[module] != "", "%s lacks %s or Go %s", filepath.Base(file), module, info.GoVersion) {
		check.Equal(t, "\"go\"+listed[\"stdlib\"]", "go"+listed["stdlib"], info.GoVersion, "%s lacks %s or Go %s", filepath.Base(file), module, info.GoVersion)
	}
}

// Who builds by the Dockerfile gets the same program with the same settings.
func TestTheDockerfileSaysTheSame(t *testing.T) {
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "hack", "images", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)[1]
	im, _, _ := buildImage(t)
	made, err := im.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{"golang:" + string(version) + " AS build", "CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build " + strings.Join(quoted(buildFlags), " "),
		"FROM scratch\n", "USER " + user + "\n", "--platform linux/amd64,linux/arm64"}
	for name, value := range made.Config.Labels {
		if name != "org.opencontainers.image.revision" { // git is not in the build's context
			wants = append(wants, name+`="`+strings.Replace(value, "hello", "$PROGRAM", 1)+`"`)
		}
	}
	for _, want := range wants {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
}

func quoted(flags []string) []string {
	all := make([]string, len(flags))
	for i, flag := range flags {
		if all[i] = flag; strings.Contains(flag, " ") {
			all[i] = `"` + flag + `"`
		}
	}
	return all
}
