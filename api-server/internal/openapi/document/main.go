// Command document prints the partner API's whole document, for generators. With the argument platform
// it prints that of the platform API, with events the page docs/events.md, and with schemas the events' JSON Schemas as an
// object by type.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/internal/flow/wire"
)

func schemas() []byte {
	all := map[string]json.RawMessage{}
	for _, t := range wire.EventTypes() {
		all[string(t)] = wire.EventSchema(t)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic("document: a schema is no JSON: " + err.Error())
	}
	return append(text, '\n')
}

func main() {
	document := openapi.Partner
	switch strings.Join(os.Args[1:], " ") {
	case "platform":
		document = openapi.Platform
	case "events":
		document = openapi.EventCatalog
	case "schemas":
		document = schemas
	}
	if _, err := os.Stdout.Write(document()); err != nil {
		fmt.Fprintln(os.Stderr, "document:", err)
		os.Exit(1)
	}
}
