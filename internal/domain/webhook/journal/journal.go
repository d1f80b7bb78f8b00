// Package journal is the log of deliveries: what became of each event at each URL, with
// every attempt, and what people do about it: resend one, recover a stretch of time, keep
// for some days, erase a person.
package journal

import (
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Status is what has become of a delivery.
type Status string

// The statuses. Declined, exhausted and skipped deliveries can be recovered; any that is
// not under way can be resent.
const (
	Waiting   Status = "waiting"   // for its first or its next attempt
	InFlight  Status = "in_flight" // handed to a sender
	Delivered Status = "delivered"
	Declined  Status = "declined"  // the receiver answered with a 4xx
	Exhausted Status = "exhausted" // twelve tries failed
	Skipped   Status = "skipped"   // the URL was switched off
	Cancelled Status = "cancelled" // the URL was deleted, or the person erased
)

// Statuses lists them.
func Statuses() []Status {
	return []Status{Waiting, InFlight, Delivered, Declined, Exhausted, Skipped, Cancelled}
}

// ended are the statuses of deliveries that are over and were not received.
var ended = []Status{Declined, Exhausted, Skipped, Cancelled}

// Delivery is one event's way to one URL.
type Delivery struct {
	ID         id.Delivery
	Event      id.Event
	Type       webhook.Type
	Status     Status
	CreatedAt  time.Time  // of the event
	DueAt      *time.Time // of the next attempt, while waiting
	FinishedAt *time.Time
	Attempts   []Attempt // in their order
}

// Attempt is one try, as it was recorded.
type Attempt struct {
	Delivery       id.Delivery
	Number         int
	StartedAt      time.Time
	Duration       time.Duration
	Verdict        webhook.Verdict
	Cause          string
	Detail         string
	Status         *int
	Response       []byte
	RequestHeaders map[string]string
	Peer           string
	Timing         webhook.Timing
}

// Filter narrows a list; the zero Filter lets everything through.
type Filter struct{ Statuses []Status }

// CheckStatuses wants each name to be a status. Invalid on status.
func CheckStatuses(names []string) ([]Status, error) {
	out := make([]Status, 0, len(names))
	for _, name := range names {
		if !slices.Contains(Statuses(), Status(name)) {
			return nil, fault.Field("status", "unknown_status", "status: %q is no status; choose from %v", name, Statuses())
		}
		out = append(out, Status(name))
	}
	return out, nil
}

// List reads up to limit deliveries of the URL, newest first, that are older than before
// (the zero id: from the newest on), with their attempts.
func List(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, f Filter, before id.Delivery, limit int) ([]Delivery, error) {
	list, err := selectDeliveries(ctx, q, org, endpoint, f, before, limit)
	if err != nil {
		return nil, err
	}
	return list, attach(ctx, q, list)
}

// Find reads one delivery with its attempts; NotFound when the URL has no such.
func Find(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, delivery id.Delivery) (Delivery, error) {
	d, err := selectDelivery(ctx, q, org, endpoint, delivery)
	if pg.None(err) {
		return Delivery{}, errNoDelivery(delivery)
	} else if err != nil {
		return Delivery{}, err
	}
	one := []Delivery{d}
	err = attach(ctx, q, one)
	return one[0], err
}

func errNoDelivery(delivery id.Delivery) error {
	return fault.New(fault.NotFound, "not_found", "the URL has no delivery with the id %s", delivery)
}

// attach reads the attempts of the deliveries.
func attach(ctx context.Context, q pg.Querier, list []Delivery) error {
	if len(list) == 0 {
		return nil
	}
	place := make(map[id.Delivery]int, len(list))
	for i, d := range list {
		place[d.ID] = i
	}
	attempts, err := selectAttempts(ctx, q, list)
	for _, a := range attempts {
		d := &list[place[a.Delivery]]
		d.Attempts = append(d.Attempts, a)
	}
	return err
}

// Resend makes a new attempt of the delivery, with the same event id, at once and ahead of
// the backlog, also while the URL is off. Should it fail, a new round of the schedule
// begins where the URL is on. Faults: NotFound; Conflict "in_flight" while an attempt is
// under way, "erased" for an event that spoke of an erased person.
func Resend(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, endpoint id.Endpoint, delivery id.Delivery, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		d, erased, err := lockDelivery(ctx, tx, org, endpoint, delivery)
		switch {
		case pg.None(err):
			return errNoDelivery(delivery)
		case err != nil:
			return err
		case erased:
			return fault.New(fault.Conflict, "erased", "the event's data was erased with the person it spoke of")
		case d.Status == InFlight:
			return fault.New(fault.Conflict, "in_flight", "an attempt is under way; resend once it has ended")
		}
		webhook.Wake(tx, org)
		if err := ask(ctx, tx, delivery, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "resent event",
			Target: string(d.Type) + " " + d.Event.String(), At: now})
	})
}
