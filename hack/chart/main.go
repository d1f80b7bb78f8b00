// Command chart keeps the parts of the Helm chart that are made of others: the README, whose table
// of values comes from the comments in values.yaml (the form of helm-docs: "# -- description" above
// a value), and the custom resources' definitions, which are copied from config/crd.
//
//	go run ./hack/chart      in the repository
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/hack/stack"
)

//go:generate go run .

func main() {
	root, err := stack.Root()
	if err == nil {
		err = errors.Join(writeReadme(filepath.Join(root, "charts", "registrar")), copyDefinitions(root))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// writeReadme puts the table of values behind the README's marker.
func writeReadme(chart string) error {
	const marker = "<!-- The table is generated from values.yaml: make generate -->\n"
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	table, err := valuesTable(text)
	if err != nil {
		return err
	}
	name := filepath.Join(chart, "README.md")
	readme, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, _, found := strings.Cut(string(readme), marker)
	if !found {
		return fmt.Errorf("%s lacks the line %q", name, strings.TrimSpace(marker))
	}
	return os.WriteFile(name, []byte(before+marker+"\n"+table), 0o644)
}

// valuesTable is a Markdown table with a row for each value that has a description. A value without
// one, none above it and none below it, is an error.
func valuesTable(values []byte) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(values, &doc); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| value | default | description |\n|---|---|---|\n")
	if err := rows(&b, "", doc.Content[0]); err != nil {
		return "", err
	}
	return b.String(), nil
}

func rows(b *strings.Builder, prefix string, n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		path := prefix + key.Value
		_, description, described := strings.Cut(key.HeadComment, "# -- ")
		switch {
		case described:
			def, err := inline(value)
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", path, def, strings.ReplaceAll(description, "|", `\|`))
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			if err := rows(b, path+".", value); err != nil {
				return err
			}
		default:
			return fmt.Errorf("values.yaml: %s has no line \"# -- …\" that describes it", path)
		}
	}
	return nil
}

// inline is a value as one line of JSON.
func inline(n *yaml.Node) (string, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return "", err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(out.String()), err
}

// copyDefinitions takes config/crd/bases over into the chart, which cannot reach outside its own folder.
func copyDefinitions(root string) error {
	to := filepath.Join(root, "charts", "registrar", "files", "crds")
	names, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(names) == 0 {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(name)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
