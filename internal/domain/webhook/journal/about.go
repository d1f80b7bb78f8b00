package journal

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// StudentDelivery is an event about one person on its way to one of the organization's URLs.
type StudentDelivery struct {
	Event     id.Event
	Type      webhook.Type
	CreatedAt time.Time
	Delivery  id.Delivery // zero: it does not go to this URL
	Endpoint  id.Endpoint
	URL       string
	Status    Status
}

// StudentEvent is an event about one person, with the deliveries of it.
type StudentEvent struct {
	Event      id.Event
	Type       webhook.Type
	CreatedAt  time.Time
	Deliveries []StudentDelivery // to the URLs that the organization still has
}

// StudentEvents lists the latest events about the person, the last one first. Events are
// kept for some days; see Drop.
func StudentEvents(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]StudentEvent, error) {
	rows, err := selectAbout(ctx, q, org, user, limit)
	var events []StudentEvent
	for _, a := range rows {
		if len(events) == 0 || events[len(events)-1].Event != a.Event {
			events = append(events, StudentEvent{Event: a.Event, Type: a.Type, CreatedAt: a.CreatedAt})
		}
		if last := &events[len(events)-1]; a.Delivery != (id.Delivery{}) {
			last.Deliveries = append(last.Deliveries, a)
		}
	}
	return events, err
}
