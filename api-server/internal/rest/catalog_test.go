package rest_test

import (
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Reference: catalog#catalog-items.
func TestCatalog(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	e.Organization(t, "south")
	north.ReadOnly.Get(t, "catalog/").Want(t, 200).Golden(t, "catalog-none")
	put := func(path, body string) { e.Platform.Put(t, path, body).Want(t, 201) }
	put("organizations/north/catalog/assessments/essay", `{"title": "Essay", "max_score": 20}`)
	put("organizations/north/catalog/quizzes/q1", `{"title": "Grammar"}`)
	put("catalog/tests/ielts-1", `{"title": "IELTS 1", "type": "ielts"}`)
	put("organizations/north/catalog/tests/own", `{"title": "Own", "type": "custom", "max_score": "40.5"}`)
	put("organizations/south/catalog/tests/own", `{"title": "Elsewhere", "type": "sat", "scope": "math"}`)
	put("catalog/tests/old", `{"title": "Old", "type": "sat", "active": false}`)
	north.ReadOnly.Get(t, "catalog/").Want(t, 200).Golden(t, "catalog")
	north.Full.Get(t, "catalog?kind=test,quiz,assessment").Want(t, 200).Golden(t, "catalog")
	north.Full.Get(t, "catalog/?kind=quiz,%20Assessment").Want(t, 200).Golden(t, "catalog-no-tests")
	north.Full.Get(t, "catalog/?kind=essay").WantFault(t, 400, "not_a_choice", "kind")
	if body := string(north.Full.Get(t, "catalog/?kind=test").Want(t, 200).Body); check.Lacks(t, "the answer", body, "Elsewhere", "%s", body) {
		check.Lacks(t, "the answer", body, "Old", "%s", body)
	}
}
