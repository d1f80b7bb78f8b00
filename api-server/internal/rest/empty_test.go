package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
)

// The document says of every parameter of a query whether it may be sent without a value,
// and that is what the server does.
func TestEmptyParametersAreTakenAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	north.Full.Post(t, "webhook-endpoints/", `{"url": "https://hooks.north.example/"}`).Want(t, http.StatusCreated)
	north.Full.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana"}`).Want(t, http.StatusCreated)
	var log struct{ Deliveries []struct{ ID string } }
	north.Full.Get(t, "webhook-endpoints/1/deliveries/").Want(t, http.StatusOK).Into(t, &log)
	named := strings.NewReplacer("{id}", "1", "{delivery}", log.Deliveries[0].ID)
	type parameter struct {
		Ref   string `yaml:"$ref"`
		Name  string `yaml:"name"`
		In    string `yaml:"in"`
		Empty bool   `yaml:"allowEmptyValue"`
	}
	var document struct {
		Paths map[string]struct {
			Get struct {
				Parameters []parameter `yaml:"parameters"`
			} `yaml:"get"`
		} `yaml:"paths"`
		Components struct {
			Parameters map[string]parameter `yaml:"parameters"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(openapi.Partner(), &document); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for path, route := range document.Paths {
		if strings.HasPrefix(path, "/api/v1/sandbox/") { // which keys of sandboxes alone read
			continue
		}
		for _, p := range route.Get.Parameters {
			if name, shared := strings.CutPrefix(p.Ref, "#/components/parameters/"); shared {
				p = document.Components.Parameters[name]
			}
			if p.In != "query" {
				continue
			}
			tried++
			want := http.StatusBadRequest
			if p.Empty {
				want = http.StatusOK
			}
			beside := ""
			if strings.HasSuffix(path, "/explain/") && p.Name != "email" { // which explains one thing
				beside = "email=ana@institute.org&"
			}
			if a := north.Full.Freely().Get(t, named.Replace(path)+"?"+beside+p.Name+"="); a.Status != want {
				t.Errorf("%s?%s= is answered %d, and the document says %d: %s", path, p.Name, a.Status, want, a.Body)
			}
		}
	}
	if tried < 30 {
		t.Errorf("%d parameters were tried", tried)
	}
}
