// Package webhook records events and delivers them to receiver URLs.
//
// Call Record in the transaction that makes a change. It writes the event, and one delivery
// row for each URL that selected the event's type. These rows are the backlog: the relay
// leases rows that are due to the webhook-sender, which reports each attempt to Settle. An
// event's data arrives ready to encode, so that this package knows no student and no result.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Channel is notified with an organization's id when some of its deliveries may be due, or
// when one of its URLs has room for more.
const Channel = "webhooks"

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

// Types lists the events that a URL can select. Ping is not among them: only Service.SendTest
// sends it.
func Types() []Type {
	return []Type{ResultFinal, StudentJoined, StudentLeft, EnrollmentCreated, EnrollmentUpdated,
		EnrollmentExpiring, EnrollmentEnded, AssignmentCreated, AssignmentOverdue}
}

// Known says whether a URL can select t.
func Known(t Type) bool { return slices.Contains(Types(), t) }

// Event is one change that receivers are notified of. Data must encode to the type's data
// object, with timestamps in UTC; the sender writes them in each URL's zone.
type Event struct {
	Type Type
	User id.User // the person it is about, for erasing them later; 0 for none
	Data any
	// Traceparent is the span that the event belongs to (obs.Traceparent); "" is the one of the context.
	Traceparent string
}

// Record writes events and their deliveries in the caller's transaction; now becomes the
// events' "created".
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

// Write queues what Record does. The batch must be sent in the transaction that makes the
// change.
func Write(ctx context.Context, b *pg.Batch, org id.Organization, now time.Time, events ...Event) error {
	return WriteAll(ctx, b, now, map[id.Organization][]Event{org: events})
}

// WriteAll is Write for several organizations.
func WriteAll(ctx context.Context, b *pg.Batch, now time.Time, events map[id.Organization][]Event) error {
	var rows []eventRow
	own := obs.Traceparent(ctx)
	for _, org := range slices.Sorted(maps.Keys(events)) {
		for _, e := range events[org] {
			data, err := json.Marshal(e.Data)
			if err != nil {
				return fmt.Errorf("event %s: %w", e.Type, err)
			}
			rows = append(rows, eventRow{id: id.NewEvent(now), org: org, kind: e.Type, user: e.User, data: data, traceparent: cmp.Or(e.Traceparent, own)})
		}
	}
	if len(rows) > 0 {
		queueEvents(b, now, rows)
	}
	return nil
}

// Wake makes the relay look, after the commit, for due deliveries of the organization.
func Wake(tx interface{ Wake(channel, payload string) }, org id.Organization) {
	tx.Wake(Channel, strconv.FormatInt(int64(org), 10))
}

type eventRow struct {
	id   id.Event
	org  id.Organization
	kind Type
	user id.User
	data []byte

	traceparent string
}
