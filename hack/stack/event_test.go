package stack_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// What the tests of package wire hold payloads against is as the published schemas say.
func TestEventsKeepToTheirSchemas(t *testing.T) {
	t.Parallel()
	for _, kind := range wire.EventTypes() {
		body, err := os.ReadFile(filepath.Join("../../internal/flow/wire/testdata", string(kind)+".json"))
		check.NoError(check.Now(t), err, "%s", kind)
		err = stack.CheckEvent(body)
		check.NoError(t, err, "%s: %v", kind, err)
		err = stack.CheckEvent([]byte(strings.Replace(string(body), `"created"`, `"made"`, 1)))
		check.True(t, "a body without a required field is refused", err != nil, "%s", kind)
	}
}
