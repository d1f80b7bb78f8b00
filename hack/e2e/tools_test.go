package e2e

import (
	"os"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// nodeTools is the folder node_modules of what others wrote to use the documents.
func nodeTools(t *testing.T) string {
	t.Helper()
	modules, err := stack.EnsureLocked(t.Context(), os.Stderr, "../openapi/npm")
	if err != nil {
		nottested.Skip(t, "the tools cannot be had from npm: %v", err)
	}
	return modules
}

// partnerDocument is the partner API's document, as generators get it.
func partnerDocument(t *testing.T) string {
	t.Helper()
	show := command(t, "go", "run", "./api-server/internal/openapi/document")
	show.Dir, show.Stderr = "../..", os.Stderr
	text, err := show.Output()
	must(t, err)
	return string(text)
}
