// Command write puts the documentation into a folder, as a site that any web server can serve: `make docs`.
package main

import (
	"fmt"
	"os"

	"github.com/registrar-dev/registrar/api-server/internal/docsite"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FOLDER")
		os.Exit(2)
	}
	if err := docsite.Write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}
