// Command revise counts the revisions of the definitions that controller-gen has written into the first folder: it
// gives each its revision as an annotation, records it in revisions.txt, and copies the definition to the other folders.
// A definition has another revision when it says something else; its descriptions do not count.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/registrar-dev/registrar/operator/internal/definition"
)

func main() {
	if err := revise("revisions.txt", os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func revise(record, folder string, copies ...string) error {
	known, err := recorded(record)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the developer names the folder
		if err != nil {
			return err
		}
		d, err := next(known, text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		_, _ = fmt.Fprintf(&lines, "%s %d %s\n", d.Name, d.Revision, d.Digest)
		for _, into := range append([]string{folder}, copies...) {
			if err := os.WriteFile(filepath.Join(into, filepath.Base(file)), stamp(text, d.Revision), 0o644); err != nil { //nolint:gosec // for everybody to see
				return err
			}
		}
	}
	return os.WriteFile(record, []byte(lines.String()), 0o644) //nolint:gosec // for everybody to see
}

// recorded are the definitions of the record, by name.
func recorded(record string) (map[string]definition.Definition, error) {
	text, err := os.ReadFile(record)
	if err != nil {
		return nil, err
	}
	all, err := definition.Parse(string(text))
	known := map[string]definition.Definition{}
	for _, d := range all {
		known[d.Name] = d
	}
	return known, err
}

// next is the known definition, or the one that follows it if the text says something else.
func next(known map[string]definition.Definition, text []byte) (definition.Definition, error) {
	var crd struct {
		Metadata metav1.ObjectMeta
		Spec     map[string]any
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return definition.Definition{}, err
	}
	undescribed(crd.Spec)
	content, err := json.Marshal(crd.Spec)
	if err != nil {
		return definition.Definition{}, err
	}
	sum := sha256.Sum256(content)
	d := known[crd.Metadata.Name]
	if digest := hex.EncodeToString(sum[:]); digest != d.Digest {
		d = definition.Definition{Name: crd.Metadata.Name, Revision: d.Revision + 1, Digest: digest}
	}
	return d, nil
}

// undescribed removes all descriptions. A field of this name is a map, and stays.
func undescribed(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, is := v["description"].(string); is {
			delete(v, "description")
		}
		for _, inner := range v {
			undescribed(inner)
		}
	case []any:
		for _, inner := range v {
			undescribed(inner)
		}
	}
}

var (
	stamped     = regexp.MustCompile(`(?m)^    ` + definition.Annotation + `: .*\n`)
	annotations = regexp.MustCompile(`(?m)^  annotations:\n(    .*\n)*`)
)

// stamp writes the revision behind the annotations of controller-gen, whatever stood there.
func stamp(text []byte, revision int) []byte {
	return annotations.ReplaceAll(stamped.ReplaceAll(text, nil), fmt.Appendf(nil, "${0}    %s: %q\n", definition.Annotation, fmt.Sprint(revision)))
}
