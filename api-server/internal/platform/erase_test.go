package platform_test

import (
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/webhook/webhooktest"
)

func TestAPersonIsErasedFromPayloads(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	org := e.Organization(t, "north").ID
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	webhooktest.Decline(t, e.DB, org, e.Now(), 2)
	if got := e.Platform.Delete(t, "users/7/webhook-data").Want(t, 200).Object(t); got["erased_events"] != 2.0 {
		t.Errorf("erased: %v", got)
	}
}
