package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"text/template"

	"github.com/go-chi/chi/v5"
	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// eventSchemas is the answer of GET /events/schemas/.
type eventSchemas struct {
	Status string        `json:"status"`
	Count  int           `json:"count"`
	Events []eventSchema `json:"events"`
}

type eventSchema struct {
	Type        webhook.Type `json:"type"`
	Description string       `json:"description"`
	SchemaURL   string       `json:"schema_url"`
}

var errNoEvent = fault.New(fault.NotFound, "not_found", "there is no event of this type; GET /events/schemas/ lists them")

// EventRoutes serves the JSON Schemas of events below /api/v1, without a key. address is where callers reach
// the API.
func EventRoutes(r chi.Router, address string) {
	list, schemas := eventSchemas{Status: "ok"}, map[webhook.Type][]byte{}
	for _, t := range wire.EventTypes() {
		list.Events = append(list.Events, eventSchema{t, wire.EventAbout(t), address + "/api/v1/events/schemas/" + string(t) + "/"})
		schemas[t] = wire.EventSchema(t)
	}
	list.Count = len(list.Events)
	all, err := json.Marshal(list)
	if err != nil {
		panic("openapi: the events cannot be listed: " + err.Error())
	}
	r.Get("/events/schemas", serve("application/json", made(all)))
	r.Get("/events/schemas/{type}", edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		schema, ok := schemas[webhook.Type(chi.URLParam(r, "type"))]
		if !ok {
			return errNoEvent
		}
		serve("application/schema+json", made(schema))(w, r)
		return nil
	}))
}

//go:embed events.md.tmpl
var catalog string

// EventCatalog is the page docs/events.md: what each event means, its fields and a sample.
func EventCatalog() []byte {
	type event struct {
		Type          webhook.Type
		About, Sample string
		Fields        []dataField
	}
	samples := resolve(parse(examples))
	var events []event
	for _, t := range wire.EventTypes() {
		schema := parse(wire.EventSchema(t))
		data := field(field(schema, "properties"), "data")
		events = append(events, event{t, wire.EventAbout(t), sample(field(field(samples, "event "+string(t)), "request")),
			dataFields("", data, field(schema, "$defs"))})
	}
	var page bytes.Buffer
	if err := template.Must(template.New("events").Parse(catalog)).Execute(&page, events); err != nil {
		panic("openapi: the event catalog cannot be rendered: " + err.Error())
	}
	return page.Bytes()
}

// dataField is a field of an event's data, with its path.
type dataField struct{ Path, Type, About string }

// dataFields lists the fields of an object's schema, and those of the objects in it.
func dataFields(path string, schema, definitions *yaml.Node) (all []dataField) {
	schema = follow(schema, definitions)
	for name, of := range fields(field(schema, "properties")) {
		about, null := "", ""
		if d := field(of, "description"); d != nil {
			about = d.Value
		}
		if choices := field(of, "oneOf"); choices != nil {
			of, null = choices.Content[0], " or null"
		}
		f := dataField{path + name, kindOf(of) + null, about}
		inner := follow(of, definitions)
		switch item := field(inner, "items"); {
		case item != nil && kindOf(follow(item, definitions)) == "object":
			all = append(append(all, f), dataFields(f.Path+"[].", item, definitions)...)
		default:
			all = append(append(all, f), dataFields(f.Path+".", inner, definitions)...)
		}
	}
	return all
}

// follow is the schema itself, or the one that it refers to.
func follow(schema, definitions *yaml.Node) *yaml.Node {
	if ref := field(schema, "$ref"); ref != nil {
		return field(definitions, strings.TrimPrefix(ref.Value, "#/$defs/"))
	}
	return schema
}

// kindOf says what a value is, for people.
func kindOf(schema *yaml.Node) string {
	if ref := field(schema, "$ref"); ref != nil {
		switch name := strings.TrimPrefix(ref.Value, "#/$defs/"); name {
		case "Timestamp", "Date":
			return strings.ToLower(name)
		case "Kind":
			return "`test`, `quiz`, `assessment`"
		default:
			return "object"
		}
	}
	if values := field(schema, "enum"); values != nil {
		words := make([]string, len(values.Content))
		for i, v := range values.Content {
			words[i] = "`" + v.Value + "`"
		}
		return strings.Join(words, ", ")
	}
	kind := field(schema, "type")
	if kind.Kind == yaml.SequenceNode { // with null
		return kind.Content[0].Value + " or null"
	}
	return kind.Value
}

// sample is an example as indented JSON, its fields in their order.
func sample(n *yaml.Node) string {
	var out bytes.Buffer
	if err := json.Indent(&out, asJSON(n), "", "  "); err != nil {
		panic("openapi: an example is broken: " + err.Error())
	}
	return out.String()
}

func asJSON(n *yaml.Node) []byte {
	var out bytes.Buffer
	switch n.Kind {
	case yaml.MappingNode:
		out.WriteByte('{')
		for name, value := range fields(n) {
			if out.Len() > 1 {
				out.WriteByte(',')
			}
			fmt.Fprintf(&out, "%q:%s", name, asJSON(value))
		}
		out.WriteByte('}')
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, value := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			out.Write(asJSON(value))
		}
		out.WriteByte(']')
	default:
		var value any
		err := n.Decode(&value)
		if err == nil {
			err = json.NewEncoder(&out).Encode(value)
		}
		if err != nil {
			panic("openapi: an example is broken: " + err.Error())
		}
	}
	return bytes.TrimSpace(out.Bytes())
}
