package platform_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestLTIConsumer(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	const path = "organizations/north/lti-consumer"
	e.Platform.Get(t, path).WantFault(t, 404, "not_found", "")
	made := e.Platform.Post(t, path, nil).Want(t, 201).Object(t)
	renewed := e.Platform.Post(t, path, nil).Want(t, 200).Object(t)
	if check.Equal(t, "consumer_key", made["consumer_key"], renewed["consumer_key"], "%v, then %v", made, renewed) &&
		check.True(t, "the secret is another", made["shared_secret"] != renewed["shared_secret"], "%v, then %v", made, renewed) {
		check.Equal(t, "length of the secret", len(made["shared_secret"].(string)), 43, "%v, then %v", made, renewed)
	}
	shown := e.Platform.Get(t, path).Want(t, 200)
	if check.Equal(t, "consumer_key", shown.Object(t)["consumer_key"], made["consumer_key"], "%s", shown.Body) {
		check.Lacks(t, "the answer", string(shown.Body), "secret", "%s", shown.Body)
	}
	e.Platform.Delete(t, path).Want(t, 200)
	e.Platform.Delete(t, path).WantFault(t, 404, "not_found", "")
	e.Platform.Post(t, "organizations/nowhere/lti-consumer", nil).WantFault(t, 404, "not_found", "")
	if log := e.Log.String(); strings.Contains(log, renewed["shared_secret"].(string)) {
		t.Error("the log shows the secret")
	}
}
