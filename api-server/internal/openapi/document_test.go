package openapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// object is any object of a document.
type object = map[string]any

func read(t *testing.T, document []byte) (doc object) {
	t.Helper()
	if err := yaml.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Every query is checked, so every operation may answer 400.
func TestEveryOperationDocuments400(t *testing.T) {
	t.Parallel()
	for name, document := range map[string][]byte{"partner": openapi.Partner(), "platform": openapi.Platform()} {
		for path, item := range read(t, document)["paths"].(object) {
			for method, operation := range item.(object) {
				operation, ok := operation.(object)
				if !ok { // the path's parameters
					continue
				}
				if operation["responses"].(object)["400"] == nil {
					t.Errorf("%s: %s %s has no 400", name, strings.ToUpper(method), path)
				}
			}
		}
	}
}

// The events that a URL may select are those that there are.
func TestTheEventsToSelectAreDocumented(t *testing.T) {
	t.Parallel()
	for name, document := range map[string][]byte{"partner": openapi.Partner(), "platform": openapi.Platform()} {
		schemas := read(t, document)["components"].(object)["schemas"].(object)
		var documented []webhook.Type
		for _, one := range schemas["WebhookEventType"].(object)["enum"].([]any) {
			documented = append(documented, webhook.Type(one.(string)))
		}
		check.Slices(t, "the events", documented, webhook.Types(), "%s", name)
	}
}

// requests are the schemas of what is sent: there a null means that a field is not sent.
var requests = []string{"ProvisionRequest", "TargetScorePlanRequest", "NewAssignment", "EndAccess", "Boolean", "TextList"}

// A value of an answer that may be null is described: when it is.
func TestEveryNullOfAnAnswerIsExplained(t *testing.T) {
	t.Parallel()
	doc := read(t, openapi.Partner())
	schemas := doc["components"].(object)["schemas"].(object)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(path, one)
			}
		case object:
			properties, _ := v["properties"].(object)
			for name, p := range properties {
				if p, ok := p.(object); ok && nullable(schemas, p) && !explained(schemas, p) {
					t.Errorf("%s.%s may be null, and its description does not say when", path, name)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(path+"."+name, v[name])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if !slices.Contains(requests, name) {
			walk(name, schemas[name])
		}
	}
	for path, item := range doc["paths"].(object) {
		for method, operation := range item.(object) {
			if operation, ok := operation.(object); ok {
				walk(method+" "+path, operation["responses"])
			}
		}
	}
}

// target is the schema that s refers to; nil where it refers to none.
func target(schemas, s object) object {
	ref, _ := s["$ref"].(string)
	found, _ := schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(object)
	return found
}

func nullable(schemas, s object) bool {
	if to := target(schemas, s); to != nil {
		return nullable(schemas, to)
	}
	if types, ok := s["type"].([]any); ok && slices.Contains(types, any("null")) {
		return true
	}
	choices, _ := s["oneOf"].([]any)
	return s["type"] == "null" || slices.ContainsFunc(choices, func(one any) bool { return nullable(schemas, one.(object)) })
}

func explained(schemas, s object) bool {
	text, _ := s["description"].(string)
	to := target(schemas, s)
	return strings.Contains(strings.ToLower(text), "null") || to != nil && explained(schemas, to)
}
