package main

import (
	"bytes"
	"context"
	"crypto"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	cosign "github.com/sigstore/sigstore/pkg/signature/payload"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"
	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/hack/internal/program"
)

// verification checks a release by its folder alone. Every check stands by itself: a fault that one would pass is another's.
type verification struct {
	tools

	dir, version, registry string
	plugin                 []program.Platform
	public                 []byte // the key that must have signed, as PEM; nil: the one in the folder
	unsigned               bool   // no signature is asked for: the workflow makes them

	sums map[string]string // of the files
	refs map[string]string // of the images, by program
	key  signature.Verifier

	revision string // that the provenance names, as programs and images say it
}

func (v *verification) run(ctx context.Context) error {
	for _, c := range []struct {
		what string
		do   func(context.Context) (string, error)
	}{
		{"sums", v.checkSums},
		{"signatures", v.checkSignatures},
		{"provenance", v.checkProvenance},
		{"images", v.checkImages},
		{"kubectl's plugin", v.checkPlugins},
		{"chart", v.checkChart},
		{"definitions and operator", v.checkManifests},
		{"documents", v.checkDocuments},
		{"TypeScript client", v.checkClient},
		{"lists of contents", v.checkLists},
		{"notes", v.checkNotes},
	} {
		found, err := c.do(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		say("right: %s: %s", c.what, found)
	}
	return nil
}

func (v *verification) path(name string) string { return filepath.Join(v.dir, name) }

func (v *verification) read(name string) ([]byte, error) { return os.ReadFile(v.path(name)) }

// checkSums finds files that differ, are missing, or are not of the release.
func (v *verification) checkSums(context.Context) (string, error) {
	var err error
	if v.sums, err = readSums(v.dir); err != nil {
		return "", err
	}
	there, err := sumUp(v.dir)
	if err != nil {
		return "", err
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(v.sums)) {
		switch {
		case there[name] == "":
			faults = append(faults, name+" is missing")
		case there[name] != v.sums[name]:
			faults = append(faults, fmt.Sprintf("%s has changed: %.12s, not %.12s", name, there[name], v.sums[name]))
		}
		delete(there, name)
	}
	delete(there, sumsFile)
	delete(there, sumsSignature)
	delete(there, sumsBundle)
	for _, name := range slices.Sorted(maps.Keys(there)) {
		faults = append(faults, name+" is no file of the release")
	}
	if len(faults) > 0 {
		return "", errors.New(strings.Join(faults, "; "))
	}
	v.refs, err = readImages(v.dir)
	return fmt.Sprintf("%d files", len(v.sums)), err
}

func (v *verification) checkSignatures(context.Context) (string, error) {
	if v.unsigned {
		return "none here; the workflow signs the sums and the images", nil
	}
	public, err := v.read(publicKey)
	if err != nil {
		return "", fmt.Errorf("it is not signed: %w", err)
	}
	if v.public != nil && !bytes.Equal(public, v.public) {
		return "", errors.New(publicKey + " is another key than the one that signed")
	}
	parsed, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("%s: %w", publicKey, err)
	}
	if v.key, err = signature.LoadVerifier(parsed, crypto.SHA256); err != nil {
		return "", fmt.Errorf("%s: %w", publicKey, err)
	}
	if _, err := v.signed(sumsFile, sumsSignature); err != nil {
		return "", err
	}
	for _, name := range program.InImages {
		content, err := v.signed(name+payload, name+payloadSignature)
		if err != nil {
			return "", err
		}
		var said cosign.Cosign
		if err := json.Unmarshal(content, &said); err != nil {
			return "", fmt.Errorf("%s: %w", name+payload, err)
		}
		if want := v.refs[name]; !strings.HasSuffix(want, "@"+said.Image.DigestStr()) || said.Image.Repository.Name() != v.registry+"/"+name {
			return "", fmt.Errorf("%s is about %s, not %s", name+payload, said.Image, want)
		}
	}
	envelope, err := v.read(envelopeFile)
	if err != nil {
		return "", err
	}
	var statement []byte
	wrapped := dsse.WrapVerifier(v.key, dsse.WithExpectedPayloadType(envelopeType), dsse.WithDecodedPayload(&statement))
	if err := wrapped.VerifySignature(bytes.NewReader(envelope), nil); err != nil {
		return "", fmt.Errorf("%s: %w", envelopeFile, err)
	}
	if plain, err := v.read(provenanceFile); err != nil || !bytes.Equal(plain, statement) {
		return "", errors.Join(err, fmt.Errorf("%s holds another statement than %s", envelopeFile, provenanceFile))
	}
	by := "the key that made it"
	if v.public == nil {
		by = publicKey + " beside it: compare that with the one that you know"
	}
	return fmt.Sprintf("of the sums, %d images and the provenance, by %s", len(program.InImages), by), nil
}

// signed reads a file whose signature is right.
func (v *verification) signed(name, signatureName string) ([]byte, error) {
	content, err := v.read(name)
	if err != nil {
		return nil, err
	}
	encoded, err := v.read(signatureName)
	if err != nil {
		return nil, err
	}
	made, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(string(encoded), "\n"))
	if err == nil {
		err = v.key.VerifySignature(bytes.NewReader(made), bytes.NewReader(content))
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not sign %s: %w", signatureName, name, err)
	}
	return content, nil
}

