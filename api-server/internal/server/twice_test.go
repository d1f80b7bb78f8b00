package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Whatever takes JSON refuses a body that names a field twice, at any depth, and says which.
// Reference: conventions#requests.
func TestNoCallTakesAFieldTwice(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	calls := 0
	for _, c := range []struct {
		document []byte
		client   *apitest.Client
	}{{openapi.Partner(), north.Full.Freely()}, {openapi.Platform(), e.Platform.Freely()}} {
		doc, err := openapi3.NewLoader().LoadFromData(c.document)
		if err != nil {
			t.Fatal(err)
		}
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				if op.RequestBody == nil || op.RequestBody.Value.Content.Get("application/json") == nil || strings.HasPrefix(path, "/api/v1/sandbox/") {
					continue
				}
				calls++
				target := anyParameter.ReplaceAllString(strings.ReplaceAll(path, "{slug}", "north"), "1")
				f := c.client.Do(t, method, target, `{"b": {"c": [1, {"d": 1, "d": 2}]}, "a": 1, "\u0061": 1}`).
					WantFault(t, http.StatusBadRequest, "sent_twice", "b.c[1].d")
				if check.Equal(t, "number of errors", len(f.Errors), 2, "%s %s lists %+v", method, target, f.Errors) &&
					check.Equal(t, "the second error's field", f.Errors[1].Field, "a", "%s %s lists %+v", method, target, f.Errors) {
					check.True(t, "the second error begins with its field", strings.HasPrefix(f.Errors[1].Error, "a: "), "%s %s lists %+v", method, target, f.Errors)
				}
			}
		}
	}
	if calls < 20 {
		t.Errorf("the documents have only %d calls with a body", calls)
	}
	e.Platform.Post(t, "activity", `{"events": [{"kind": "visit"}, {"user_id": 1, "at": null, "user_id": 2}]}`).
		WantFault(t, http.StatusBadRequest, "sent_twice", "events[1].user_id")
	north.Full.Post(t, "provision/student/", `{"email": "ana@north-institute.org", "first_name": "Ana", "courses": ["ielts"], "target_score_plan": {"target_score": 7, "target_score": 8}}`).
		WantFault(t, http.StatusBadRequest, "sent_twice", "target_score_plan.target_score")
	north.Full.Get(t, "students/?email=ana@north-institute.org").Want(t, http.StatusNotFound)
}

var anyParameter = regexp.MustCompile(`\{\w+\}`)
