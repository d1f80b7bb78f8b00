package stack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
)

// eventSchemas are the published schemas of events, compiled.
var eventSchemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	compiled := map[string]*jsonschema.Schema{}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for _, t := range wire.EventTypes() {
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(wire.EventSchema(t)))
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", t, err)
		}
		address := "https://registrar.example/" + string(t)
		if err := compiler.AddResource(address, schema); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", t, err)
		}
		if compiled[string(t)], err = compiler.Compile(address); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", t, err)
		}
	}
	return compiled, nil
})

// CheckEvent holds a body that a webhook URL received against the event's published schema.
func CheckEvent(body []byte) error {
	schemas, err := eventSchemas()
	if err != nil {
		return err
	}
	var event struct{ Type webhook.Type }
	if err := json.Unmarshal(body, &event); err != nil {
		return err
	}
	schema := schemas[string(event.Type)]
	if schema == nil {
		return fmt.Errorf("%q is no event", event.Type)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}
