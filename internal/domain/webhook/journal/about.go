package journal

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// About is an event about one person on its way to one of the organization's URLs.
type About struct {
	Event     id.Event
	Type      webhook.Type
	CreatedAt time.Time
	Delivery  id.Delivery // zero: it does not go to this URL
	Endpoint  id.Endpoint
	URL       string
	Status    Status
}

// Told is an event about one person, with the deliveries of it.
type Told struct {
	Event     id.Event
	Type      webhook.Type
	CreatedAt time.Time
	Ways      []About // to the URLs that the organization still has
}

// AboutStudent lists the latest events about the person, the last one first. Events are
// kept for some days; see Drop.
func AboutStudent(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]Told, error) {
	rows, err := selectAbout(ctx, q, org, user, limit)
	var told []Told
	for _, a := range rows {
		if len(told) == 0 || told[len(told)-1].Event != a.Event {
			told = append(told, Told{Event: a.Event, Type: a.Type, CreatedAt: a.CreatedAt})
		}
		if last := &told[len(told)-1]; a.Delivery != (id.Delivery{}) {
			last.Ways = append(last.Ways, a)
		}
	}
	return told, err
}
