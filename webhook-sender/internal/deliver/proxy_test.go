package deliver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
)

func TestWhatAProxyDoesIsNotTakenForTheReceivers(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		proxy, cause, says string
		failures           int
	}{
		"it refuses the receiver": {refusing.URL, "proxy_refused", "not public or does not answer", 1},
		"it is away":              {gone.URL, webhook.ProxyAway, "no fault of the receiver", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := egress.New(egress.Config{})
			if err := policy.Through(c.proxy); err != nil {
				t.Fatal(err)
			}
			h := newHouse(t, policy)
			e, _ := h.addURL(t, "https://hooks.north-institute.org/")
			h.record(t, 1)
			h.handle(t, h.lease(t, time.Second))
			a := h.firstAttempt(t)
			if check.Equal(t, "a.outcome", a.outcome, "retry", "recorded %+v, explained as %q", a, webhook.Explain(a.cause)) &&
				check.Equal(t, "a.cause", a.cause, c.cause, "recorded %+v, explained as %q", a, webhook.Explain(a.cause)) &&
				check.Equal(t, "a.deliveryStatus", a.deliveryStatus, "waiting", "recorded %+v, explained as %q", a, webhook.Explain(a.cause)) {
				check.Contains(t, "the explanation", webhook.Explain(a.cause), c.says, "recorded %+v, explained as %q", a, webhook.Explain(a.cause))
			}
			if check.Equal(t, "a.peer", a.peer, "", "the attempt tells of the proxy's address: %+v", a) {
				check.False(t, "the detail shows an address", address.MatchString(a.detail), "the attempt tells of the proxy's address: %+v", a)
			}
			e, err := h.webhooks.Find(t.Context(), h.org, e.ID)
			if check.NoError(t, err, "%d failures in a row, want %d; %v", e.ConsecutiveFailures, c.failures, err) {
				check.Equal(t, "e.ConsecutiveFailures", e.ConsecutiveFailures, c.failures, "%d failures in a row, want %d; %v", e.ConsecutiveFailures, c.failures, err)
			}
		})
	}
}
