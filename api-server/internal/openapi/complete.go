package openapi

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// complete adds to a document what it has in common with the other: the answers and headers that
// every operation has, and the components that these refer to.
func complete(document, common []byte) []byte {
	d, c := parse(document), parse(common)
	for _, item := range fields(field(d, "paths")) {
		for _, operation := range fields(item) {
			responses := field(operation, "responses")
			if responses == nil {
				continue // the path's parameters
			}
			merge(responses, field(c, "responses"))
			if field(operation, "requestBody") != nil {
				merge(responses, field(c, "responses_to_bodies"))
			}
			sortFields(responses)
			addHeaders(responses, field(c, "headers"))
		}
	}
	merge(field(d, "components"), field(c, "components"))
	addHeaders(field(field(d, "components"), "responses"), field(c, "headers"))
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(d); err != nil {
		panic("openapi: an embedded document is broken: " + err.Error())
	}
	return text.Bytes()
}

// parse reads an object.
func parse(document []byte) *yaml.Node {
	var d yaml.Node
	if err := yaml.Unmarshal(document, &d); err != nil {
		panic("openapi: an embedded document is broken: " + err.Error())
	}
	return d.Content[0]
}

// addHeaders adds the headers to each response that is written out and not referred to.
func addHeaders(responses, headers *yaml.Node) {
	for _, response := range fields(responses) {
		if field(response, "$ref") == nil {
			merge(response, object("headers", headers))
		}
	}
}

// fields goes through an object's fields; nil has none, nor has a list.
func fields(object *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if object == nil || object.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i < len(object.Content); i += 2 {
			if !yield(object.Content[i].Value, object.Content[i+1]) {
				return
			}
		}
	}
}

// field is an object's field; nil where it has none of that name.
func field(object *yaml.Node, name string) *yaml.Node {
	for n, value := range fields(object) {
		if n == name {
			return value
		}
	}
	return nil
}

func object(name string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: name}, value}}
}

// merge adds the fields of from to an object, and into objects that both have. What the object has
// already stays.
func merge(object, from *yaml.Node) {
	for i := 0; i < len(from.Content); i += 2 {
		name, value := from.Content[i], from.Content[i+1]
		switch has := field(object, name.Value); {
		case has == nil && value.Kind == yaml.MappingNode:
			copied := *value
			copied.Content = slices.Clone(value.Content)
			object.Content = append(object.Content, name, &copied)
		case has == nil:
			object.Content = append(object.Content, name, value)
		case has.Kind == yaml.MappingNode:
			merge(has, value)
		}
	}
}

// sortFields puts an object's fields in the order of their names.
func sortFields(object *yaml.Node) {
	pairs := slices.Collect(slices.Chunk(object.Content, 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return strings.Compare(a[0].Value, b[0].Value) })
	object.Content = slices.Concat(pairs...)
}
