package openapi

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

var update = flag.Bool("update", false, "take the document of this checkout as that of the last release")

// released is the partner API's document of the last release, or of before the first one.
const released = "released/partner.yaml"

// What a caller or a receiver could rely on in the last release holds.
// Reference: conventions#versions.
func TestNothingBreaks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := output(t, "../..", "go", "run", "./api-server/internal/openapi/document")
	if *update {
		must(t, os.WriteFile(released, []byte(now), 0o600))
	}
	before, err := os.ReadFile(released)
	must(t, err)
	file := func(name, text string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, asAnswers(t, text), 0o600))
		return file
	}
	last := file("last.yaml", string(before))
	out, err := breaking(t, last, file("now.yaml", now))
	check.NoError(t, err, "what this changes would break programs that were written for the last release (docs/versions.md):\n%s", out)

	for what, edit := range map[string]*strings.Replacer{
		"a field of an event and of a list": strings.NewReplacer("score_label", "score_text"),
		"a field of an event alone":         strings.NewReplacer("days_left", "left"),
		"a call":                            strings.NewReplacer("/api/v1/catalog/:", "/api/v1/items/:"),
		"a parameter's values":              strings.NewReplacer("enum: [active, inactive]", "enum: [active]"),
	} {
		out, err := breaking(t, last, file("broken.yaml", edit.Replace(now)))
		check.True(t, "it is found that "+what+" went", err != nil, "%s", out)
	}
}

// asAnswers turns the webhooks of a document into calls that are answered with the event: what Registrar sends is
// held to the rules for answers. So are the events of the list, which are the same; among them new ones may come.
func asAnswers(t *testing.T, document string) []byte {
	t.Helper()
	var doc map[string]any
	must(t, yaml.Unmarshal([]byte(document), &doc))
	paths, _ := doc["paths"].(map[string]any)
	webhooks, _ := doc["webhooks"].(map[string]any)
	for name, item := range webhooks {
		post, _ := item.(map[string]any)["post"].(map[string]any)
		body, _ := post["requestBody"].(map[string]any)
		paths["/events/"+name] = map[string]any{"get": map[string]any{"operationId": name, "responses": map[string]any{
			"200": map[string]any{"description": "The event", "content": body["content"]}}}}
	}
	delete(doc, "webhooks")
	if components, ok := doc["components"].(map[string]any); ok {
		schemas, _ := components["schemas"].(map[string]any)
		listed, _ := schemas["Event"].(map[string]any)
		delete(listed, "oneOf")
		delete(listed, "discriminator")
	}
	text, err := yaml.Marshal(doc)
	must(t, err)
	return text
}

// breaking lets answers have new values, as docs/versions.md does.
func breaking(t *testing.T, last, now string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile=../tools/go.mod", "oasdiff", "breaking", "--fail-on=ERR", "--severity-levels=severity-levels.txt", last, now)
	return cmd.CombinedOutput()
}
