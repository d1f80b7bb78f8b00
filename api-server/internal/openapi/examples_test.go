package openapi_test

import (
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/internal/kit/apicheck"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Every call and answer in JSON has an example, and a list's is its last page: a mock that answers with it ends.
func TestEveryCallHasExamples(t *testing.T) {
	t.Parallel()
	doc := read(t, openapi.Partner())
	responses := doc["components"].(object)["responses"].(object)
	exampled := func(at string, of object) {
		bodies, _ := of["content"].(object)
		for media, content := range bodies {
			content := content.(object)
			examples := []any{content["example"]}
			if named, ok := content["examples"].(object); ok {
				examples = nil
				for _, one := range named {
					examples = append(examples, one.(object)["value"])
				}
			}
			for _, example := range examples {
				if media == "application/json" && !check.True(t, "there is an example", example != nil, "%s", at) {
					continue
				}
				if example, ok := example.(object); ok && example["has_more"] != nil {
					check.Equal(t, "has_more", example["has_more"], any(false), "%s", at)
				}
			}
		}
	}
	for path, item := range doc["paths"].(object) {
		for method, operation := range item.(object) {
			operation := operation.(object)
			if body, ok := operation["requestBody"].(object); ok {
				exampled(method+" "+path, body)
			}
			for status, response := range operation["responses"].(object) {
				if response := response.(object); response["$ref"] == nil {
					exampled(method+" "+path+" "+status, response)
				}
			}
		}
	}
	for name, response := range responses {
		exampled(name, response.(object))
	}
}

// The documents are valid, and their examples match their schemas and have no other fields.
func TestTheDocumentsAreValid(t *testing.T) {
	t.Parallel()
	for name, document := range map[string][]byte{"partner": openapi.Partner(), "platform": openapi.Platform()} {
		check.NoError(t, apicheck.Valid(document), "%s", name)
	}
}
