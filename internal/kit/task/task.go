// Package task names the kinds of work that cross a process boundary, and their
// payloads. A payload holds ids only: the row is the truth.
package task

import (
	"encoding/json"
	"fmt"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Kind names a handler. The part before the dot is the queue.
type Kind string

// The kinds.
const (
	EmailSend      Kind = "email.send"                  // subject: emails.id
	PasswordReset  Kind = "email.password_reset"        // subject: password_resets.id
	WebhookDeliver Kind = "webhook.deliver"             // payload: a list of Deliver
	WebhookSandbox Kind = "webhook.sandbox"             // payload: a SandboxLease
	PlanStep       Kind = "plan.step"                   // subject: plans.id
	WebhookCancel  Kind = "maintenance.webhook_cancel"  // subject: the removed webhook_endpoints.id
	RosterRun      Kind = "roster.run"                  // subject: roster_runs.id
	WebhookRecover Kind = "maintenance.webhook_recover" // subject: webhook_recoveries.id
	WebhookSkip    Kind = "maintenance.webhook_skip"    // subject: the switched-off webhook_endpoints.id
)

// Outbox is the payload of every task that the outbox hands out.
type Outbox struct {
	Task  id.Task `json:"task"`
	Claim int     `json:"claim"` // fences: an older claim may not finish the task
}

// Deliver is one lease: deliveries of one URL that one task attempts, beside the other leases of
// its list.
type Deliver struct {
	Organization id.Organization `json:"organization"`
	Endpoint     id.Endpoint     `json:"endpoint"`
	Lease        string          `json:"lease"` // uuid; fences as Outbox.Claim does
	Deliveries   []id.Delivery   `json:"deliveries"`
	// Run is the run of failures that was known when the lease was made; 0 for none.
	Run int `json:"run,omitempty"`
	// More says that the URL may have had more due than it could be given.
	More bool `json:"more,omitempty"`
	// InOrder attempts one after the other, and gives back what follows a failure.
	InOrder bool `json:"in_order,omitempty"`
}

// SandboxLease is a lease in the database of an organization's sandbox, which its generation names.
type SandboxLease struct {
	Generation int `json:"generation"`
	Deliver
}

// Encode writes a payload; it cannot fail for the types of this package.
func Encode(payload any) []byte {
	b, err := json.Marshal(payload)
	if err != nil {
		panic(fmt.Sprintf("task: %T does not encode: %v", payload, err))
	}
	return b
}

// Decode reads a payload.
func Decode[T any](b []byte) (T, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("task payload %q: %w", b, err)
	}
	return v, nil
}