// checkProvenance holds the statement's subjects against the files and the images.
func (v *verification) checkProvenance(context.Context) (string, error) {
	text, err := v.read(provenanceFile)
	if err != nil {
		return "", err
	}
	var statement intoto.Statement
	var said provenance.Provenance
	if err := protojson.Unmarshal(text, &statement); err != nil {
		return "", err
	}
	if err := errors.Join(statement.Validate(), convert(statement.Predicate, &said)); err != nil {
		return "", err
	}
	if err := said.Validate(); err != nil {
		return "", err
	}
	if statement.PredicateType != predicateType {
		return "", fmt.Errorf("it is a %s, not a %s", statement.PredicateType, predicateType)
	}
	if got := said.BuildDefinition.ExternalParameters.GetFields()["version"].GetStringValue(); got != v.version {
		return "", fmt.Errorf("it is of version %q", got)
	}
	want := map[string]string{}
	for name, sum := range v.sums {
		if !isSignature(name) {
			want[name] = sum
		}
	}
	for name, ref := range v.refs {
		_, want[v.registry+"/"+name], _ = strings.Cut(ref, "@sha256:")
	}
	for _, s := range statement.Subject {
		if want[s.Name] == "" || s.Digest["sha256"] != want[s.Name] {
			return "", fmt.Errorf("it speaks of a %s of the digest %.12s, which is not in the release", s.Name, s.Digest["sha256"])
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		return "", fmt.Errorf("it does not speak of %s", strings.Join(slices.Sorted(maps.Keys(want)), ", "))
	}
	if len(said.BuildDefinition.ResolvedDependencies) != 1 {
		return "", errors.New("it names not one commit")
	}
	v.revision = said.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]
	if said.BuildDefinition.InternalParameters.GetFields()["uncommitted"].GetBoolValue() {
		v.revision += "-dirty"
	}
	return fmt.Sprintf("%d subjects, of commit %s", len(statement.Subject), program.Source{Revision: v.revision}.ShortRevision()), nil
}

// isSignature says whether a file was made after the provenance.
func isSignature(name string) bool {
	return slices.Contains([]string{provenanceFile, envelopeFile, publicKey}, name) || strings.HasSuffix(name, payload) || strings.HasSuffix(name, payloadSignature)
}

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

// imageLines are those of a manifest that name an image.
var imageLines = regexp.MustCompile(`(?m)^ +(?:- )?image: "?([^"\n]*)"?$`)

