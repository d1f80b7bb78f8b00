// Package webhooktest plays the part of receivers in tests.
package webhooktest

import (
	"fmt"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Decline records n events for the webhook URLs of the organization, whose receivers decline them.
func Decline(t testing.TB, db *pg.DB, org id.Organization, now time.Time, n int) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		for i := range n {
			event := webhook.Event{Type: webhook.ResultFinal, User: 7, Data: map[string]any{"id": fmt.Sprintf("test:%d", i)}}
			if err := webhook.Record(t.Context(), tx, org, now, event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	leases, _, err := dispatch.LeaseDue(t.Context(), db, now, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []webhook.Outcome
	for _, l := range leases {
		for _, d := range l.Deliveries {
			outcomes = append(outcomes, webhook.Outcome{Delivery: d, Endpoint: l.Endpoint, Organization: l.Organization, Number: 1,
				StartedAt: now, Duration: 12 * time.Millisecond, Verdict: webhook.Declined, Cause: "http_404", Status: 404, Response: []byte("no such page"),
				RequestHeaders: map[string]string{"Content-Type": "application/json"}, Peer: "203.0.113.7:443",
				Timing: webhook.Timing{DNS: time.Millisecond, Connect: 2 * time.Millisecond, TLS: 4 * time.Millisecond, FirstByte: 11 * time.Millisecond}})
		}
	}
	if err := db.InTx(t.Context(), func(tx *pg.Tx) error { return webhook.Settle(t.Context(), tx, outcomes) }); err != nil {
		t.Fatal(err)
	}
}
