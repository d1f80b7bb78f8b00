package platform_test

import (
	"fmt"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
)

func TestWebhookEndpoints(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://Hooks.north-institute.org/in"}`).Want(t, 201).Golden(t, "endpoint-created")
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/other",
		"events": "result.final, student.joined", "time_zone": "Asia/Kolkata"}`).Want(t, 201)
	e.Platform.Get(t, "organizations/north/webhook-endpoints").Want(t, 200).Golden(t, "endpoints")
	e.Platform.Patch(t, "organizations/north/webhook-endpoints/2", `{"events": [], "time_zone": "Europe/London"}`).Want(t, 200).Golden(t, "endpoint-changed")
	e.Platform.Get(t, "organizations/north/webhook-endpoints/2").Want(t, 200).Golden(t, "endpoint-changed")
	e.Platform.Delete(t, "organizations/north/webhook-endpoints/2").Want(t, 200)
	e.Platform.Delete(t, "organizations/north/webhook-endpoints/2").WantFault(t, 404, "not_found", "")
}

func TestWebhookEndpointsRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	post := func(body string) *apitest.Answer {
		return e.Platform.Post(t, "organizations/north/webhook-endpoints", body)
	}
	post(`{"url": `).WantFault(t, 400, "invalid_json", "")
	post(`{}`).WantFault(t, 400, "missing", "url")
	post(`{"url": 7}`).WantFault(t, 400, "wrong_type", "url")
	post(`{"url": "http://hooks.north-institute.org/"}`).WantFault(t, 400, "https_required", "url")
	post(`{"url": "https://10.0.0.1/"}`).WantFault(t, 400, "address_not_public", "url")
	post(`{"url": "https://hooks.north-institute.org:25/"}`).WantFault(t, 400, "port_not_allowed", "url")
	post(`{"url": "https://hooks.north-institute.org/", "events": "student.born"}`).WantFault(t, 400, "unknown_event", "events")
	post(`{"url": "https://hooks.north-institute.org/", "time_zone": "Local"}`).WantFault(t, 400, "unknown_time_zone", "time_zone")
	f := post(`{"url": "ftp://x/", "events": ["ping"], "time_zone": "Local"}`).WantFault(t, 400, "https_required", "url")
	if len(f.Errors) != 3 {
		t.Errorf("%d faults are listed, want all three", len(f.Errors))
	}
	e.Platform.Get(t, "organizations/north/webhook-endpoints").Want(t, 200).Golden(t, "endpoints-none")
	for i := range 10 {
		post(fmt.Sprintf(`{"url": "https://hooks.north-institute.org/%d"}`, i)).Want(t, 201)
	}
	post(`{"url": "https://hooks.north-institute.org/10"}`).WantFault(t, 409, "url_limit", "")
	e.Platform.Delete(t, "organizations/north/webhook-endpoints/3").Want(t, 200)
	post(`{"url": "https://hooks.north-institute.org/0"}`).WantFault(t, 409, "url_exists", "")
	e.Platform.Post(t, "organizations/nowhere/webhook-endpoints", `{"url": "https://hooks.north-institute.org/"}`).WantFault(t, 404, "not_found", "")
}

func TestWebhookEndpointsOfAnotherOrganizationAreNotFound(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	e.Platform.Get(t, "organizations/south/webhook-endpoints/1").WantFault(t, 404, "not_found", "")
	e.Platform.Patch(t, "organizations/south/webhook-endpoints/1", `{"time_zone": "UTC"}`).WantFault(t, 404, "not_found", "")
	e.Platform.Delete(t, "organizations/south/webhook-endpoints/1").WantFault(t, 404, "not_found", "")
	e.Platform.Get(t, "organizations/north/webhook-endpoints/1").Want(t, 200)
}

func TestWebhookEndpointsAreTestedRotatedAndTurnedOn(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	const one = "organizations/north/webhook-endpoints/1"
	first := e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201).Object(t)
	rotated := e.Platform.Post(t, one+"/rotate-secret", "").Want(t, 200).Golden(t, "endpoint-rotated").Object(t)
	if rotated["signing_secret"] == first["signing_secret"] {
		t.Error("the secret is the same after its rotation")
	}
	e.Platform.Post(t, one+"/send-test", "").Want(t, 202).Golden(t, "endpoint-test-sent")
	e.Platform.Post(t, one+"/turn-on", "").Want(t, 200).Golden(t, "endpoint-turned-on")
	for _, action := range []string{"rotate-secret", "send-test", "turn-on"} {
		e.Platform.Post(t, "organizations/south/webhook-endpoints/1/"+action, "").WantFault(t, 404, "not_found", "")
	}
}