// checkChart lints the chart, and renders it: all programs run the images of the release, and other tags can be set.
func (v *verification) checkChart(ctx context.Context) (string, error) {
	work, err := os.MkdirTemp("", "registrar-helm-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	helm := func(args ...string) (string, error) {
		return program.Source{}.Run(ctx, work, helmEnv(work), filepath.Join(v.kube, "helm"), args...)
	}
	file := v.path(chartFile(v.version))
	if _, err := helm("lint", file, "--set", "evaluation.enabled=true"); err != nil {
		return "", err
	}
	in, err := unpack(file)
	if err != nil {
		return "", err
	}
	var chart struct {
		Name       string `yaml:"name"`
		Version    string `yaml:"version"`
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal(in["registrar/Chart.yaml"], &chart); err != nil {
		return "", err
	}
	if chart.Name != "registrar" || chart.Version != v.version || chart.AppVersion != v.version {
		return "", fmt.Errorf("it says that it is %+v", chart)
	}
	render := func(args ...string) (map[string]bool, error) {
		text, err := helm(slices.Concat([]string{"template", "registrar", file, "--set", strings.Join([]string{"publicUrl=https://registrar.example",
			"database.existingSecret=d", "redis.existingSecret=r", "mail.existingSecret=m", "mail.from=no-reply@registrar.example", "platformKey.existingSecret=k",
			"keyset.existingSecret=k", "queuesPage.existingSecret=k"}, ",")}, args)...)
		images := map[string]bool{}
		for _, m := range imageLines.FindAllStringSubmatch(text, -1) {
			images[m[1]] = true
		}
		return images, err
	}
	got, err := render()
	if err != nil {
		return "", err
	}
	want := map[string]bool{}
	for name, ref := range v.refs {
		_, digest, _ := strings.Cut(ref, "@")
		want[v.registry+"/"+name+"@"+digest] = true
	}
	if !maps.Equal(got, want) {
		return "", fmt.Errorf("it runs %v, not %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	other, err := render("--set", "image.tag=other")
	if err == nil && !other[v.registry+"/worker:other"] {
		err = fmt.Errorf("with image.tag=other it runs %v", slices.Sorted(maps.Keys(other)))
	}
	return fmt.Sprintf("version %s runs the %d images by their digests", chart.Version, len(got)), err
}

func (v *verification) checkManifests(context.Context) (string, error) {
	crds, err := v.read(crdsFile)
	if err != nil {
		return "", err
	}
	kinds, err := kindsOf(crds)
	if err != nil {
		return "", fmt.Errorf("%s: %w", crdsFile, err)
	}
	const definition = "CustomResourceDefinition"
	if len(kinds) != 1 || kinds[definition] < 5 {
		return "", fmt.Errorf("%s has %v", crdsFile, kinds)
	}
	_, digest, _ := strings.Cut(v.refs["operator"], "@")
	for _, overlay := range overlays {
		name := operatorFile(overlay)
		text, err := v.read(name)
		if err != nil {
			return "", err
		}
		in, err := kindsOf(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if in[definition] != kinds[definition] || in["Deployment"] != 1 {
			return "", fmt.Errorf("%s has %v", name, in)
		}
		images := imageLines.FindAllStringSubmatch(string(text), -1)
		if len(images) != 1 || images[0][1] != v.registry+"/operator@"+digest {
			return "", fmt.Errorf("%s runs %v", name, images)
		}
	}
	return fmt.Sprintf("%d definitions; the operator's image by its digest", kinds[definition]), nil
}

// kindsOf counts the objects of manifests by their kind.
func kindsOf(text []byte) (map[string]int, error) {
	kinds := map[string]int{}
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var o struct {
			Kind string `yaml:"kind"`
		}
		if err := yaml.Unmarshal(part, &o); err != nil {
			return nil, err
		}
		kinds[o.Kind]++
	}
	return kinds, nil
}

func (v *verification) checkDocuments(context.Context) (string, error) {
	for _, name := range []string{partnerAPI, platformAPI} {
		text, err := v.read(name)
		if err != nil {
			return "", err
		}
		var d struct {
			OpenAPI string `yaml:"openapi"`
			Info    struct {
				Version string `yaml:"version"`
			} `yaml:"info"`
			Paths map[string]any `yaml:"paths"`
		}
		if err := yaml.Unmarshal(text, &d); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if !strings.HasPrefix(d.OpenAPI, "3.1") || d.Info.Version != v.version || len(d.Paths) == 0 {
			return "", fmt.Errorf("%s is of OpenAPI %q, version %q, with %d paths", name, d.OpenAPI, d.Info.Version, len(d.Paths))
		}
	}
	schemas, err := unpack(v.path(schemasFile(v.version)))
	if err != nil {
		return "", err
	}
	compiler := jsonschema.NewCompiler()
	for name, text := range schemas {
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err := errors.Join(err, compiler.AddResource(name, schema)); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if _, err := compiler.Compile(name); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if schemas["event-schemas/ping.json"] == nil {
		return "", errors.New("the schema of the event ping is missing")
	}
	pages, err := unpack(v.path(docsFile(v.version)))
	if err == nil && len(pages["docs/index.html"]) == 0 {
		err = fmt.Errorf("%s has no docs/index.html", docsFile(v.version))
	}
	return fmt.Sprintf("2 OpenAPI documents of version %s, %d events' schemas, %d files of documentation", v.version, len(schemas), len(pages)), err
}

func (v *verification) checkClient(context.Context) (string, error) {
	in, err := unpack(v.path(clientFile(v.version)))
	if err != nil {
		return "", err
	}
	var p struct{ Name, Version, Exports, Types string }
	if err := json.Unmarshal(in["package/package.json"], &p); err != nil {
		return "", err
	}
	if p.Name != "@registrar-dev/client" || p.Version != v.version {
		return "", fmt.Errorf("it says that it is %s %s", p.Name, p.Version)
	}
	for _, name := range []string{p.Exports, p.Types, "LICENSE", "README.md"} {
		if len(in["package/"+strings.TrimPrefix(name, "./")]) == 0 {
			return "", fmt.Errorf("it lacks %s", name)
		}
	}
	return fmt.Sprintf("%s %s", p.Name, p.Version), nil
}

func (v *verification) checkLists(context.Context) (string, error) {
	names := []string{listFile(v.version)}
	for _, name := range program.InImages {
		for _, arch := range arches {
			names = append(names, name+"-"+arch+".spdx.json")
		}
	}
	packages := 0
	for _, name := range names {
		text, err := v.read(name)
		if err != nil {
			return "", err
		}
		doc, err := spdxjson.Read(bytes.NewReader(text))
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if err := spdxlib.ValidateDocument(doc); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		for _, p := range doc.Packages {
			if p.PackageFileName != "" && p.PackageChecksums[0].Value != v.sums[p.PackageFileName] {
				return "", fmt.Errorf("%s has another sum of %s", name, p.PackageFileName)
			}
		}
		packages = max(packages, len(doc.Packages))
	}
	return fmt.Sprintf("%d SPDX documents; the release's has %d packages", len(names), packages), nil
}

func (v *verification) checkNotes(context.Context) (string, error) {
	text, err := v.read(notesFile)
	if err == nil && len(bytes.TrimSpace(text)) < 20 {
		err = errors.New("they are empty")
	}
	return fmt.Sprintf("%d lines", bytes.Count(text, []byte("\n"))), err
}
