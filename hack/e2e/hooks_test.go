package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// A program subscribes with the organization's key, is sent what it asked for and nothing else, and
// unsubscribes, without a person.
func TestAProgramSubscribesAndUnsubscribes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const path = "/zap"
	hooks := h.settings.PublicURL() + "/api/v1/webhook-endpoints/"
	call := func(method, address, body string, want int, into any) {
		t.Helper()
		code, text := h.call(method, address, "X-API-Key", h.key, body)
		check.Equal(check.Now(t), "status", code, want, "%s %s: %s", method, address, text)
		if into != nil {
			must(t, json.Unmarshal(text, into))
		}
	}
	var hook struct {
		ID     int
		Secret string `json:"signing_secret"`
	}
	call(http.MethodPost, hooks, fmt.Sprintf(`{"url": %q, "events": ["enrollment.created"]}`, h.receiver.URL(path)), http.StatusCreated, &hook)
	h.secrets = append(h.secrets, hook.Secret)
	h.receiver.Trust(path, hook.Secret)
	at := fmt.Sprintf("%s%d/", hooks, hook.ID)

	h.provision("asha@north-institute.org", http.StatusCreated)
	h.awaitEvents("asha@north-institute.org", 3) // two at the organization's other URL
	arrived := h.arrived(path, 1)
	check.Contains(t, "the event", arrived[0].Body, `"type":"enrollment.created"`, "%v", arrived)

	call(http.MethodPost, at+"send-test/", "", http.StatusAccepted, nil)
	check.Contains(t, "the second event", h.arrived(path, 2)[1].Body, `"type":"ping"`, "it was asked for")
	var log struct {
		Deliveries []struct {
			ID, Event string
			Attempts  []struct{ Outcome, Cause string }
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for len(log.Deliveries) < 2 { // outcomes are recorded behind the answer
		must(t, ctx.Err())
		pause(ctx, 50*time.Millisecond)
		call(http.MethodGet, at+"deliveries/?status=delivered", "", http.StatusOK, &log)
	}
	for i, event := range []string{"ping", "enrollment.created"} { // newest first
		d := log.Deliveries[i]
		check.Equal(t, "the event", d.Event, event, "%+v", log)
		check.True(t, "its attempt is there", len(d.Attempts) == 1 && d.Attempts[0].Outcome == "delivered" && d.Attempts[0].Cause == "ok", "%+v", d)
	}
	call(http.MethodPost, at+"deliveries/"+log.Deliveries[1].ID+"/resend/", "", http.StatusAccepted, nil)
	h.arrived(path, 3)

	call(http.MethodDelete, at, "", http.StatusOK, nil)
	call(http.MethodGet, at, "", http.StatusNotFound, nil)
	h.provision("ben@north-institute.org", http.StatusCreated)
	h.awaitEvents("ben@north-institute.org", 2)
	check.Equal(t, "requests to the URL that is gone", len(h.arrived(path, 3)), 3, "none about the second student")
}

// arrived waits for n requests at a path of the receiver and returns them; each has to verify.
func (h *house) arrived(path string, n int) []stack.Received {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	got, err := h.receiver.Await(ctx, n, func(r stack.Received) bool { return r.Path == path })
	if err != nil {
		h.t.Fatalf("%d of %d requests to %s: %v", len(got), n, path, err)
	}
	for _, r := range got {
		check.True(h.t, "the signature verifies", r.Verified != nil && *r.Verified, "%s", r.Body)
		check.False(h.t, "it is about the second student", strings.Contains(r.Body, "ben@"), "%s", r.Body)
	}
	return got
}
