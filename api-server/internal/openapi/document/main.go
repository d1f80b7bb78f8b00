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
	text := openapi.Partner
	switch strings.Join(os.Args[1:], " ") {
	case "platform":
		text = openapi.Platform
	case "events":
		text = openapi.EventCatalog()
	}
	if _, err := os.Stdout.Write(text); err != nil {
		fmt.Fprintln(os.Stderr, "document:", err)
		os.Exit(1)
	}
}
