// Package licences finds the licences of what packages are built from: their modules, Go's own library,
// and the files of other projects that the checkout holds.
package licences

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/licenseclassifier/v2/assets"
)

// Allowed are the licences, by their SPDX names, that a dependency may have: each lets the programs be
// passed on under Apache-2.0 beside it.
var Allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC-BY-4.0", "CC0-1.0", "FTL", "ISC",
	"MIT", "MPL-2.0", "OFL-1.1", "Unlicense", "Zlib"}

// Stdlib is the name of Go's own library, as vulnerability databases have it.
const Stdlib = "stdlib"

// A Dependency is a module, or files of another project, with its licences.
type Dependency struct {
	Name, Version string
	Module        bool     // it is one of go.mod
	Licences      []string // SPDX names, sorted
	Texts         []Text   // licences and notices
}

// A Text is one file.
type Text struct {
	Name    string // below the module
	Content []byte
}

// embedded are files of other projects in the checkout, by the package that embeds them.
var embedded = map[string]struct{ name, folder string }{
	"github.com/registrar-dev/registrar/api-server/internal/docsite": {"minisearch (npm)", "search"},
	"github.com/registrar-dev/registrar/api-server/internal/openapi": {"swagger-ui-dist (npm)", "viewer"},
}

// alsoIn is where a module keeps the licences of what it embeds itself.
var alsoIn = map[string]string{"github.com/hibiken/asynqmon": "ui/build/static/js"}

// stated are licences that were read by a person, where a module says in words of its own which it has.
var stated = map[string][]string{
	"github.com/golang/freetype":          {"FTL"},        // "your choice of" it and GPL-2.0; draws the charts of benches
	"github.com/opencontainers/go-digest": {"Apache-2.0"}, // CC-BY-SA-4.0 is its documentation's
	"github.com/in-toto/attestation":      {"Apache-2.0"}, // its LICENSE is the header of files alone
	"github.com/spdx/tools-golang":        {"Apache-2.0"}, // "or" GPL-2.0
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version string }
	}
}

// Of lists what the packages of a module are built from for a system and an architecture, sorted by name; with
// tests, also what their tests need. dir is the module's folder.
func Of(ctx context.Context, dir, system, arch string, tests bool, packages ...string) ([]Dependency, error) {
	args := []string{"list", "-deps", "-json=ImportPath,Dir,Standard,Module"}
	if tests {
		args = append(args, "-test")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaints.Bytes())
	}
	found := map[string]*Dependency{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := p.addTo(found); err != nil {
			return nil, err
		}
	}
	if found[Stdlib], err = library(ctx); err != nil {
		return nil, err
	}
	all := make([]Dependency, 0, len(found))
	var unknown []error
	for _, d := range found {
		if d.Licences = stated[d.Name]; d.Licences == nil {
			if d.Licences, err = classify(d.Texts); err != nil {
				unknown = append(unknown, fmt.Errorf("%s %s: %w", d.Name, d.Version, err))
			}
		}
		all = append(all, *d)
	}
	if len(unknown) > 0 {
		return nil, errors.Join(unknown...)
	}
	slices.SortFunc(all, func(a, b Dependency) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// addTo adds what a package brings: the texts beside it and in the folders above, up to its module's.
func (p listed) addTo(found map[string]*Dependency) error {
	if e, ok := embedded[p.ImportPath]; ok {
		folder := filepath.Join(p.Dir, e.folder)
		version, err := os.ReadFile(filepath.Join(folder, "VERSION"))
		if err != nil {
			return err
		}
		found[e.name] = &Dependency{Name: e.name, Version: strings.TrimSpace(string(version))}
		return found[e.name].read(folder, folder)
	}
	m := p.Module
	if p.Standard || m == nil || own(m.Path) {
		return nil
	}
	name, version := m.Path, m.Version
	if m.Replace != nil {
		name, version = m.Replace.Path, m.Replace.Version
	}
	if found[name] == nil {
		found[name] = &Dependency{Name: name, Version: version, Module: true}
	}
	if folder := alsoIn[name]; folder != "" {
		if err := found[name].read(m.Dir, filepath.Join(m.Dir, folder)); err != nil {
			return err
		}
	}
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		if err := found[name].read(m.Dir, dir); err != nil {
			return err
		}
		if dir == m.Dir || len(dir) < len(m.Dir) {
			return nil
		}
	}
}

