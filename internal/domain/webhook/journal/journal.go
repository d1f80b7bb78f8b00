// Package journal is the log of deliveries, with every attempt, and what can be done about
// them: resend one, recover a period, delete old days, erase a person.
package journal

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Statuses lists the statuses that a delivery can have.
func Statuses() []webhook.Status {
	return []webhook.Status{
		webhook.StatusWaiting,
		webhook.StatusInFlight,
		webhook.StatusDelivered,
		webhook.StatusDeclined,
		webhook.StatusExhausted,
		webhook.StatusSkipped,
		webhook.StatusCancelled,
		webhook.StatusSuperseded,
	}
}

// Delivery is the delivery of one event to one URL.
type Delivery struct {
	ID         id.Delivery
	Event      id.Event
	Type       webhook.Type
	Sequence   int64 // of the event; 0 for one of before there were any
	Status     webhook.Status
	CreatedAt  time.Time  // of the event
	DueAt      *time.Time // of the next attempt, while waiting
	FinishedAt *time.Time
	// SupersededBy is the delivery because of which this one is webhook.StatusSuperseded.
	SupersededBy *id.Delivery
	Attempts     []Attempt `db:"-"` // the latest mostAttempts, in their order
}

// Hour is how the attempts to a URL ended that began in an hour.
type Hour struct {
	Endpoint          id.Endpoint
	At                time.Time // its beginning
	Delivered, Failed int
}

// mostAttempts is how many of a delivery's attempts are read: resends may make any number of them, and each has what
// the receiver chose to answer.
const mostAttempts = 20

// Attempt is one recorded attempt of a delivery.
type Attempt struct {
	Delivery       id.Delivery
	Number         int // from 1 on
	StartedAt      time.Time
	Duration       time.Duration
	Verdict        webhook.Verdict
	Cause          string
	Detail         string
	Status         *int // of the response; nil when there was none
	Response       []byte
	RequestHeaders map[string]string
	Peer           string
	Timing         webhook.Timing `db:"-"`
}

// Filter narrows a list; the zero Filter keeps everything.
type Filter struct {
	Statuses     []webhook.Status
	Since, Until time.Time // of events, the second of which is outside; zero: any

	// These are no part of an index: Look alone knows them.
	Type  webhook.Type // "": any
	Cause string       // of the last attempt; "": any
}

// MostLooked is how many deliveries Look goes through to find those of a type or with a cause.
const MostLooked = 1000

// Look reads up to limit deliveries of the URL, newest first, that are older than before (the zero id: from the newest
// on), with their attempts. next is where it goes on, the zero id when there is no more: also without a delivery found it
// may go on, as one call goes through MostLooked.
func Look(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, f Filter, before id.Delivery, limit int) (found []Delivery, next id.Delivery, err error) {
	most := limit + 1
	if f.Type != "" || f.Cause != "" {
		most = MostLooked
	}
	rows, err := selectLooked(ctx, q, org, endpoint, f, before, most)
	if err != nil {
		return nil, next, err
	}
	var kept []id.Delivery
	for i, r := range rows {
		if r.Kept {
			kept = append(kept, r.ID)
		}
		if len(kept) == limit && i < len(rows)-1 || i == most-1 {
			next = r.ID
			break
		}
	}
	found, err = Some(ctx, q, org, endpoint, kept)
	return found, next, err
}

// Some reads those of the deliveries that are of the URL, newest first, with their attempts.
func Some(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, deliveries []id.Delivery) ([]Delivery, error) {
	if len(deliveries) == 0 {
		return nil, nil
	}
	list, err := selectSome(ctx, q, org, endpoint, deliveries)
	if err != nil {
		return nil, err
	}
	return list, attach(ctx, q, org, endpoint, list)
}

// CheckStatuses converts names to statuses. Faults: Invalid on status.
func CheckStatuses(names []string) ([]webhook.Status, error) {
	out := make([]webhook.Status, 0, len(names))
	for _, name := range names {
		if !slices.Contains(Statuses(), webhook.Status(name)) {
			return nil, fault.Field("status", "unknown_status", "status: %q is no status; choose from %v", name, Statuses())
		}
		out = append(out, webhook.Status(name))
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
	return list, attach(ctx, q, org, endpoint, list)
}

// Find reads one delivery with its attempts. Faults: NotFound.
func Find(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, delivery id.Delivery) (Delivery, error) {
	d, err := selectDelivery(ctx, q, org, endpoint, delivery)
	if pg.None(err) {
		return Delivery{}, errNoDelivery(delivery)
	} else if err != nil {
		return Delivery{}, err
	}
	one := []Delivery{d}
	err = attach(ctx, q, org, endpoint, one)
	return one[0], err
}

func errNoDelivery(delivery id.Delivery) error {
	return fault.New(fault.NotFound, "not_found", "the URL has no delivery with the id %s", delivery)
}

// attach reads the attempts of the deliveries of a URL.
func attach(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, list []Delivery) error {
	if len(list) == 0 {
		return nil
	}
	index := make(map[id.Delivery]int, len(list))
	for i, d := range list {
		index[d.ID] = i
	}
	attempts, err := selectAttempts(ctx, q, org, endpoint, list)
	for _, a := range attempts {
		d := &list[index[a.Delivery]]
		a.RequestHeaders = withCommon(a.RequestHeaders, *d)
		d.Attempts = append(d.Attempts, a)
	}
	return err
}

// withCommon completes the headers of an attempt, of which the journal keeps what differs.
func withCommon(own map[string]string, d Delivery) map[string]string {
	all := webhook.CommonHeaders(d.Type, d.Event, d.Sequence)
	maps.Copy(all, own)
	return all
}

// Resend attempts the delivery again at once, with the same event id, ahead of the backlog
// and also when the URL is off. If the attempt fails while the URL is on, a new round of the
// schedule begins. Faults: NotFound; Conflict "in_flight" while an attempt is under way,
// "erased" for an event about an erased person.
func Resend(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, endpoint id.Endpoint, delivery id.Delivery, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		d, err := lockDelivery(ctx, tx, org, endpoint, delivery)
		switch {
		case pg.None(err):
			return errNoDelivery(delivery)
		case err != nil:
			return err
		case d.Erased:
			return fault.New(fault.Conflict, "erased", "the event's data was erased with the person it was about")
		case d.Status == webhook.StatusInFlight:
			return fault.New(fault.Conflict, "in_flight", "an attempt is under way; resend once it has ended")
		}
		webhook.Wake(tx, org)
		if err := ask(ctx, tx, org, endpoint, delivery, d, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "resent event",
			Target: string(d.Type) + " " + d.Event.String(), At: now})
	})
}
