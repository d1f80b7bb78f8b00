package openapi

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/version"
)

// complete adds to a document what it has in common with the other: the answers and headers that
// every operation has, and the components that these refer to. examples has what operations send
// and are answered; it may be empty. In a released program the document has the release's version.
func complete(document, common, examples []byte) []byte {
	d, c := parse(document), parse(common)
	if number := version.Number(); number != "" {
		*field(field(d, "info"), "version") = yaml.Node{Kind: yaml.ScalarNode, Style: yaml.SingleQuotedStyle, Value: number}
	}
	var e *yaml.Node
	if len(examples) > 0 {
		e = resolve(parse(examples))
	}
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
			if id := field(operation, "operationId"); id != nil {
				addExamples(operation, field(e, id.Value))
			}
		}
	}
	merge(field(d, "components"), field(c, "components"))
	addEvents(d, e)
	addHeaders(field(field(d, "components"), "responses"), field(c, "headers"))
	return text(d)
}

// at is the document of the API at an address, such as https://registrar.example.
func at(document []byte, address string) []byte {
	d := parse(document)
	field(field(d, "servers").Content[0], "url").Value = address
	return text(d)
}

func text(d *yaml.Node) []byte {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(d); err != nil {
		panic("openapi: an embedded document is broken: " + err.Error())
	}
	return out.Bytes()
}

// addExamples adds an operation's examples: of the request, of answers by their status, and of answers
// that have several by status and name.
func addExamples(operation, examples *yaml.Node) {
	for name, example := range fields(examples) {
		status, label, several := strings.Cut(name, " ")
		of := field(field(operation, "responses"), status)
		if name == "request" {
			of = field(operation, "requestBody")
		}
		content := field(of, "content")
		if content == nil {
			panic("openapi: an example of an answer that the document does not have: " + name)
		}
		if several {
			example = object("examples", object(label, object("value", example)))
		} else {
			example = object("example", example)
		}
		merge(content.Content[1], example)
	}
}

// addEvents adds what is made from the types of Go, the schemas of events and of what lists share with
// them, to a document that has a tag webhooks, and the webhooks. An Event of a list is one of those that URLs can select.
func addEvents(d, examples *yaml.Node) {
	if examples == nil {
		return
	}
	schemas := field(field(d, "components"), "schemas")
	merge(schemas, plain(parse(wire.Schemas())))
	one, byType := &yaml.Node{Kind: yaml.SequenceNode}, &yaml.Node{Kind: yaml.MappingNode}
	for _, t := range webhook.Types() {
		ref := &yaml.Node{Kind: yaml.ScalarNode, Value: "#/components/schemas/" + wire.EventName(t)}
		one.Content = append(one.Content, object("$ref", ref))
		byType.Content = append(byType.Content, object(string(t), ref).Content...)
	}
	discriminator := object("propertyName", &yaml.Node{Kind: yaml.ScalarNode, Value: "type"})
	merge(discriminator, object("mapping", byType))
	listed := field(schemas, "Event")
	merge(listed, object("oneOf", one))
	merge(listed, object("discriminator", discriminator))
	all := &yaml.Node{Kind: yaml.MappingNode}
	for _, t := range wire.EventTypes() {
		webhook := parse([]byte(fmt.Sprintf(eventOperation, wire.EventName(t), wire.EventAbout(t))))
		addExamples(field(webhook, "post"), field(examples, "event "+string(t)))
		all.Content = append(all.Content, object(string(t), webhook).Content...)
	}
	merge(d, object("webhooks", all))
}

// eventOperation is the webhook of an event, by the name of its schema and what it means.
const eventOperation = `
post:
  tags: [webhooks]
  operationId: receive%[1]s
  summary: %[2]s
  security: []
  parameters:
    - {$ref: '#/components/parameters/EventName'}
    - {$ref: '#/components/parameters/EventDelivery'}
    - {$ref: '#/components/parameters/EventSignature'}
    - {$ref: '#/components/parameters/EventSequence'}
    - {$ref: '#/components/parameters/StandardID'}
    - {$ref: '#/components/parameters/StandardTimestamp'}
    - {$ref: '#/components/parameters/StandardSignature'}
  requestBody:
    required: true
    content:
      application/json:
        schema: {$ref: '#/components/schemas/%[1]s'}
  responses:
    2XX: {description: Received; any status from 200 to 299 will do}
    4XX: {description: Declined and not sent again by itself; 408 and 429 ask for another try}
    5XX: {description: Sent again later}
`

// plain gives JSON the usual style of YAML.
func plain(n *yaml.Node) *yaml.Node {
	n.Style = 0
	for _, part := range n.Content {
		plain(part)
	}
	return n
}

// resolve puts into a node what its aliases stand for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	copied := *n
	copied.Anchor, copied.Content = "", make([]*yaml.Node, len(n.Content))
	for i, part := range n.Content {
		copied.Content[i] = resolve(part)
	}
	return &copied
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
