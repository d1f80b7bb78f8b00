package deliver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/webhook-sender/verify"
)

// What is done to a URL while the first of several messages is on its way holds for the
// second, though both are of one lease.
func TestWhatIsDoneToAURLHoldsForTheNextMessageInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do func(ctx context.Context, h *house, e webhook.Endpoint, elsewhere string) (secret string, err error)

		here, there int // requests
		statuses    string
	}{
		"nothing": {func(context.Context, *house, webhook.Endpoint, string) (string, error) { return "", nil },
			3, 0, "delivered delivered delivered"},
		"a new secret": {func(ctx context.Context, h *house, e webhook.Endpoint, _ string) (string, error) {
			_, secret, err := h.webhooks.Rotate(ctx, audit.Platform, h.org, e.ID, "", 0, time.Now())
			return secret, err
		}, 3, 0, "delivered delivered delivered"},
		"another address": {func(ctx context.Context, h *house, e webhook.Endpoint, elsewhere string) (string, error) {
			_, err := h.webhooks.Change(ctx, audit.Platform, h.org, e.ID, webhook.Settings{URL: &elsewhere}, time.Now())
			return "", err
		}, 1, 2, "delivered delivered delivered"},
		"switched off": {func(ctx context.Context, h *house, e webhook.Endpoint, _ string) (string, error) {
			_, err := h.webhooks.SwitchOff(ctx, audit.Platform, h.org, e.ID, "Not now.", time.Now())
			return "", err
		}, 1, 0, "delivered skipped skipped"},
		"removed": {func(ctx context.Context, h *house, e webhook.Endpoint, _ string) (string, error) {
			return "", h.webhooks.Remove(ctx, audit.Platform, h.org, e.ID, time.Now())
		}, 1, 0, "delivered cancelled cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in, other inbox
			arrived, answer := make(chan struct{}), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				in.ServeHTTP(w, r)
				if len(in.requests) == 1 {
					close(arrived)
					<-answer
				}
			}))
			t.Cleanup(server.Close)
			elsewhere := httptest.NewServer(&other)
			t.Cleanup(elsewhere.Close)
			h := newHouse(t, loopback)
			var later atomic.Int64
			h.handler.Clock = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
			e, before := h.addURL(t, server.URL)
			h.record(t, 3)
			if _, err := h.db.Exec(t.Context(), `UPDATE webhook_queue SET in_order = true`); err != nil {
				t.Fatal(err)
			}
			leases := h.lease(t, time.Second)
			check.Equal(check.Now(t), "number of leases", len(leases), 1, "leased %+v", leases)
			check.True(check.Now(t), "the lease is in order", leases[0].InOrder, "leased %+v", leases)
			handled := make(chan error, 1)
			go func() { handled <- h.handler.Handle(t.Context(), payload(leases...)) }()
			<-arrived
			after, err := c.do(t.Context(), h, e, elsewhere.URL)
			later.Store(int64(time.Second)) // the answer takes so long
			close(answer)
			if err := errors.Join(err, <-handled); err != nil {
				t.Fatal(err)
			}
			check.Equal(check.Now(t), "number of requests", len(in.requests), c.here, "%d requests arrived here and %d there, want %d and %d", len(in.requests), len(other.requests), c.here, c.there)
			check.Equal(check.Now(t), "number of requests", len(other.requests), c.there, "%d requests arrived here and %d there, want %d and %d", len(in.requests), len(other.requests), c.here, c.there)
			h.giveBack(t, leases)
			if after == "" {
				after = before
			}
			for i, r := range in.requests {
				secret := after
				if i == 0 {
					secret = before
				}
				if err := verify.Signature(r.Header.Get("X-Service-Signature"), in.bodies[i], time.Now(), secret); err != nil {
					t.Errorf("request %d: %v", i+1, err)
				}
			}
			var statuses string
			err = h.db.QueryRow(t.Context(), `SELECT string_agg(status, ' ' ORDER BY id) FROM webhook_states`).Scan(&statuses)
			if check.NoError(t, err, "the deliveries are %s, want %s; %v", statuses, c.statuses, err) {
				check.Equal(t, "statuses", statuses, c.statuses, "the deliveries are %s, want %s; %v", statuses, c.statuses, err)
			}
		})
	}
}
