package apicheck

import (
	"encoding/json"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// object is any object of a document.
type object = map[string]any

// strict is the document as tests hold a server to it. Readers of the API ignore fields that they do
// not know, so the document leaves its answers open; here they are closed, so that the server sends no
// field that is not documented. And a request's field has the one type that is best to send; here it has
// those of its x-also-accepts besides.
func strict(document []byte) ([]byte, error) {
	var doc object
	if err := yaml.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("the OpenAPI document cannot be read: %w", err)
	}
	components, _ := doc["components"].(object)
	schemas, _ := components["schemas"].(object)
	c := closing{schemas: schemas, parts: map[string]bool{}, done: map[string]bool{}}
	c.findParts(doc)
	responses, _ := components["responses"].(object)
	c.answers(responses)
	paths, _ := doc["paths"].(object)
	for _, item := range paths {
		item, _ := item.(object)
		for _, operation := range item {
			if operation, ok := operation.(object); ok {
				responses, _ := operation["responses"].(object)
				c.answers(responses)
			}
		}
	}
	return json.Marshal(loose(doc))
}

// closing closes the objects of answers.
type closing struct {
	schemas object
	parts   map[string]bool // schemas that others extend, which a closed one could not be
	done    map[string]bool
}

// findParts finds the schemas that are a part of another: of an allOf, or a choice beside fields that all choices have.
func (c closing) findParts(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			c.findParts(one)
		}
	case object:
		for _, part := range partsOf(v) {
			if part, ok := part.(object); ok {
				c.parts[named(part)] = true
			}
		}
		for _, one := range v {
			c.findParts(one)
		}
	}
}

func partsOf(s object) []any {
	parts, _ := s["allOf"].([]any)
	if s["properties"] != nil {
		one, _ := s["oneOf"].([]any)
		parts = append(parts[:len(parts):len(parts)], one...)
	}
	return parts
}

// named is the name of the schema that s refers to; "" where it refers to none.
func named(s object) string {
	ref, _ := s["$ref"].(string)
	return strings.TrimPrefix(ref, "#/components/schemas/")
}

func (c closing) answers(responses object) {
	for _, response := range responses {
		response, _ := response.(object)
		content, _ := response["content"].(object)
		for _, media := range content {
			if media, ok := media.(object); ok {
				media["schema"] = c.whole(media["schema"])
			}
		}
	}
}

// whole closes a schema, unless it says itself what else it takes.
func (c closing) whole(schema any) any {
	s, ok := schema.(object)
	if !ok {
		return schema
	}
	if name := named(s); name != "" {
		to, _ := c.schemas[name].(object)
		if c.parts[name] && to["type"] == "object" {
			c.inside(s)
			return object{"allOf": []any{s}, "unevaluatedProperties": false}
		}
		if !c.done[name] {
			c.done[name] = true
			c.schemas[name] = c.whole(to)
		}
		return s
	}
	c.inside(s)
	_, additional := s["additionalProperties"]
	_, unevaluated := s["unevaluatedProperties"]
	if (s["type"] == "object" || s["properties"] != nil || s["allOf"] != nil) && !additional && !unevaluated {
		s["unevaluatedProperties"] = false
	}
	return s
}

// inside closes what a schema holds and not the schema itself.
func (c closing) inside(s object) {
	if name := named(s); name != "" {
		if to, ok := c.schemas[name].(object); ok && !c.done[name] {
			c.done[name] = true
			c.inside(to)
		}
		return
	}
	properties, _ := s["properties"].(object)
	for name, p := range properties {
		properties[name] = c.whole(p)
	}
	for _, field := range []string{"items", "additionalProperties"} {
		if s[field] != nil {
			s[field] = c.whole(s[field])
		}
	}
	for _, part := range partsOf(s) {
		if part, ok := part.(object); ok {
			c.inside(part)
		}
	}
	choosing := []string{"oneOf", "anyOf"}
	if s["properties"] != nil {
		choosing = choosing[1:]
	}
	for _, field := range choosing {
		choices, _ := s[field].([]any)
		for i, one := range choices {
			choices[i] = c.whole(one)
		}
	}
}

// loose gives each schema the types of its x-also-accepts.
func loose(v any) any {
	switch v := v.(type) {
	case []any:
		for i, one := range v {
			v[i] = loose(one)
		}
	case object:
		for name, one := range v {
			v[name] = loose(one)
		}
		also, ok := v["x-also-accepts"].([]any)
		if !ok {
			return v
		}
		delete(v, "x-also-accepts")
		return object{"anyOf": []any{v, object{"type": also}}}
	}
	return v
}
