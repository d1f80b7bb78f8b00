// Package id gives every identifier a type of its own, so that a course can never
// be passed where an enrollment is meant.
package id

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Identifiers drawn by PostgreSQL from identity columns. Zero is never a row.
type (
	Organization int64 // organizations.id
	APIKey       int64 // api_keys.id
	User         int64 // accounts.id; user_id on the wire
	Course       int64 // courses.id
	Enrollment   int64 // enrollments.id; enrollment_id on the wire
	Endpoint     int64 // webhook_endpoints.id: one receiver URL
	Recovery     int64 // webhook_recoveries.id
	Email        int64 // emails.id
	Task         int64 // outbox_tasks.id
	Item         int64 // catalog_items.id; item_id on the wire
	Assignment   int64 // assignments.id; the number in assignment ids on the wire
	Plan         int64 // plans.id: a student's test plan
	RosterRun    int64 // roster_runs.id; run_id on the wire
	RosterSource int64 // roster_sources.id
	Registration int64 // lms_registrations.id
	LMSContext   int64 // lms_contexts.id
)

// Event is a webhook event's id: a version 7 UUID in the database, "evt_" and 32
// hexadecimal digits on the wire.
type Event uuid.UUID

// Delivery is the id of one event's way to one URL, in the same two forms ("dlv_").
// Its time prefix decides the daily partition that holds the row.
type Delivery uuid.UUID

const (
	eventPrefix    = "evt_"
	deliveryPrefix = "dlv_"
)

// NewEvent draws the id of an event that is created at the given time. Ids are in the order of these
// times, and those that a process draws for one time are in the order of drawing.
func NewEvent(at time.Time) Event { return Event(draw(at)) }

// NewDelivery draws the id of a delivery of an event that is created at the given time, in the same
// order.
func NewDelivery(at time.Time) Delivery { return Delivery(draw(at)) }

// drawn counts the ids of this process.
var drawn atomic.Uint32

// draw makes a version 7 UUID of a time that is the caller's: milliseconds, a 4096th of one, what
// this process has drawn, and chance.
func draw(at time.Time) uuid.UUID {
	const fraction = time.Millisecond / 4096 // 244 ns
	u := uuid.New()
	rest := at.Sub(at.Truncate(time.Millisecond))
	binary.BigEndian.PutUint64(u[:8], uint64(at.UnixMilli())<<16|7<<12|min(uint64(rest/fraction), 4095))
	binary.BigEndian.PutUint32(u[8:12], 0b10<<30|drawn.Add(1)&(1<<30-1))
	return u
}

// String is the wire form: evt_ and 32 hexadecimal digits.
func (e Event) String() string { return eventPrefix + hex.EncodeToString(e[:]) }

// String is the wire form: dlv_ and 32 hexadecimal digits.
func (d Delivery) String() string { return deliveryPrefix + hex.EncodeToString(d[:]) }

// MarshalText writes the wire form.
func (e Event) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// MarshalText writes the wire form.
func (d Delivery) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the wire form.
func (d *Delivery) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDelivery(string(b))
	return err
}

// UUIDValue lets pgx write the id as a uuid.
func (e Event) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: e, Valid: true}, nil }

// UUIDValue lets pgx write the id as a uuid.
func (d Delivery) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: d, Valid: true}, nil }

// ScanUUID lets pgx read the id from a uuid.
func (e *Event) ScanUUID(v pgtype.UUID) error { *e = v.Bytes; return nil }

// ScanUUID lets pgx read the id from a uuid.
func (d *Delivery) ScanUUID(v pgtype.UUID) error { *d = v.Bytes; return nil }

// ParseEvent reads the wire form; anything else is NotFound, as no such row can exist.
func ParseEvent(s string) (Event, error) {
	u, err := parse(eventPrefix, s)
	return Event(u), err
}

// ParseDelivery reads the wire form; anything else is NotFound, as no such row can exist.
func ParseDelivery(s string) (Delivery, error) {
	u, err := parse(deliveryPrefix, s)
	return Delivery(u), err
}

func parse(prefix, s string) (uuid.UUID, error) {
	digits, ok := strings.CutPrefix(s, prefix)
	if ok && len(digits) == 32 {
		if u, err := uuid.Parse(digits); err == nil {
			return u, nil
		}
	}
	return uuid.UUID{}, fault.New(fault.NotFound, "not_found", "there is nothing with the id %q", s)
}
