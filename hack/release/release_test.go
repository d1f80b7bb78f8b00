package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/program"
	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

const version = "1.2.3"

// release is one of this checkout, with all that the program builds but for platforms that this machine has not.
type release struct {
	options

	dir    string
	tools  tools
	source program.Source
	key    *key
}

var made *release // by the first test that needs it: that takes a while

func TestMain(m *testing.M) {
	code := m.Run()
	if made != nil {
		_ = os.RemoveAll(made.dir) // a leftover in the system's folder for such
	}
	os.Exit(code)
}

func built(t *testing.T) *release {
	t.Helper()
	if made != nil {
		return made
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		nottested.Skip(t, "KUBEBUILDER_ASSETS names no kubectl and no helm; make test prepares them")
	}
	root, err := stack.Root()
	must(t, err)
	tools, err := findTools(t.Context(), root)
	if err != nil {
		nottested.Skip(t, "no release can be built here: %v", err)
	}
	dir, err := os.MkdirTemp("", "registrar-release-") //nolint:usetesting // several tests use it
	must(t, err)
	r := &release{dir: dir, tools: tools, options: options{version: version, out: dir, registry: "registry.example/registrar", once: true,
		plugin: []program.Platform{{OS: runtime.GOOS, Arch: runtime.GOARCH}}}}
	r.source, err = program.Of(t.Context(), root, version)
	must(t, err)
	must(t, clear(dir))
	must(t, r.build(t.Context(), r.source, tools, dir))
	r.key, err = r.signer()
	must(t, err)
	must(t, r.sign(r.source, r.key, time.Now()))
	made = r
	return made
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	if check.True(t, "it is refused", err != nil, "for %s", want) {
		check.Contains(t, "the error", err.Error(), want, "")
	}
}

func (r *release) verification() *verification {
	return &verification{dir: r.dir, version: r.version, registry: r.registry, plugin: r.plugin, public: r.key.public, tools: r.tools}
}

// change changes a file for the time of a test.
func (r *release) change(t *testing.T, name string, edit func([]byte) []byte) {
	t.Helper()
	file := filepath.Join(r.dir, name)
	content, err := os.ReadFile(file)
	must(t, err)
	t.Cleanup(func() { must(t, os.WriteFile(file, content, 0o600)) })
	must(t, os.WriteFile(file, edit(slices.Clone(content)), 0o600))
}

// flip changes one byte in the middle.
func flip(content []byte) []byte {
	content[len(content)/2] ^= 1
	return content
}

func TestAReleaseOfThisCheckoutIsRight(t *testing.T) {
	must(t, built(t).verification().run(t.Context()))
	must(t, table(built(t).dir))
}

func TestAChangedByteIsRefused(t *testing.T) {
	r := built(t)
	names, err := list(r.dir)
	must(t, err)
	if len(names) < 35 {
		t.Fatalf("a release of %d files: %v", len(names), names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			r.change(t, name, flip)
			v := r.verification()
			_, err := v.checkSums(t.Context())
			if err == nil {
				_, err = v.checkSignatures(t.Context())
			}
			check.True(t, "it is refused", err != nil, "")
			if err != nil && name != sumsFile {
				check.Contains(t, "the error", err.Error(), name, "")
			}
		})
	}
}

func TestAFileMoreOrLessIsRefused(t *testing.T) {
	r := built(t)
	must(t, os.WriteFile(filepath.Join(r.dir, "more.yaml"), []byte("kind: Pod\n"), 0o600))
	_, err := r.verification().checkSums(t.Context())
	must(t, os.Remove(filepath.Join(r.dir, "more.yaml")))
	refused(t, err, "more.yaml is no file of the release")
	aside := filepath.Join(t.TempDir(), crdsFile)
	must(t, os.Rename(filepath.Join(r.dir, crdsFile), aside))
	_, err = r.verification().checkSums(t.Context())
	must(t, os.Rename(aside, filepath.Join(r.dir, crdsFile)))
	refused(t, err, crdsFile+" is missing")
}

// Who changes a file can write its sum, but not sign it; nor does another key do.
func TestANewSumNeedsTheKey(t *testing.T) {
	r := built(t)
	old := r.sumOf(t, crdsFile)
	r.change(t, crdsFile, flip)
	changed := r.sumOf(t, crdsFile)
	r.change(t, sumsFile, func(text []byte) []byte { return bytes.Replace(text, []byte(old), []byte(changed), 1) })
	v := r.verification()
	_, err := v.checkSums(t.Context())
	must(t, err)
	_, err = v.checkSignatures(t.Context())
	refused(t, err, sumsSignature+" does not sign "+sumsFile)

	other, err := options{}.signer()
	must(t, err)
	r.change(t, publicKey, func([]byte) []byte { return other.public })
	_, err = v.checkSignatures(t.Context())
	refused(t, err, publicKey+" is another key")
	// Whoever has no key to compare with is told so, and the signatures are still the other key's.
	v.public = nil
	_, err = v.checkSignatures(t.Context())
	refused(t, err, "does not sign")
	v.unsigned = true
	said, err := v.checkSignatures(t.Context())
	must(t, err)
	check.Contains(t, "what is said of a release that only the workflow signs", said, "none here", "")
}

