package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/hack/internal/program"
)

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
