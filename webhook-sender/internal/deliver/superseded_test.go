package deliver_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Reference: webhooks#order.
func TestAnOlderResultIsNotSentAfterANewerOneWasAccepted(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	var mu sync.Mutex
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if failing.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
	}))
	defer server.Close()
	accepted := func(part string) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, body := range bodies {
			n += strings.Count(body, part)
		}
		return n
	}
	h := newHouse(t, loopback)
	endpoint, _ := h.addURL(t, server.URL)
	mark := func(user id.User, result string, score int) {
		t.Helper()
		err := h.db.InTx(t.Context(), func(tx *pg.Tx) error {
			return webhook.Record(t.Context(), tx, h.org, time.Now(),
				webhook.Event{Type: webhook.ResultFinal, User: user, Data: map[string]any{"id": result, "score": score}})
		})
		check.NoError(check.Now(t), err, "%v", err)
	}
	list := func(status webhook.Status) []journal.Delivery {
		t.Helper()
		found, err := journal.List(t.Context(), h.db, h.org, endpoint.ID, journal.Filter{Statuses: []webhook.Status{status}}, id.Delivery{}, 10)
		check.NoError(check.Now(t), err, "%v", err)
		return found
	}

	failing.Store(true)
	mark(1, "test:1", 5)
	mark(1, "test:2", 5)
	mark(2, "test:3", 5)
	h.handle(t, h.lease(t, time.Second))
	failing.Store(false)
	mark(1, "test:1", 7)
	h.handle(t, h.lease(t, time.Second))
	check.Equal(check.Now(t), "accepted", accepted(`"score":7`), 1, "%q", bodies)
	for leases := h.lease(t, 2*time.Minute); len(leases) > 0; leases = h.lease(t, 2*time.Minute) { // as the allowance permits
		h.handle(t, leases)
	}

	check.Equal(t, "older states after a newer one", accepted(`"id":"test:1","score":5`), 0, "%q", bodies)
	check.Equal(t, "results without a newer state", accepted(`"score":5`), 2, "%q", bodies)
	superseded, delivered := list(webhook.StatusSuperseded), list(webhook.StatusDelivered)
	check.Equal(check.Now(t), "superseded", len(superseded), 1, "%+v", superseded)
	check.Equal(check.Now(t), "delivered", len(delivered), 3, "%+v", delivered)
	check.True(check.Now(t), "it names its successor", superseded[0].SupersededBy != nil, "%+v", superseded)
	check.Equal(t, "the successor", *superseded[0].SupersededBy, delivered[0].ID, "%+v, %+v", superseded, delivered)
	check.True(t, "a delivery is superseded by none", delivered[0].SupersededBy == nil, "%+v", delivered)

	err := journal.Resend(t.Context(), h.db, audit.Platform, h.org, endpoint.ID, superseded[0].ID, time.Now())
	check.NoError(check.Now(t), err, "%v", err)
	h.handle(t, h.lease(t, time.Second))
	check.Equal(t, "sent by hand", accepted(`"id":"test:1","score":5`), 1, "%q", bodies)
	check.Equal(t, "superseded after the resend", len(list(webhook.StatusSuperseded)), 0, "%v", list(webhook.StatusSuperseded))
}
