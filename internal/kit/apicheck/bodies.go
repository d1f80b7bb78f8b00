package apicheck

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// bodies holds JSON bodies against their schemas, each of which is compiled once: openapi3filter compiles
// a schema, and all that it refers to, for every body, which takes longer than most tests.
type bodies struct {
	mu       sync.Mutex // for the compiler
	compiler *jsonschema.Compiler
}

const (
	documentURL = "https://document.invalid/"
	jsonType    = "application/json"
)

func newBodies(document []byte) (*bodies, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	return &bodies{compiler: c}, c.AddResource(documentURL, doc)
}

// check holds a body against the schema at a place of the document, which is a JSON pointer.
func (b *bodies) check(place string, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	schema, err := b.schema(place)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// schema is compiled at the first call for its place.
func (b *bodies) schema(place string) (*jsonschema.Schema, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.compiler.Compile(documentURL + "#" + place)
}

// sentSchema is the place of the schema of a request's body; "" where the body is not JSON, or not documented.
func sentSchema(route *routers.Route, header http.Header) string {
	body := route.Operation.RequestBody
	if body == nil || body.Value == nil || !hasJSON(body.Value.Content, header) {
		return ""
	}
	return place(body.Ref, operation(route)+"/requestBody")
}

// receivedSchema is the place of the schema of an answer's body; "" where the body is not JSON, or its status
// not documented by itself.
func receivedSchema(route *routers.Route, status int, header http.Header) string {
	name := strconv.Itoa(status)
	response := route.Operation.Responses.Value(name)
	if response == nil || response.Value == nil || !hasJSON(response.Value.Content, header) {
		return ""
	}
	return place(response.Ref, operation(route)+"/responses/"+name)
}

func hasJSON(content openapi3.Content, header http.Header) bool {
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return kind == jsonType && content[jsonType] != nil && content[jsonType].Schema != nil
}

// operation is the place of a route's operation.
func operation(route *routers.Route) string {
	return "/paths/" + token(route.Path) + "/" + strings.ToLower(route.Method)
}

// place is that of the JSON schema of a body that is described at own, unless it refers to another place.
func place(ref, own string) string {
	if ref != "" {
		own = strings.TrimPrefix(ref, "#")
	}
	return fmt.Sprintf("%s/content/%s/schema", own, token(jsonType))
}

// token is a name in a JSON pointer that is a part of an address.
func token(name string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}