func (r *release) sumOf(t *testing.T, name string) string {
	t.Helper()
	sums, err := sumUp(r.dir)
	must(t, err)
	return sums[name]
}

// A release that is signed is checked all the same: a fault of the build is none of an attacker's.
func TestWhatIsSignedIsCheckedAllTheSame(t *testing.T) {
	r := built(t)
	replace := func(old, by string) func([]byte) []byte {
		return func(text []byte) []byte {
			if !bytes.Contains(text, []byte(old)) {
				t.Fatalf("there is no %q", old)
			}
			return bytes.ReplaceAll(text, []byte(old), []byte(by))
		}
	}
	archive := func(name, old, by string) func([]byte) []byte {
		return func([]byte) []byte {
			in, err := unpack(filepath.Join(r.dir, name))
			must(t, err)
			for path, content := range in {
				in[path] = bytes.ReplaceAll(content, []byte(old), []byte(by))
			}
			content, err := in.tgz(r.source.At)
			must(t, err)
			return content
		}
	}
	without := func(name, path string) func([]byte) []byte {
		return func([]byte) []byte {
			in, err := unpack(filepath.Join(r.dir, name))
			must(t, err)
			if delete(in, path); len(in) == 0 {
				t.Fatalf("%s has nothing but %s", name, path)
			}
			content, err := in.tgz(r.source.At)
			must(t, err)
			return content
		}
	}
	empty := func([]byte) []byte { return nil }
	refs, err := readImages(r.dir)
	must(t, err)
	_, worker, _ := strings.Cut(refs["worker"], "@")
	other := "sha256:" + strings.Repeat("0", 64)
	own := pluginFile(version, r.plugin[0])
	commit := strings.TrimSuffix(r.source.Revision, "-dirty")
	for _, c := range []struct {
		name  string
		edit  func([]byte) []byte
		check func(*verification, context.Context) (string, error)
		want  string
	}{
		{provenanceFile, replace(strings.TrimPrefix(worker, "sha256:"), strings.Repeat("0", 64)), (*verification).checkProvenance, "not in the release"},
		{provenanceFile, replace(predicateType, "https://slsa.dev/provenance/v2"), (*verification).checkProvenance, "not a " + predicateType},
		{provenanceFile, replace(`"`+crdsFile+`"`, `"other.yaml"`), (*verification).checkProvenance, "other.yaml"},
		{provenanceFile, replace(`"version": "`+version, `"version": "9.9.9`), (*verification).checkProvenance, "version"},
		{provenanceFile, replace(commit, strings.Repeat("0", 40)), func(v *verification, ctx context.Context) (string, error) {
			_, err := v.checkProvenance(ctx)
			must(t, err)
			return v.checkImages(ctx)
		}, "and the provenance"},
		{imagesFile, replace(worker, other), (*verification).checkImages, imagesFile + " says"},
		{chartFile(version), archive(chartFile(version), worker, other), (*verification).checkChart, "it runs"},
		{chartFile(version), archive(chartFile(version), "appVersion: "+version, "appVersion: 9.9.9"), (*verification).checkChart, "9.9.9"},
		{crdsFile, replace("kind: CustomResourceDefinition", "kind: Definition"), (*verification).checkManifests, crdsFile},
		{operatorFile("default"), replace("@sha256:", ":1.2.3@sha256:"), (*verification).checkManifests, operatorFile("default")},
		{partnerAPI, replace("version: '"+version+"'", "version: '1'"), (*verification).checkDocuments, partnerAPI},
		{schemasFile(version), archive(schemasFile(version), `"type": "object"`, `"type": "objekt"`), (*verification).checkDocuments, "metaschema"},
		{docsFile(version), without(docsFile(version), "docs/index.html"), (*verification).checkDocuments, "docs/index.html"},
		{clientFile(version), archive(clientFile(version), `"version": "`+version, `"version": "0.0.0`), (*verification).checkClient, "0.0.0"},
		{listFile(version), replace(r.sumOf(t, crdsFile), strings.Repeat("0", 64)), (*verification).checkLists, crdsFile},
		{own, without(own, "LICENSE"), (*verification).checkPlugins, "its licences"},
		{notesFile, empty, (*verification).checkNotes, "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.change(t, c.name, c.edit)
			v := r.verification()
			var err error
			v.revision = r.source.Revision
			if v.sums, err = readSums(r.dir); err != nil {
				t.Fatal(err)
			}
			if v.refs, err = readImages(r.dir); err != nil {
				t.Fatal(err)
			}
			_, err = c.check(v, t.Context())
			refused(t, err, c.want)
		})
	}
}

