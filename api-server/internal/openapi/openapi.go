// Package openapi holds the documents of both APIs and serves them. They are written by
// hand, without what both have in common; every exchange of the tests is held against them (package apitest).
package openapi

//go:generate sh -c "go run ./document events > ../../../docs/events.md"

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/go-chi/chi/v5"
	"gopkg.in/yaml.v3"
)

var (
	//go:embed partner.yaml
	partner []byte
	//go:embed platform.yaml
	platform []byte
	//go:embed common.yaml
	common []byte
	//go:embed examples.yaml
	examples []byte
)

// The documents, in YAML. They are put together when they are first asked for: not every command of a program needs them.
var (
	Partner  = sync.OnceValue(func() []byte { return complete(partner, common, examples) })
	Platform = sync.OnceValue(func() []byte { return complete(platform, common, nil) })
)

// Routes serves the document, below the path base, as openapi.yaml and openapi.json and
// as a page at docs, without a key. address is where callers reach the API, and beside it the documentation; "" leaves
// what the document says. All of it is made when it is first asked for.
func Routes(r chi.Router, base string, document func() []byte, address string) {
	asYAML, guides := document, ""
	if address != "" {
		asYAML, guides = sync.OnceValue(func() []byte { return at(document(), address) }), "/docs/"
	}
	asJSON := sync.OnceValue(func() []byte { return toJSON(asYAML()) })
	r.Get("/openapi.yaml", serve("application/yaml", asYAML))
	r.Get("/openapi.json", serve("application/json", asJSON))
	r.Get("/docs", showViewer(func() string { return title(asJSON()) }, base, guides))
	assetRoutes(r)
}

func serve(mediaType string, text func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Cache-Control", "public, max-age=300")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write(text()) // the client may be gone
	}
}

// made is a text that is there already.
func made(text []byte) func() []byte { return func() []byte { return text } }

func toJSON(document []byte) []byte {
	var tree any
	err := yaml.Unmarshal(document, &tree)
	if err == nil {
		document, err = json.Marshal(tree)
	}
	if err != nil {
		panic("openapi: an embedded document is broken: " + err.Error())
	}
	return document
}

func title(asJSON []byte) string {
	var document struct{ Info struct{ Title string } }
	if err := json.Unmarshal(asJSON, &document); err != nil {
		panic("openapi: an embedded document is broken: " + err.Error())
	}
	return document.Info.Title
}
