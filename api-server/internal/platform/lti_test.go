package platform_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
)

func TestLTIConsumer(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	const path = "organizations/north/lti-consumer"
	e.Platform.Get(t, path).WantFault(t, 404, "not_found", "")
	made := e.Platform.Post(t, path, nil).Want(t, 201).Object(t)
	renewed := e.Platform.Post(t, path, nil).Want(t, 200).Object(t)
	if made["consumer_key"] != renewed["consumer_key"] || made["shared_secret"] == renewed["shared_secret"] || len(made["shared_secret"].(string)) != 43 {
		t.Errorf("%v, then %v", made, renewed)
	}
	shown := e.Platform.Get(t, path).Want(t, 200)
	if shown.Object(t)["consumer_key"] != made["consumer_key"] || strings.Contains(string(shown.Body), "secret") {
		t.Errorf("%s", shown.Body)
	}
	e.Platform.Delete(t, path).Want(t, 200)
	e.Platform.Delete(t, path).WantFault(t, 404, "not_found", "")
	e.Platform.Post(t, "organizations/nowhere/lti-consumer", nil).WantFault(t, 404, "not_found", "")
	if log := e.Log.String(); strings.Contains(log, renewed["shared_secret"].(string)) {
		t.Error("the log shows the secret")
	}
}
