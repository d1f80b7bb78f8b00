// Package email writes the mails to students and staff, sends each at most once, and records its
// status.
//
// Queue stores a mail in the caller's transaction, together with an outbox row, so a request
// never talks to a mail server. The statuses are those of the API (reference:
// provisioning#email-status), without not_requested and not_needed, which callers use when there
// is no mail.
package email

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Channel is notified with a mail's id, in decimal digits, when its status has become
// final: what a request with Prefer: wait listens for.
const Channel = "email"

// Status is how far a mail is (reference: provisioning#email-status).
type Status string

// The statuses. All but Queued are final.
const (
	Queued     Status = "queued"     // stored; sent, and retried, by the worker
	Sent       Status = "sent"       // the mail server took it
	Uncertain  Status = "uncertain"  // it may have arrived; never sent again by itself
	Suppressed Status = "suppressed" // an address that is not mailed
	Failed     Status = "failed"     // refused, or not deliverable for a day
)

// Final says whether the status can change no more.
func (s Status) Final() bool { return s != Queued }

// detailQueued is a waiting mail's detail before its first attempt.
const detailQueued = "waiting to be sent"

// Service stores mails to be sent.
type Service struct {
	Box        *seal.Box
	Suppressed Domains // not mailed, beside the reserved ones
	Caught     bool    // mails go to addresses of any domain, because Sender.Catch takes them all
}

// Message is a mail to one student.
type Message struct {
	Organization id.Organization // 0: none's; the person's own doing
	User         id.User
	Recipient    string // a bare address, its domain in ASCII
	Content      Content
	Secrets      Secrets
}

// Record is a mail's status. The zero Record means that there is no mail.
type Record struct {
	ID        id.Email
	Type      Type
	Status    Status
	Detail    string // a short reason; "" when sent
	CreatedAt time.Time
}

// An address gets at most share onboarding mails of all organizations together in shareOf (reference:
// provisioning#email-status). Mails that a person asked for are no onboarding mails.
const (
	share   = 5
	shareOf = 24 * time.Hour
)

// detailShare tells an organization nothing of the mails of others.
const detailShare = "no more onboarding mails go to this address within a day; send resend_welcome_email tomorrow"

// Queue stores a mail, which is sent after tx has committed. It stores the mail as suppressed
// when no mail is sent to its address, or no more today: who queues an onboarding mail holds the lock
// of its address. It costs one round trip.
func (s Service) Queue(ctx context.Context, tx *pg.Tx, now time.Time, m Message) (r Record, err error) {
	var b pg.Batch
	if err := s.Write(ctx, &b, now, m, &r); err != nil {
		return Record{}, err
	}
	return r, b.Send(ctx, tx)
}

// Write is Queue in a batch. Sending b fills into.
func (s Service) Write(ctx context.Context, b *pg.Batch, now time.Time, m Message, into *Record) error {
	params, err := json.Marshal(m.Content)
	if err != nil {
		return fmt.Errorf("email content: %w", err)
	}
	r := row{
		Organization: m.Organization, User: m.User, Type: m.Content.Type(), Recipient: m.Recipient,
		Reference: uuid.Must(uuid.NewV7()), Params: params, Status: Queued, Detail: detailQueued, CreatedAt: now,
	}
	if domain, hit := s.Suppressed.match(m.Recipient); hit && !s.Caught {
		r.Status, r.Detail = Suppressed, fmt.Sprintf("addresses at %s are not mailed: it is a test or demo domain", domain)
	} else if r.Sealed, err = sealSecrets(ctx, s.Box, r.Reference, m.Secrets); err != nil {
		return err
	}
	most := 0
	if r.Type.onboards() && r.Status == Queued {
		most = share
	}
	queueInsert(b, r, most, now.Add(-shareOf), detailShare, into)
	if r.Status == Queued { // where the address has had its share, the worker finds nothing to send
		outbox.AddLast(b, task.EmailSend, "emails", "id", m.Organization, now)
	}
	return nil
}

// Sending is a mail as its organization sees it, without its text.
type Sending struct {
	ID        id.Email
	Type      Type
	Recipient string
	Status    Status
	Detail    string
	Attempts  int
	CreatedAt time.Time
}

func place(reference uuid.UUID) string { return "emails/" + reference.String() }

// sealSecrets gives nil for no secrets at all.
func sealSecrets(ctx context.Context, box *seal.Box, reference uuid.UUID, s Secrets) ([]byte, error) {
	if s == (Secrets{}) {
		return nil, nil
	}
	plain, err := json.Marshal(s.open()) //nolint:gosec // what is encoded here is sealed in the next step
	if err != nil {
		return nil, err
	}
	return box.Seal(ctx, plain, place(reference))
}

func openSecrets(ctx context.Context, box *seal.Box, reference uuid.UUID, sealed []byte) (Secrets, error) {
	if sealed == nil {
		return Secrets{}, nil
	}
	plain, err := box.Open(ctx, sealed, place(reference))
	if err != nil {
		return Secrets{}, err
	}
	var s opened
	if err := json.Unmarshal(plain, &s); err != nil {
		return Secrets{}, fmt.Errorf("the secrets of %s do not decode: %w", place(reference), err)
	}
	return Secrets(s), nil
}
