package webhooks_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/webhook/webhooktest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The key is the actor of what is done with it.
func TestAPartnersCommandsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	c := partner(north)
	c.post(t, "", one).Want(t, 201)
	c.patch(t, "/1", `{"events": ["result.final"]}`).Want(t, 200)
	webhooktest.Decline(t, e.DB, north.ID, e.Now(), 1)
	var l log
	c.get(t, "/1/deliveries").Want(t, 200).Into(t, &l)
	c.post(t, "/1/rotate-secret", "").Want(t, 200)
	c.post(t, "/1/send-test", "").Want(t, 202)
	c.post(t, "/1/turn-on", "").Want(t, 200) // it is on: nothing is done
	c.post(t, "/1/deliveries/"+l.ids()[0]+"/resend", "").Want(t, 202)
	c.post(t, "/1/recover", span).Want(t, 202)
	c.delete(t, "/1").Want(t, 200)
	entries, err := audit.List(t.Context(), e.DB, north.ID, 0)
	check.NoError(check.Now(t), err, "the log")
	var actions []string
	for _, entry := range slices.Backward(entries) {
		if entry.Actor.Kind == audit.PartnerKey {
			check.Equal(t, "the actor's name", entry.Actor.Name, "Key full", "%+v", entry)
			actions = append(actions, entry.Action)
		}
	}
	check.Slices(t, "the log", actions, []string{"added webhook URL", "changed webhook URL", "replaced signing secret", "sent test event",
		"resent event", "recovered events", "deleted webhook URL"}, "of the key")
}

// Reference: conventions#authentication.
func TestAReadOnlyKeyReadsURLsAlone(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	c, reader := partner(north), calls{north.ReadOnly, "webhook-endpoints"}
	c.post(t, "", one).Want(t, 201)
	webhooktest.Decline(t, e.DB, north.ID, e.Now(), 1)
	var l log
	reader.get(t, "/1/deliveries").Want(t, 200).Into(t, &l)
	delivery := "/1/deliveries/" + l.ids()[0]
	for _, path := range []string{"", "/1", "/1/recoveries", delivery} {
		check.Lacks(t, "what is shown", string(reader.get(t, path).Want(t, 200).Body), "whsec_", "%s", path)
	}
	for _, path := range []string{"", "/1/rotate-secret", "/1/send-test", "/1/turn-on", "/1/recover", delivery + "/resend"} {
		reader.post(t, path, one).WantFault(t, 403, "read_only_key", "")
	}
	reader.patch(t, "/1", `{"time_zone": "Europe/London"}`).WantFault(t, 403, "read_only_key", "")
	reader.delete(t, "/1").WantFault(t, 403, "read_only_key", "")
	check.Equal(t, "the zone", c.get(t, "/1").Want(t, 200).Object(t)["time_zone"], any("UTC"), "is as it was")
}

// What a Kubernetes resource keeps is read-only; what does not touch its settings works.
// Reference: webhooks#managing-urls.
func TestAURLThatAResourceKeepsIsReadOnly(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	c := partner(north)
	c.post(t, "", one).Want(t, 201)
	c.post(t, "", `{"url": "https://hooks.north-institute.org/own"}`).Want(t, 201)
	const resource = "kubernetes/production/school/results"
	if _, err := e.DB.Exec(t.Context(), `UPDATE webhook_endpoints SET managed_by = $1 WHERE id = 1`, resource); err != nil {
		t.Fatal(err)
	}
	before := c.get(t, "/1").Want(t, 200)
	check.Equal(t, "managed_by", before.Object(t)["managed_by"], any(resource), "of a URL that is kept elsewhere")
	for _, a := range []*apitest.Answer{c.patch(t, "/1", `{"time_zone": "Europe/London"}`), c.patch(t, "/1", `{}`), c.delete(t, "/1"), c.post(t, "/1/rotate-secret", "")} {
		f := a.WantFault(t, 409, "managed", "")
		check.Contains(t, "the refusal", f.Error, resource, "it names the resource")
	}
	check.Equal(t, "the URL", string(c.get(t, "/1").Want(t, 200).Body), string(before.Body), "is as it was")
	c.post(t, "", one).WantFault(t, 409, "url_exists", "")
	c.patch(t, "/2", one).WantFault(t, 409, "url_exists", "")
	webhooktest.Decline(t, e.DB, north.ID, e.Now(), 1)
	var l log
	c.get(t, "/1/deliveries").Want(t, 200).Into(t, &l)
	c.post(t, "/1/send-test", "").Want(t, 202)
	c.post(t, "/1/turn-on", "").Want(t, 200)
	c.post(t, "/1/deliveries/"+l.ids()[0]+"/resend", "").Want(t, 202)
	c.post(t, "/1/recover", span).Want(t, 202)
	c.patch(t, "/2", `{"time_zone": "Europe/London"}`).Want(t, 200)
	// The platform may; the resource's operator changes it back.
	e.Platform.Patch(t, "organizations/north/webhook-endpoints/1", `{"time_zone": "Europe/London"}`).Want(t, 200)
	e.Platform.Delete(t, "organizations/north/webhook-endpoints/1").Want(t, 200)
}

