package platform_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// declined records n events for the organization's only URL, whose receiver declines them.
func declined(t *testing.T, e *apitest.Env, org id.Organization, n int) {
	t.Helper()
	err := e.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		for i := range n {
			event := webhook.Event{Type: webhook.ResultFinal, User: 7, Data: map[string]any{"id": fmt.Sprintf("test:%d", i)}}
			if err := webhook.Record(t.Context(), tx, org, e.Now(), event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	leases, _, err := dispatch.LeaseDue(t.Context(), e.DB, e.Now(), time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []webhook.Outcome
	for _, l := range leases {
		for _, d := range l.Deliveries {
			outcomes = append(outcomes, webhook.Outcome{Delivery: d, Endpoint: l.Endpoint, Organization: l.Organization, Number: 1,
				StartedAt: e.Now(), Duration: 12 * time.Millisecond, Verdict: webhook.Declined, Cause: "http_404", Status: 404, Response: []byte("no such page"),
				RequestHeaders: map[string]string{"Content-Type": "application/json"}, Peer: "203.0.113.7:443",
				Timing: webhook.Timing{DNS: time.Millisecond, Connect: 2 * time.Millisecond, TLS: 4 * time.Millisecond, FirstByte: 11 * time.Millisecond}})
		}
	}
	if err := e.DB.InTx(t.Context(), func(tx *pg.Tx) error { return webhook.Settle(t.Context(), tx, outcomes) }); err != nil {
		t.Fatal(err)
	}
}

const endpoint = "organizations/north/webhook-endpoints/1"

func TestDeliveriesAreListedWithEveryAttempt(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	org := e.Organization(t, "north").ID
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	e.Platform.Get(t, endpoint+"/deliveries").Want(t, 200)
	declined(t, e, org, 3)
	var first, second struct {
		Count      int
		HasMore    bool   `json:"has_more"`
		NextCursor string `json:"next_cursor"`
		Deliveries []struct{ ID string }
	}
	e.Platform.Get(t, endpoint+"/deliveries?status=declined&limit=2").Want(t, 200).Into(t, &first)
	e.Platform.Get(t, endpoint+"/deliveries?status=declined&limit=2&cursor="+first.NextCursor).Want(t, 200).Into(t, &second)
	check.Equal(check.Now(t), "first.Count", first.Count, 2, "pages: %+v, %+v", first, second)
	check.True(check.Now(t), "first.HasMore", first.HasMore, "pages: %+v, %+v", first, second)
	check.Equal(check.Now(t), "second.Count", second.Count, 1, "pages: %+v, %+v", first, second)
	check.False(check.Now(t), "second.HasMore", second.HasMore, "pages: %+v, %+v", first, second)
	e.Platform.Get(t, endpoint+"/deliveries/"+second.Deliveries[0].ID).Want(t, 200).Golden(t, "delivery")
	e.Platform.Get(t, endpoint+"/deliveries?cursor="+first.NextCursor).WantFault(t, 400, "invalid_cursor", "cursor")
	e.Platform.Get(t, endpoint+"/deliveries?status=lost").WantFault(t, 400, "unknown_status", "status")
	e.Platform.Get(t, endpoint+"/deliveries?limit=0").WantFault(t, 400, "out_of_range", "limit")
	e.Platform.Get(t, endpoint+"/deliveries/dlv_0").WantFault(t, 404, "not_found", "")
	e.Platform.Post(t, endpoint+"/deliveries/"+second.Deliveries[0].ID+"/resend", "").Want(t, 202)
	var waiting struct{ Count int }
	if e.Platform.Get(t, endpoint+"/deliveries?status=waiting,%20in_flight").Want(t, 200).Into(t, &waiting); waiting.Count != 1 {
		t.Errorf("%d deliveries wait after one resend", waiting.Count)
	}
	e.Organization(t, "south")
	e.Platform.Get(t, "organizations/south/webhook-endpoints/1/deliveries").WantFault(t, 404, "not_found", "")
	e.Platform.Post(t, "organizations/south/webhook-endpoints/1/deliveries/"+second.Deliveries[0].ID+"/resend", "").WantFault(t, 404, "not_found", "")
}

func TestARecoveryIsBegunAndWatched(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	org := e.Organization(t, "north").ID
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	declined(t, e, org, 3)
	span := `{"since": "2020-01-01T00:00:00+00:00", "until": "2099-01-01T00:00:00+00:00"}`
	e.Platform.Post(t, endpoint+"/recover", span).Want(t, 202).Golden(t, "recovery")
	e.Platform.Post(t, endpoint+"/recover", span).WantFault(t, 409, "recovery_running", "")
	e.Platform.Post(t, endpoint+"/recover", `{}`).WantFault(t, 400, "missing", "since")
	e.Platform.Post(t, endpoint+"/recover", `{"since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:00:00Z"}`).WantFault(t, 400, "empty_range", "until")
	e.Platform.Get(t, endpoint+"/recoveries").Want(t, 200).Golden(t, "recoveries")
	e.Organization(t, "south")
	e.Platform.Get(t, "organizations/south/webhook-endpoints/1/recoveries").WantFault(t, 404, "not_found", "")
	e.Platform.Post(t, "organizations/south/webhook-endpoints/1/recover", span).WantFault(t, 404, "not_found", "")
}

func TestAPersonIsErasedFromPayloads(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	org := e.Organization(t, "north").ID
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	declined(t, e, org, 2)
	if got := e.Platform.Delete(t, "users/7/webhook-data").Want(t, 200).Object(t); got["erased_events"] != 2.0 {
		t.Errorf("erased: %v", got)
	}
}
