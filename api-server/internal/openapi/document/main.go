// Command document prints the partner API's whole document, for generators. With the argument platform
// it prints that of the platform API, and with events the page docs/events.md.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/openapi"
)

func main() {
	document := openapi.Partner
	switch strings.Join(os.Args[1:], " ") {
	case "platform":
		document = openapi.Platform
	case "events":
		document = openapi.EventCatalog
	}
	if _, err := os.Stdout.Write(document()); err != nil {
		fmt.Fprintln(os.Stderr, "document:", err)
		os.Exit(1)
	}
}
