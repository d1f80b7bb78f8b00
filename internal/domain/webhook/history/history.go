// Package history reads events with their deliveries and with what receivers answered: those about one person,
// or a single one.
package history

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Event is one that was recorded, with the person whom it is about.
type Event struct {
	ID        id.Event
	Type      webhook.Type
	User      id.User // 0: nobody
	CreatedAt time.Time
	Data      []byte // JSON object
	Sequence  int64  // 0 for one of before there were any
}

// Delivery is the delivery of an event to a URL that the organization still has.
type Delivery struct {
	ID           id.Delivery
	Event        id.Event
	Endpoint     id.Endpoint
	URL          string
	SwitchedOn   bool   // the URL, now
	OffReason    string // of the URL; "" when it is on
	Status       webhook.Status
	DueAt        *time.Time   // of the next attempt, while waiting
	SupersededBy *id.Delivery `db:"-"` // where superseded
	Tried        int          `db:"-"` // attempts that were made
	Answers      []Answer     `db:"-"` // of the last answersShown attempts, in their order
}

// Answer is the outcome of an attempt.
type Answer struct {
	Delivery  id.Delivery
	Number    int // from 1 on
	StartedAt time.Time
	Duration  time.Duration
	Verdict   webhook.Verdict
	Cause     string
	Status    *int // of the response; nil when there was none
}

// answersShown is how many attempts of a delivery Deliveries reads at most.
const answersShown = 50

// Find reads an event of the organization. Faults: NotFound.
func Find(ctx context.Context, q pg.Querier, org id.Organization, event id.Event) (Event, error) {
	r, err := selectEvent(ctx, q, org, event)
	if pg.None(err) {
		err = fault.New(fault.NotFound, "not_found", "the organization has no event with the id %s; events are kept for some days", event)
	}
	return r, err
}

// EventOf finds the event of a delivery to a URL that the organization still has. Faults: NotFound.
func EventOf(ctx context.Context, q pg.Querier, org id.Organization, delivery id.Delivery) (id.Event, error) {
	e, err := selectEventOf(ctx, q, org, delivery)
	if pg.None(err) {
		err = fault.New(fault.NotFound, "not_found", "the organization has no delivery with the id %s; deliveries are kept for some days", delivery)
	}
	return e, err
}

// Deliveries reads those of events of the organization, by the events, each one's by the URLs.
func Deliveries(ctx context.Context, q pg.Querier, org id.Organization, events []id.Event) (map[id.Event][]Delivery, error) {
	if len(events) == 0 {
		return nil, nil
	}
	rows, err := selectDeliveries(ctx, q, org, events)
	if err != nil {
		return nil, err
	}
	answers, err := selectAnswers(ctx, q, org, events, rows)
	if err != nil {
		return nil, err
	}
	var superseded []Delivery
	for _, d := range rows {
		if d.Status == webhook.StatusSuperseded {
			superseded = append(superseded, d)
		}
	}
	var successors map[id.Delivery]id.Delivery
	if len(superseded) > 0 {
		if successors, err = selectSuccessors(ctx, q, org, superseded); err != nil {
			return nil, err
		}
	}
	of := make(map[id.Event][]Delivery, len(events))
	for _, d := range rows {
		d.Answers = answers[d.ID]
		if newer, ok := successors[d.ID]; ok {
			d.SupersededBy = &newer
		}
		if n := len(d.Answers); n > 0 {
			d.Tried = d.Answers[n-1].Number
		}
		of[d.Event] = append(of[d.Event], d)
	}
	return of, nil
}
