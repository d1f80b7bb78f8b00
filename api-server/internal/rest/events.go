package rest

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/feed"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// listEvents answers GET /events/.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	f := feed.Filter{Types: q.eventTypes(), Since: q.since("since")}
	ctx, who, o := r.Context(), student.Ref{User: q.user()}, principal(r.Context()).Organization
	from := webhook.Sender{ID: o.ID, Slug: o.Slug, Name: o.Name}
	var found feed.Page
	return edge.List[webhook.Stored]{
		Cursors: s.Cursors, Organization: o.ID, Name: "events", Array: "events", Epochs: page.Positions, Limit: q.Limit(maxLimit, usualLimit),
		Read: func(db *pg.DB, after page.Position, limit int, each func(webhook.Stored) error) error {
			n, err := s.narrow(ctx, db, 0, who)
			if err != nil {
				return err
			}
			f.User = n.user
			found, err = feed.Read(ctx, s.Reads, n.org, f, after, limit, s.Clock())
			return edge.Each(found.Events, err, each)
		},
		Position: feed.PositionOf,
		Show:     func(e webhook.Stored) any { return eventBody{e, from, q.zone} },
		Reached:  func() (page.Position, bool) { return found.End, found.Stopped },
	}.Answer(w, r, q.Query)
}

// eventTypes reads one type or several with commas between them; nil means all of them.
func (q *query) eventTypes() []webhook.Type {
	var types []webhook.Type
	for _, word := range q.Words("types") {
		t := webhook.Type(word)
		switch {
		case !webhook.Known(t):
			q.Fault("types", "not_a_choice", "%q is no event; choose from %v, or several with commas between them", word, webhook.Types())
			return nil
		case !slices.Contains(types, t):
			types = append(types, t)
		}
	}
	slices.Sort(types)
	for _, t := range types {
		q.Filter("types", string(t))
	}
	return types
}

// eventBody is an event as a POST carries it, with its sequence.
type eventBody struct {
	webhook.Stored
	from webhook.Sender
	zone *time.Location
}

// MarshalJSON implements json.Marshaler.
func (e eventBody) MarshalJSON() ([]byte, error) {
	body, err := webhook.Envelope(e.Stored, e.from, e.zone)
	if err != nil {
		return nil, err
	}
	body = append(body[:len(body)-1], `,"sequence":`...)
	return append(strconv.AppendInt(body, e.Sequence, 10), '}'), nil
}