// at sends n requests at the same moment and counts their statuses.
func at(n int, send func(i int) *apitest.Answer) (statuses map[int]int, answers []*apitest.Answer) {
	answers = make([]*apitest.Answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i] = send(i) })
	}
	wg.Wait()
	statuses = map[int]int{}
	for _, a := range answers {
		statuses[a.Status]++
	}
	return statuses, answers
}

func TestAURLThatIsAddedAtTheSameMomentIsThereOnce(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	c := partner(e.Organization(t, "north"))
	statuses, answers := at(12, func(int) *apitest.Answer { return c.post(t, "", one) })
	check.Equal(t, "added", statuses[http.StatusCreated], 1, "%v", statuses)
	check.Equal(t, "refused", statuses[http.StatusConflict], 11, "%v", statuses)
	for _, a := range answers {
		if a.Status == http.StatusConflict {
			a.WantFault(t, 409, "url_exists", "")
		}
	}
	check.Equal(t, "URLs", c.get(t, "").Want(t, 200).Object(t)["count"], any(1.0), "of the organization")
}

func TestTheLimitHoldsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	c := partner(e.Organization(t, "north"))
	statuses, answers := at(16, func(i int) *apitest.Answer {
		return c.post(t, "", fmt.Sprintf(`{"url": "https://hooks.north-institute.org/%d"}`, i))
	})
	check.Equal(t, "added", statuses[http.StatusCreated], 10, "%v", statuses)
	check.Equal(t, "refused", statuses[http.StatusConflict], 6, "%v", statuses)
	for _, a := range answers {
		if a.Status == http.StatusConflict {
			a.WantFault(t, 409, "url_limit", "")
		}
	}
	check.Equal(t, "URLs", c.get(t, "").Want(t, 200).Object(t)["count"], any(10.0), "of the organization")
}

// Whose first answer was lost asks again, and gets the secret. Reference: conventions#repeats.
func TestAnIdempotencyKeyAddsAURLOnce(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	keyed := func(key string) calls { return calls{north.Full.With("Idempotency-Key", key), "webhook-endpoints"} }
	statuses, answers := at(8, func(int) *apitest.Answer { return keyed("subscribe").post(t, "", one) })
	check.Equal(check.Now(t), "added", statuses[http.StatusCreated], 8, "%v", statuses)
	for _, a := range answers {
		check.Equal(t, "the answer", string(a.Body), string(answers[0].Body), "the secret is the same")
	}
	keyed("subscribe").post(t, "", `{"url": "https://hooks.north-institute.org/other"}`).WantFault(t, 422, "idempotency_key_reused", "")
	keyed("again").post(t, "", one).WantFault(t, 409, "url_exists", "")
	rotated := keyed("rotate").post(t, "/1/rotate-secret", "").Want(t, 200)
	check.Equal(t, "the answer", string(keyed("rotate").post(t, "/1/rotate-secret/", "").Want(t, 200).Body), string(rotated.Body), "of the same rotation")
	check.Equal(t, "secret_version", keyed("").get(t, "/1").Want(t, 200).Object(t)["secret_version"], any(2.0), "after two calls with one key")
	sent := keyed("test").post(t, "/1/send-test", "").Want(t, 202)
	check.Equal(t, "the answer", string(keyed("test").post(t, "/1/send-test", "").Want(t, 202).Body), string(sent.Body), "of the same test")
	keyed("unsubscribe").delete(t, "/1").Want(t, 200)
	keyed("unsubscribe").delete(t, "/1").Want(t, 200)
	keyed("later").delete(t, "/1").WantFault(t, 404, "not_found", "")
	// What was refused because of the state may succeed later.
	keyed("again").post(t, "", one).Want(t, 201)
}