// The commands of the page on releases, in a folder with one.
func TestThePageOnReleasesIsTrue(t *testing.T) {
	r := built(t)
	if _, err := exec.LookPath("openssl"); err != nil {
		nottested.Skip(t, "no openssl on PATH")
	}
	page, err := os.ReadFile(filepath.Join(r.source.Root, "docs", "releases.md"))
	must(t, err)
	dir := t.TempDir() // the commands write files of their own
	must(t, os.CopyFS(dir, os.DirFS(r.dir)))
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllSubmatch(page, -1)
	check.Equal(check.Now(t), "blocks of commands", len(blocks), 2, "")
	for _, block := range blocks {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", string(block[1]))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		check.NoError(t, err, "%s\n%s", block[1], out)
	}
	// They refuse what is changed.
	content, err := os.ReadFile(filepath.Join(dir, "api-server"+payload))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "api-server"+payload), flip(content), 0o600))
	for _, block := range blocks {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", string(block[1]))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		check.True(t, "a changed file is refused", err != nil, "%s\n%s", block[1], out)
	}
	// Every file of a release is in the page's table, as it is or by an example.
	names, err := list(r.dir)
	must(t, err)
	for _, name := range names {
		check.True(t, "the table of the end knows it", about(name) != "", "%s", name)
	}
}

func TestTwoBuildsThatDifferAreRefused(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, other} {
		must(t, files{"a": []byte("a"), "b": []byte("b")}.write(dir))
	}
	n, err := compare(one, other)
	must(t, err)
	check.Equal(t, "number of files", n, 2, "")
	must(t, files{"b": []byte("c"), "more": []byte("m")}.write(other))
	_, err = compare(one, other)
	refused(t, err, "b: ")
	refused(t, err, "more: ")
}

func TestWhatMustNotBeReleasedIsRefused(t *testing.T) {
	for _, v := range []string{"", "v1.2.3", "1.2", "1.2.3+1", "01.2.3", "1.2.3 1.2.4"} {
		refused(t, run(t.Context(), options{version: v}), "make release VERSION=1.2.3")
	}
	refused(t, run(t.Context(), options{version: version, final: true, dirty: true}), "-dirty")

	foreign := t.TempDir()
	must(t, files{"letter": []byte("dear")}.write(foreign))
	refused(t, clear(foreign), "is no release")
	if _, err := os.Stat(filepath.Join(foreign, "letter")); err != nil {
		t.Error(err)
	}

	repository := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		_, err := program.Source{}.Run(t.Context(), repository, []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org"}, "git", args...)
		must(t, err)
	}
	checked := func(o options, want string) {
		t.Helper()
		s, err := program.Of(t.Context(), repository, version)
		must(t, err)
		if err := o.check(t.Context(), s); want == "" {
			must(t, err)
		} else {
			refused(t, err, want)
		}
	}
	checked(options{}, "git checkout")
	git("init", "--quiet")
	must(t, files{"file": []byte("1")}.write(repository))
	git("add", ".")
	git("commit", "--quiet", "--message=First")
	checked(options{version: version}, "")
	checked(options{version: version, final: true}, "v"+version)
	git("tag", "v"+version)
	checked(options{version: version, final: true}, "")
	must(t, files{"file": []byte("2")}.write(repository))
	checked(options{version: version}, "file")
	checked(options{version: version, dirty: true}, "")
}

// A key of one's own signs, whether OpenSSL or cosign has made it.
func TestAKeyOfOnesOwnSigns(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		nottested.Skip(t, "no openssl on PATH")
	}
	file := filepath.Join(t.TempDir(), "release.key")
	_, err := program.Source{}.Run(t.Context(), t.TempDir(), nil, "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file)
	must(t, err)
	k, err := options{key: file}.signer()
	must(t, err)
	signed, err := k.sign([]byte("text"))
	must(t, err)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signed)))
	must(t, err)
	must(t, k.VerifySignature(bytes.NewReader(raw), strings.NewReader("text")))
	must(t, os.WriteFile(file, []byte("no key"), 0o600))
	_, err = options{key: file}.signer()
	refused(t, err, file)
	none, err := options{final: true}.signer()
	must(t, err)
	check.True(t, "a final release has no key of its own", none == nil, "")
}
