// Command document prints the partner API's whole document, for generators.
package main

import (
	"fmt"
	"os"

	"github.com/registrar-dev/registrar/api-server/internal/openapi"
)

func main() {
	if _, err := os.Stdout.Write(openapi.Partner); err != nil {
		fmt.Fprintln(os.Stderr, "document:", err)
		os.Exit(1)
	}
}
