package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/hack/internal/program"
	"github.com/registrar-dev/registrar/hack/stack"
)

// tools are others' programs.
type tools struct {
	kube    string // the folder of kubectl and helm
	modules string // node_modules of the TypeScript client
}

func findTools(ctx context.Context, root string) (t tools, err error) {
	if t.kube, err = stack.EnsureKube(ctx, os.Stderr); err != nil {
		return t, err
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return t, errors.New("the TypeScript client needs npm on PATH")
	}
	t.modules, err = stack.EnsureLocked(ctx, os.Stderr, filepath.Join(root, client))
	return t, err
}

const client = "api-server/client/typescript"

// building is one of the two times that everything is built.
type building struct {
	options
	tools

	source   program.Source
	dir      string            // where the files go
	digests  map[string]string // of the images, by program
	programs []*program.Binary // all that were compiled
}

func (o options) build(ctx context.Context, s program.Source, t tools, dir string) error {
	b := &building{options: o, tools: t, source: s, dir: dir, digests: map[string]string{}}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"images", b.images},
		{"kubectl's plugin", b.plugins},
		{"chart", b.chart},
		{"definitions and operator", b.manifests},
		{"TypeScript client", b.typescript},
		{"OpenAPI documents, events' schemas and documentation", b.documents},
		{"notes", b.notes},
		{"list of all that is in it", b.list},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		say("built: %s", step.what)
	}
	return nil
}

// buildAgain builds everything from a copy in another folder, with an empty cache, and compares.
func (o options) buildAgain(ctx context.Context, s program.Source, t tools) error {
	work, err := os.MkdirTemp("", "registrar-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	say("all of it again, in another folder and with an empty cache")
	again, dir := s, filepath.Join(work, "dist")
	again.Root, again.Env = filepath.Join(work, "a", "copy"), []string{"GOCACHE=" + filepath.Join(work, "cache")}
	if err := errors.Join(os.MkdirAll(dir, 0o755), copyTree(ctx, s, again.Root)); err != nil {
		return err
	}
	if err := o.build(ctx, again, t, dir); err != nil {
		return err
	}
	n, err := compare(o.out, dir)
	if err == nil {
		say("both times the same bytes: %d files", n)
	}
	return err
}

// copyTree copies what git knows of a checkout, and what it does not ignore.
func copyTree(ctx context.Context, s program.Source, to string) error {
	names, err := s.Run(ctx, s.Root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(s.Root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not yet committed
		}
		info, statErr := os.Stat(filepath.Join(s.Root, name))
		if err := errors.Join(err, statErr); err != nil {
			return err
		}
		file := filepath.Join(to, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, content, info.Mode().Perm())); err != nil {
			return err
		}
	}
	return nil
}

// compare finds what differs between two folders, and returns how many files there are.
func compare(one, other string) (n int, err error) {
	a, err := sumUp(one)
	if err != nil {
		return 0, err
	}
	b, err := sumUp(other)
	if err != nil {
		return 0, err
	}
	var differ []string
	either := maps.Clone(a)
	maps.Copy(either, b)
	for _, name := range slices.Sorted(maps.Keys(either)) {
		if a[name] != b[name] {
			differ = append(differ, fmt.Sprintf("%s: %.12s, then %.12s", name, a[name], b[name]))
		}
	}
	if len(differ) > 0 {
		return 0, fmt.Errorf("two builds of the same commit differ, so nobody could check that a release is built from it:\n  %s", strings.Join(differ, "\n  "))
	}
	return len(a), nil
}

func (b *building) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(b.dir, name), content, 0o644)
}

// ref is an image's name with its tag.
func (o options) ref(name string) string { return o.registry + "/" + name + ":" + o.version }

func (b *building) images(ctx context.Context) error {
	var lines strings.Builder
	for _, name := range program.InImages {
		digest, programs, err := b.source.WriteImage(ctx, name, b.ref(name), b.dir, imageFile(name, b.version), arches...)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.digests[name], b.programs = digest.String(), append(b.programs, programs...)
		fmt.Fprintf(&lines, "%s@%s\n", b.ref(name), digest)
		say("built: %s, %.19s…", b.ref(name), digest)
	}
	return b.write(imagesFile, []byte(lines.String()))
}