// own says whether a module is one of this repository's.
func own(module string) bool {
	const product = "github.com/registrar-dev/registrar"
	return module == product || strings.HasPrefix(module, product+"/")
}

// library is Go's own.
func library(ctx context.Context) (*Dependency, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	d := &Dependency{Name: Stdlib, Version: strings.TrimPrefix(version, "go")}
	return d, d.read(root, root)
}

var textFile = regexp.MustCompile(`(?i)^((un)?licen[cs]es?|copying|notice|patents|.*\.licen[cs]e)([-._].*)?$`)

// read takes the licences and notices of a folder, unless it has them.
func (d *Dependency) read(module, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		name, err := filepath.Rel(module, file)
		if err != nil {
			return err
		}
		has := slices.ContainsFunc(d.Texts, func(t Text) bool { return t.Name == name })
		if has || !e.Type().IsRegular() || !textFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		d.Texts = append(d.Texts, Text{name, content})
		slices.SortFunc(d.Texts, func(a, b Text) int { return strings.Compare(a.Name, b.Name) })
	}
	return nil
}

var (
	known      = sync.OnceValues(assets.DefaultClassifier)
	classifies sync.Mutex // a classifier adds the words that it meets to its dictionary
	classified = map[[sha256.Size]byte][]string{}
)

// classify names the licences of texts. A text without a known licence, such as a notice, adds none.
func classify(texts []Text) ([]string, error) {
	c, err := known()
	if err != nil {
		return nil, err
	}
	classifies.Lock()
	defer classifies.Unlock()
	var names []string
	for _, t := range texts {
		sum := sha256.Sum256(t.Content)
		of, done := classified[sum] // many modules have the same text, and many programs the same modules
		if !done {
			for _, m := range c.Match(c.Normalize(t.Content)).Matches {
				if m.MatchType == "License" && m.Confidence >= 0.9 {
					of = append(of, m.Name)
				}
			}
			classified[sum] = of
		}
		names = append(names, of...)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return nil, errors.New("no licence found")
	}
	return names, nil
}

// PURL is the package URL by which databases of vulnerabilities know it.
func (d Dependency) PURL() string {
	if npm, ok := strings.CutSuffix(d.Name, " (npm)"); ok {
		return "pkg:npm/" + npm + "@" + d.Version
	}
	return "pkg:golang/" + strings.ToLower(d.Name) + "@" + d.Version
}

// Expression is the licences as SPDX writes them together.
func (d Dependency) Expression() string { return strings.Join(d.Licences, " AND ") }

// Refused are the dependencies with a licence that is not allowed, a line each.
func Refused(all []Dependency) (lines []string) {
	for _, d := range all {
		for _, l := range d.Licences {
			if !slices.Contains(Allowed, l) {
				lines = append(lines, fmt.Sprintf("%s %s: %s", d.Name, d.Version, l))
			}
		}
	}
	return lines
}

// Notices is what is passed on with a program: the licences and notices of all that is in it.
func Notices(program string, all []Dependency) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Registrar's %s is licensed under Apache-2.0. It contains the software below, under its own terms.\n", program)
	for _, d := range all {
		fmt.Fprintf(&b, "\n%s\n%s %s: %s\n", strings.Repeat("=", 80), d.Name, d.Version, d.Expression())
		for _, t := range d.Texts {
			fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), t.Name, bytes.TrimSpace(t.Content))
		}
	}
	return b.Bytes()
}
