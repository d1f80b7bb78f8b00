package platform_test

import (
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
)

func TestCatalogItems(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Platform.Put(t, "catalog/tests/ielts-1", `{"title": "IELTS 1", "type": "ielts", "difficulty": 6.5, "starter": true}`).Want(t, 201).Golden(t, "item-shared")
	e.Platform.Put(t, "catalog/tests/ielts-1", `{}`).Want(t, 200).Golden(t, "item-shared")
	e.Platform.Put(t, "organizations/north/catalog/tests/ielts-1/", `{"title": "Listening", "type": "ielts", "scope": "listening", "active": false}`).
		Want(t, 201).Golden(t, "item-own")
	e.Platform.Put(t, "organizations/north/catalog/assessments/essay-1", `{"title": "Essay", "max_score": 20}`).Want(t, 201).Golden(t, "item-assessment")

	put := func(path, body string) *apitest.Answer { return e.Platform.Put(t, path, body) }
	put("catalog/tests/x", `{"title": "X"}`).WantFault(t, 400, "unknown_test_type", "type")
	put("catalog/tests/x", `{"title": "X", "type": "sat", "scope": "reading"}`).WantFault(t, 400, "invalid", "scope")
	put("catalog/tests/x", `{"title": "X", "type": "sat", "max_score": 100}`).WantFault(t, 400, "off_scale", "max_score")
	put("catalog/tests/x", `{"title": "X", "type": "sat", "max_score": "many"}`).WantFault(t, 400, "not_a_number", "max_score")
	put("catalog/tests/x", `{`).WantFault(t, 400, "invalid_json", "")
	put("organizations/north/catalog/quizzes/x", `{}`).WantFault(t, 400, "invalid", "title")
	put("organizations/nowhere/catalog/quizzes/x", `{"title": "X"}`).WantFault(t, 404, "not_found", "")
	put("catalog/quizzes/x", `{"title": "X"}`).WantFault(t, 404, "no_such_route", "")
	for _, path := range []string{"catalog/tests/x", "organizations/north/catalog/quizzes/x"} {
		e.Platform.With("Authorization", "").Put(t, path, `{}`).WantFault(t, 401, "invalid_platform_key", "")
	}
}