func (b *building) plugins(ctx context.Context) error {
	licence, err := os.ReadFile(filepath.Join(b.source.Root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, p := range b.plugin {
		made, err := b.source.Build(ctx, "./operator/"+plugin, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		b.programs = append(b.programs, made)
		in := files{"LICENSE": licence, program.Notices: made.Notices(), executable(p): made.Content}
		pack := func() ([]byte, error) { return in.tgz(b.source.At, executable(p)) }
		if p.OS == "windows" {
			pack = func() ([]byte, error) { return in.zip(b.source.At) }
		}
		content, err := pack()
		if err := errors.Join(err, b.write(pluginFile(b.version, p), content)); err != nil {
			return err
		}
		say("built: %s", pluginFile(b.version, p))
	}
	return nil
}

// executable is the plugin's name, by which kubectl finds it.
func executable(p program.Platform) string {
	if p.OS == "windows" {
		return plugin + ".exe"
	}
	return plugin
}

func pluginFile(version string, p program.Platform) string {
	if p.OS == "windows" {
		return fmt.Sprintf("%s-%s-%s.zip", plugin, version, p)
	}
	return fmt.Sprintf("%s-%s-%s.tar.gz", plugin, version, p)
}

var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// usualRegistry is where released images are, and the checkout's chart has chartRegistry for it.
const (
	usualRegistry = "ghcr.io/registrar-dev"
	chartRegistry = "  registry: " + usualRegistry + "\n"
)

// imagesAnnotation is where a chart names its images, for who mirrors or scans them; ours takes their digests from it.
const imagesAnnotation = "artifacthub.io/images"

func (b *building) chart(ctx context.Context) error {
	work, err := os.MkdirTemp("", "registrar-chart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	chart := filepath.Join(work, "registrar")
	if err := os.CopyFS(chart, os.DirFS(filepath.Join(b.source.Root, "charts", "registrar"))); err != nil {
		return err
	}
	file := filepath.Join(chart, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text = chartVersions.ReplaceAll(text, []byte("${1}: "+b.version))
	images := "annotations:\n  " + imagesAnnotation + ": |\n"
	for _, name := range program.InImages {
		images += fmt.Sprintf("    - name: %s\n      image: %s@%s\n", name, b.ref(name), b.digests[name])
	}
	before := text
	if text = bytes.Replace(text, []byte("annotations:\n"), []byte(images), 1); bytes.Equal(before, text) {
		return errors.New("the file Chart.yaml has no annotations")
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	file = filepath.Join(chart, "values.yaml")
	if text, err = os.ReadFile(file); err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(chartRegistry)) {
		return fmt.Errorf("values.yaml has no line %q", chartRegistry)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(chartRegistry), []byte("  registry: "+b.registry+"\n"), 1), 0o644); err != nil {
		return err
	}
	if _, err := b.source.Run(ctx, work, helmEnv(work), filepath.Join(b.kube, "helm"), "package", chart, "--destination", work); err != nil {
		return err
	}
	// Helm has chosen the files; it would write the time of day into the archive.
	chosen, err := unpack(filepath.Join(work, chartFile(b.version)))
	if err != nil {
		return err
	}
	content, err := chosen.tgz(b.source.At)
	return errors.Join(err, b.write(chartFile(b.version), content))
}

// helmEnv keeps a Helm away from the settings of whoever runs it.
func helmEnv(dir string) []string {
	return []string{"HELM_CONFIG_HOME=" + dir, "HELM_CACHE_HOME=" + dir, "HELM_DATA_HOME=" + dir}
}

// operatorImage is what the overlays have in the place of the operator's image.
const operatorImage = "image: registrar-operator:latest"

func (b *building) manifests(ctx context.Context) error {
	kustomize := func(folder string) (string, error) {
		return b.source.Run(ctx, b.source.Root, nil, filepath.Join(b.kube, "kubectl"), "kustomize", filepath.Join("config", folder))
	}
	crds, err := kustomize("crd")
	if err := errors.Join(err, b.write(crdsFile, []byte(crds))); err != nil {
		return err
	}
	for _, overlay := range overlays {
		text, err := kustomize(overlay)
		if err != nil {
			return err
		}
		if strings.Count(text, operatorImage+"\n") != 1 {
			return fmt.Errorf("config/%s has not one %q to replace", overlay, operatorImage)
		}
		text = strings.Replace(text, operatorImage+"\n", "image: "+b.registry+"/operator@"+b.digests["operator"]+"\n", 1)
		if err := b.write(operatorFile(overlay), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

var packageVersion = regexp.MustCompile(`(?m)^  "version": ".*",$`)

func (b *building) typescript(ctx context.Context) error {
	work, err := os.MkdirTemp("", "registrar-client-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	sources, err := os.ReadDir(filepath.Join(b.source.Root, client))
	if err != nil {
		return err
	}
	all := files{}
	for _, e := range sources { // not what npm and tsc have made of it in the checkout
		from := filepath.Join(b.source.Root, client, e.Name())
		switch {
		case slices.Contains([]string{"node_modules", "dist"}, e.Name()):
		case e.IsDir():
			in, err := below(from)
			if err != nil {
				return err
			}
			maps.Copy(all, in.under(e.Name()))
		default:
			if all[e.Name()], err = os.ReadFile(from); err != nil {
				return err
			}
		}
	}
	if all["LICENSE"], err = os.ReadFile(filepath.Join(b.source.Root, "LICENSE")); err != nil {
		return err
	}
	if !packageVersion.Match(all["package.json"]) {
		return errors.New("package.json has no version")
	}
	all["package.json"] = packageVersion.ReplaceAll(all["package.json"], []byte(`  "version": "`+b.version+`",`))
	if err := errors.Join(all.write(work), os.Symlink(b.modules, filepath.Join(work, "node_modules"))); err != nil {
		return err
	}
	if _, err := b.source.Run(ctx, work, nil, filepath.Join("node_modules", ".bin", "tsc")); err != nil {
		return err
	}
	_, err = b.source.Run(ctx, work, nil, "npm", "pack", "--silent", "--pack-destination", b.dir)
	return err
}

func (b *building) documents(ctx context.Context) error {
	work, err := os.MkdirTemp("", "registrar-documents-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	here := program.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
	prints, writes, site := filepath.Join(work, "document"), filepath.Join(work, "write"), filepath.Join(work, "site")
	if err := errors.Join(b.source.Compile(ctx, "./api-server/internal/openapi/document", here, prints),
		b.source.Compile(ctx, "./api-server/internal/docsite/write", here, writes)); err != nil {
		return err
	}
	for name, file := range map[string]string{"partner": partnerAPI, "platform": platformAPI} {
		text, err := b.source.Run(ctx, work, nil, prints, name)
		if err := errors.Join(err, b.write(file, []byte(text))); err != nil {
			return err
		}
	}
	text, err := b.source.Run(ctx, work, nil, prints, "schemas")
	if err != nil {
		return err
	}
	var byType map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &byType); err != nil {
		return err
	}
	schemas := files{}
	for name, schema := range byType {
		schemas[name+".json"] = append(slices.Clone([]byte(schema)), '\n')
	}
	if _, err := b.source.Run(ctx, work, nil, writes, site); err != nil {
		return err
	}
	pages, err := below(site)
	if err != nil {
		return err
	}
	for file, in := range map[string]files{schemasFile(b.version): schemas.under("event-schemas"), docsFile(b.version): pages.under("docs")} {
		content, err := in.tgz(b.source.At)
		if err := errors.Join(err, b.write(file, content)); err != nil {
			return err
		}
	}
	return nil
}

func (b *building) notes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(b.source.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, unreleased, err := notesOf(string(changelog), b.version, b.final)
	if err != nil {
		return err
	}
	if unreleased {
		say("a trial: CHANGELOG.md says nothing of %s, so the notes are its unreleased changes", b.version)
	}
	return b.write(notesFile, []byte(text))
}

var (
	heading  = regexp.MustCompile(`(?m)^## .*\n`)
	relative = regexp.MustCompile(`\]\(((?:docs|api-server|charts|hack|config|operator)/[^)]*)\)`)
)

// notesOf is what the changelog says of a version; in a trial, where that is nothing, the unreleased changes.
func notesOf(changelog, version string, final bool) (text string, unreleased bool, err error) {
	part := func(title string) string {
		for _, at := range heading.FindAllStringIndex(changelog, -1) {
			if strings.HasPrefix(changelog[at[0]:at[1]], "## ["+title+"]") {
				rest := changelog[at[1]:]
				if next := heading.FindStringIndex(rest); next != nil {
					rest = rest[:next[0]]
				}
				return strings.TrimSpace(rest)
			}
		}
		return ""
	}
	text, where := part(version), "v"+version
	if text == "" && !final {
		text, where, unreleased = part("Unreleased"), "main", true
	}
	if text == "" {
		return "", false, fmt.Errorf("CHANGELOG.md says nothing of version %s: give it the heading ## [%s] - and the day", version, version)
	}
	if unreleased {
		text = "A trial of version " + version + ": these are the unreleased changes.\n\n" + text
	}
	// On the page of a release nothing is beside the notes.
	return relative.ReplaceAllString(text, "](https://github.com/registrar-dev/registrar/blob/"+where+"/$1)") + "\n", unreleased, nil
}

func (b *building) list(context.Context) error {
	sums, err := sumUp(b.dir)
	if err != nil {
		return err
	}
	content, err := b.source.ReleaseSPDX(sums, b.programs)
	return errors.Join(err, b.write(listFile(b.version), content))
}
