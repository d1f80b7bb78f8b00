package rest_test

import (
	"net/http"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Reference: webhooks#events.
func TestTheSchemasOfEventsNeedNoKey(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	anyone := e.Partner("")
	var list struct {
		Count  int
		Events []struct{ Type string }
	}
	anyone.Get(t, "events/schemas/").Want(t, http.StatusOK).Into(t, &list)
	check.Equal(t, "number of events", list.Count, len(wire.EventTypes()), "%+v", list)
	for _, event := range list.Events {
		a := anyone.Get(t, "events/schemas/"+event.Type+"/").Want(t, http.StatusOK)
		check.Contains(t, "the schema", string(a.Body), `"const":"`+event.Type+`"`, "%s", event.Type)
	}
	anyone.Get(t, "events/schemas/result.gone/").WantFault(t, http.StatusNotFound, "not_found", "")
}
