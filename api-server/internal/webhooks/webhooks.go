// Package webhooks has the calls about an organization's webhook URLs, and about what was sent to them, which the
// partner API and the platform API have alike (reference: webhooks#managing-urls).
package webhooks

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Server holds what the handlers need.
type Server struct {
	Endpoints webhook.Service
	Clock     clock.Clock
	Cursors   *page.Cursors

	Reads *pg.Reads // of the log; nil: from the primary

	// Caller says whose URLs a request is about, and who makes it.
	Caller func(*http.Request) (Caller, error)
}

// Caller is who makes a request.
type Caller struct {
	Organization id.Organization
	Actor        audit.Actor
}

// Routes registers the calls below base, the path of the organization; "" where the key says which it is.
func (s *Server) Routes(r chi.Router, base string) {
	r.Get(base+"/webhook-endpoints", edge.Handle(s.listEndpoints))
	r.Post(base+"/webhook-endpoints", edge.Handle(s.createEndpoint))
	base += "/webhook-endpoints/{id}"
	r.Get(base, edge.Handle(s.showing(s.find)))
	r.Patch(base, edge.Handle(s.changeEndpoint))
	r.Delete(base, edge.Handle(s.removeEndpoint))
	r.Post(base+"/rotate-secret", edge.Handle(s.rotateSecret))
	r.Post(base+"/send-test", edge.Handle(s.sendTest))
	r.Post(base+"/turn-on", edge.Handle(s.showing(s.turnOn)))
	r.Get(base+"/deliveries", edge.Handle(s.listDeliveries))
	r.Get(base+"/deliveries/{delivery}", edge.Handle(s.showDelivery))
	r.Post(base+"/deliveries/{delivery}/resend", edge.Handle(s.resendDelivery))
	r.Post(base+"/recover", edge.Handle(s.recoverDeliveries))
	r.Get(base+"/recoveries", edge.Handle(s.listRecoveries))
}

// maxURL is far above what receivers use; webhook.Settings has the exact rules.
const maxURL = 2000

type endpointBody struct {
	ID                  id.Endpoint      `json:"id"`
	URL                 string           `json:"url"`
	Events              []webhook.Type   `json:"events"`
	TimeZone            string           `json:"time_zone"`
	SwitchedOn          bool             `json:"switched_on"`
	SwitchedOffAt       *clock.Timestamp `json:"switched_off_at"`
	SwitchedOffReason   string           `json:"switched_off_reason"`
	SecretVersion       int              `json:"secret_version"`
	PreviousUntil       *clock.Timestamp `json:"previous_secret_until"`
	ConsecutiveFailures int              `json:"consecutive_failures"`
	LastSuccessAt       *clock.Timestamp `json:"last_success_at"`
	LastFailureAt       *clock.Timestamp `json:"last_failure_at"`
	Backlog             int              `json:"backlog"`
	ManagedBy           *string          `json:"managed_by"`
	CreatedAt           *clock.Timestamp `json:"created_at"`
}

// shown puts endpoints into their answer's form, in one query more for all backlogs.
func (s *Server) shown(r *http.Request, zone *time.Location, list ...webhook.Endpoint) ([]endpointBody, error) {
	ids := make([]id.Endpoint, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	backlogs, err := s.Endpoints.Backlogs(r.Context(), ids...)
	if err != nil {
		return nil, err
	}
	bodies := make([]endpointBody, len(list))
	for i, e := range list {
		bodies[i] = endpointOf(e, backlogs[e.ID], zone, s.Clock())
	}
	return bodies, nil
}

func endpointOf(e webhook.Endpoint, backlog int, zone *time.Location, now time.Time) endpointBody {
	events := e.Events
	if len(events) == 0 {
		events = webhook.Types()
	}
	var managedBy *string
	if e.ManagedBy != "" {
		managedBy = &e.ManagedBy
	}
	return endpointBody{e.ID, e.URL, events, e.TimeZone, e.SwitchedOn, clock.OptionalStamp(e.SwitchedOffAt, zone), e.SwitchedOffReason, e.SecretVersion,
		clock.OptionalStamp(e.Overlap(now), zone), e.ConsecutiveFailures, clock.OptionalStamp(e.LastSuccessAt, zone), clock.OptionalStamp(e.LastFailureAt, zone), backlog, managedBy, clock.Stamp(e.CreatedAt, zone)}
}

type oneEndpointBody struct {
	Status string `json:"status"`
	endpointBody
	Secret   string   `json:"signing_secret,omitempty"` // when it was just drawn
	Warnings []string `json:"warnings,omitempty"`
}

// answer shows an endpoint; secret and warnings may be empty.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, status int, zone *time.Location, e webhook.Endpoint, secret string, warnings []string) error {
	bodies, err := s.shown(r, zone, e)
	if err != nil {
		return err
	}
	return edge.JSON(w, status, oneEndpointBody{"ok", bodies[0], secret, warnings})
}

// target is what a path names, and who names it.
type target struct {
	Caller
	endpoint id.Endpoint
}

// target reads the path; whether the organization has such an endpoint is seen when it is used.
func (s *Server) target(r *http.Request) (t target, err error) {
	if t.Caller, err = s.Caller(r); err == nil {
		t.endpoint, err = edge.IDParam[id.Endpoint](r, "id")
	}
	return t, err
}

