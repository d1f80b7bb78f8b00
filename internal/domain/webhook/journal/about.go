package journal

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// StudentDelivery is the delivery of an event about one person to one URL.
type StudentDelivery struct {
	Event     id.Event
	Type      webhook.Type
	CreatedAt time.Time
	Delivery  id.Delivery // zero: the URL does not get the event
	Endpoint  id.Endpoint
	URL       string
	Status    webhook.Status
}

// StudentEvent is an event about one person, with its deliveries.
type StudentEvent struct {
	Event      id.Event
	Type       webhook.Type
	CreatedAt  time.Time
	Deliveries []StudentDelivery // to the URLs that the organization still has
}

// StudentEvents lists the latest events about the person, newest first. Events are kept for
// some days; see Drop.
func StudentEvents(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]StudentEvent, error) {
	rows, err := selectAbout(ctx, q, org, user, limit)
	var events []StudentEvent
	for _, r := range rows {
		if len(events) == 0 || events[len(events)-1].Event != r.Event {
			events = append(events, StudentEvent{Event: r.Event, Type: r.Type, CreatedAt: r.CreatedAt})
		}
		if last := &events[len(events)-1]; r.Delivery != (id.Delivery{}) {
			last.Deliveries = append(last.Deliveries, r)
		}
	}
	return events, err
}
