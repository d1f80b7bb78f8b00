package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/registrar-dev/registrar/hack/internal/program"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The four programs as they are released: for both architectures, static, and with a list of all
// that is in each.
func TestEveryProgramIsMadeForBothArchitectures(t *testing.T) {
	dir := built(t).dir
	uses := map[string]string{"api-server": "github.com/go-chi/chi/v5", "worker": "github.com/hibiken/asynq",
		"webhook-sender": "github.com/hibiken/asynq", "operator": "sigs.k8s.io/controller-runtime"}
	for name, module := range uses {
		t.Run(name, func(t *testing.T) {
			archive, err := unpack(filepath.Join(dir, imageFile(name, version)))
			if err != nil {
				t.Fatal(err)
			}
			blob := func(d v1.Descriptor) []byte { return archive["blobs/sha256/"+d.Digest.Hex] }
			outer := into[v1.IndexManifest](t, archive["index.json"])
			check.Equal(t, "the image's name", outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"], "registry.example/registrar/"+name+":"+version, "")
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
				inside, err := unpacked("layer.tar.gz", blob(into[v1.Manifest](t, blob(d)).Layers[0]))
				if err != nil {
					t.Fatal(err)
				}
				checkBinary(t, inside, name, want.machine)
				checkList(t, inside, name, filepath.Join(dir, name+"-"+want.arch+".spdx.json"), module)
			}
		})
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

func checkBinary(t *testing.T, inside files, name string, machine elf.Machine) {
	t.Helper()
	if len(inside) != 2 {
		t.Fatalf("the layer holds %d files", len(inside))
	}
	binary, err := elf.NewFile(bytes.NewReader(inside[name]))
	if err != nil {
		t.Fatal(err)
	}
	if binary.Machine != machine {
		t.Errorf("built for %s, want %s", binary.Machine, machine)
	}
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s for %s needs a dynamic linker, and the image has none", name, machine)
		}
	}
}

// checkList holds the list beside the image against what Go wrote into the binary.
func checkList(t *testing.T, inside files, name, file, module string) {
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
	said := string(inside[program.Notices])
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
