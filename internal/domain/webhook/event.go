// Package webhook records events and delivers them to receiver URLs.
//
// A transaction that changes something calls Record: it writes the event and one
// delivery row for each URL that selected it. That row is the backlog; the relay leases
// rows of it to the webhook-sender, whose outcomes come back through Settle. Nothing
// here knows what a student or a result is: an event's data arrives ready to encode.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Channel is notified, with an organization's id, when deliveries of it may be due or
// one of its URLs has room for more.
const Channel = "registrar_webhooks"

// Type is an event's name (reference: webhooks#events).
type Type string

// The events.
const (
	ResultFinal        Type = "result.final"
	StudentJoined      Type = "student.joined"
	StudentLeft        Type = "student.left"
	EnrollmentCreated  Type = "enrollment.created"
	EnrollmentUpdated  Type = "enrollment.updated"
	EnrollmentExpiring Type = "enrollment.expiring"
	EnrollmentEnded    Type = "enrollment.ended"
	AssignmentCreated  Type = "assignment.created"
	AssignmentOverdue  Type = "assignment.overdue"
	Ping               Type = "ping"
)

// Types lists every event that a URL can select; ping reaches a URL by Send test alone.
func Types() []Type {
	return []Type{ResultFinal, StudentJoined, StudentLeft, EnrollmentCreated, EnrollmentUpdated,
		EnrollmentExpiring, EnrollmentEnded, AssignmentCreated, AssignmentOverdue}
}

// Known says whether t can be selected.
func Known(t Type) bool { return slices.Contains(Types(), t) }

// Event is one change to tell. Data encodes to the data object of the type,
// with its timestamps in UTC; the sender rewrites them to each URL's zone.
type Event struct {
	Type Type
	User id.User // whom it speaks of, so that erasing a person finds it; 0 for none
	Data any
}

// Record writes the events and their deliveries in the caller's transaction. now is the
// events' created. An organization without URLs keeps no events.
func Record(ctx context.Context, tx *pg.Tx, org id.Organization, now time.Time, events ...Event) error {
	var b pg.Batch
	if err := Write(ctx, &b, org, now, events...); err != nil {
		return err
	}
	if err := b.Send(ctx, tx); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	return nil
}

// Write is Record in a batch, which must be sent in the transaction that changes what the
// events tell.
func Write(ctx context.Context, b *pg.Batch, org id.Organization, now time.Time, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	rows := make([]eventRow, len(events))
	for i, e := range events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.Type, err)
		}
		rows[i] = eventRow{id: id.NewEvent(), kind: e.Type, user: e.User, data: data}
	}
	queueEvents(ctx, b, org, now, rows, func(deliveries int64) {
		if deliveries > 0 {
			Wake(b, org)
		}
	})
	return nil
}

// Wake tells the relay, after the commit, that the organization may have something due.
func Wake(tx interface{ Wake(channel, payload string) }, org id.Organization) {
	tx.Wake(Channel, strconv.FormatInt(int64(org), 10))
}

// Wanted says whether the organization has any URL, so that whoever would record many
// events need not make them for nobody.
func Wanted(ctx context.Context, q pg.Querier, org id.Organization) (bool, error) {
	return hasEndpoint(ctx, q, org)
}

// WantedBy is Wanted for many organizations.
func WantedBy(ctx context.Context, q pg.Querier, orgs ...id.Organization) (map[id.Organization]bool, error) {
	return haveEndpoints(ctx, q, orgs)
}

type eventRow struct {
	id   id.Event
	kind Type
	user id.User
	data []byte
}