// zoneOf is the zone in which the answer's timestamps are written.
func zoneOf(r *http.Request) (*time.Location, error) {
	q := edge.ReadQuery(r)
	zone := q.Zone()
	return zone, q.Err()
}

// readBody reads the body and the zone; the body's Err has the faults of both.
func readBody(w http.ResponseWriter, r *http.Request) (*edge.Body, *time.Location, error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return nil, nil, err
	}
	zone, err := zoneOf(r)
	b.Add(err)
	return b, zone, nil
}

// readSettings reads the members that are there; an empty list of events means all.
func readSettings(b *edge.Body) webhook.Settings {
	settings := webhook.Settings{URL: b.Text("url", maxURL), TimeZone: b.Text("time_zone", 100)}
	if names := b.List("events"); names != nil {
		events := make([]webhook.Type, len(names))
		for i, n := range names {
			events[i] = webhook.Type(n)
		}
		settings.Events = &events
	}
	return settings
}

func (s *Server) createEndpoint(w http.ResponseWriter, r *http.Request) error {
	b, zone, err := readBody(w, r)
	if err != nil {
		return err
	}
	b.Required("url")
	settings := readSettings(b)
	if err := b.Err(); err != nil {
		return err
	}
	c, err := s.Caller(r)
	if err != nil {
		return err
	}
	e, secret, err := s.Endpoints.Add(r.Context(), c.Actor, c.Organization, settings, s.Clock())
	if err != nil {
		return err
	}
	return s.answer(w, r, http.StatusCreated, zone, e, secret, b.Unread())
}

type endpointsBody struct {
	Status    string         `json:"status"`
	Count     int            `json:"count"`
	Endpoints []endpointBody `json:"webhook_endpoints"`
}

func (s *Server) listEndpoints(w http.ResponseWriter, r *http.Request) error {
	zone, err := zoneOf(r)
	if err != nil {
		return err
	}
	c, err := s.Caller(r)
	if err != nil {
		return err
	}
	list, err := s.Endpoints.List(r.Context(), c.Organization)
	if err != nil {
		return err
	}
	bodies, err := s.shown(r, zone, list...)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, endpointsBody{"ok", len(bodies), bodies})
}

// showing handles a call without a body that shows the endpoint of its path.
func (s *Server) showing(call func(context.Context, target) (webhook.Endpoint, error)) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		zone, err := zoneOf(r)
		if err != nil {
			return err
		}
		t, err := s.target(r)
		if err != nil {
			return err
		}
		e, err := call(r.Context(), t)
		if err != nil {
			return err
		}
		return s.answer(w, r, http.StatusOK, zone, e, "", nil)
	}
}

func (s *Server) find(ctx context.Context, t target) (webhook.Endpoint, error) {
	return s.Endpoints.Find(ctx, t.Organization, t.endpoint)
}

func (s *Server) turnOn(ctx context.Context, t target) (webhook.Endpoint, error) {
	return s.Endpoints.TurnOn(ctx, t.Actor, t.Organization, t.endpoint, s.Clock())
}

func (s *Server) rotateSecret(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadOptionalBody(w, r)
	if err != nil {
		return err
	}
	zone, err := zoneOf(r)
	b.Add(err)
	var overlap time.Duration
	if hours := b.Int("overlap_hours", 0, int(webhook.MaxOverlap.Hours())); hours != nil {
		overlap = time.Duration(*hours) * time.Hour
	}
	if err := b.Err(); err != nil {
		return err
	}
	t, err := s.target(r)
	if err != nil {
		return err
	}
	e, secret, err := s.Endpoints.Rotate(r.Context(), t.Actor, t.Organization, t.endpoint, "", overlap, s.Clock())
	if err != nil {
		return err
	}
	return s.answer(w, r, http.StatusOK, zone, e, secret, b.Unread())
}

func (s *Server) changeEndpoint(w http.ResponseWriter, r *http.Request) error {
	b, zone, err := readBody(w, r)
	if err != nil {
		return err
	}
	settings := readSettings(b)
	if err := b.Err(); err != nil {
		return err
	}
	t, err := s.target(r)
	if err != nil {
		return err
	}
	e, err := s.Endpoints.Change(r.Context(), t.Actor, t.Organization, t.endpoint, settings, s.Clock())
	if err != nil {
		return err
	}
	return s.answer(w, r, http.StatusOK, zone, e, "", b.Unread())
}

func (s *Server) removeEndpoint(w http.ResponseWriter, r *http.Request) error {
	t, err := s.target(r)
	if err != nil {
		return err
	}
	if err := s.Endpoints.Remove(r.Context(), t.Actor, t.Organization, t.endpoint, s.Clock()); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string      `json:"status"`
		ID     id.Endpoint `json:"id"`
	}{"ok", t.endpoint})
}

// sentBody names a delivery that is on its way.
type sentBody struct {
	Status   string      `json:"status"`
	Delivery id.Delivery `json:"delivery_id"`
}

func (s *Server) sendTest(w http.ResponseWriter, r *http.Request) error {
	t, err := s.target(r)
	if err != nil {
		return err
	}
	delivery, err := s.Endpoints.SendTest(r.Context(), t.Actor, t.Organization, t.endpoint, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusAccepted, sentBody{"ok", delivery})
}
