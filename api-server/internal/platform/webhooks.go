package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

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
	ConsecutiveFailures int              `json:"consecutive_failures"`
	LastSuccessAt       *clock.Timestamp `json:"last_success_at"`
	LastFailureAt       *clock.Timestamp `json:"last_failure_at"`
	Backlog             int              `json:"backlog"`
	ManagedBy           *string          `json:"managed_by"`
	CreatedAt           *clock.Timestamp `json:"created_at"`
}

// shown puts endpoints into their answer's form, in one query more for all backlogs.
func (s *Server) shown(r *http.Request, list ...webhook.Endpoint) ([]endpointBody, error) {
	ids := make([]id.Endpoint, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	backlogs, err := s.Webhooks.Backlogs(r.Context(), ids...)
	if err != nil {
		return nil, err
	}
	bodies := make([]endpointBody, len(list))
	for i, e := range list {
		bodies[i] = endpointOf(e, backlogs[e.ID])
	}
	return bodies, nil
}

func endpointOf(e webhook.Endpoint, backlog int) endpointBody {
	events := e.Events
	if len(events) == 0 {
		events = webhook.Types()
	}
	var managedBy *string
	if e.ManagedBy != "" {
		managedBy = &e.ManagedBy
	}
	return endpointBody{e.ID, e.URL, events, e.TimeZone, e.SwitchedOn, stampOf(e.SwitchedOffAt), e.SwitchedOffReason, e.SecretVersion,
		e.ConsecutiveFailures, stampOf(e.LastSuccessAt), stampOf(e.LastFailureAt), backlog, managedBy, clock.Stamp(e.CreatedAt, time.UTC)}
}

func stampOf(t *time.Time) *clock.Timestamp {
	if t == nil {
		return nil
	}
	return clock.Stamp(*t, time.UTC)
}

type oneEndpointBody struct {
	Status string `json:"status"`
	endpointBody
	Secret string `json:"signing_secret,omitempty"` // when it was just drawn
}

func (s *Server) createEndpoint(w http.ResponseWriter, r *http.Request) error {
	settings, err := readSettings(w, r, "url")
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	e, secret, err := s.Webhooks.Add(r.Context(), audit.Platform, o.ID, settings, s.Clock())
	if err != nil {
		return err
	}
	return s.answerEndpoint(w, r, http.StatusCreated, e, secret)
}

func (s *Server) answerEndpoint(w http.ResponseWriter, r *http.Request, status int, e webhook.Endpoint, secret string) error {
	bodies, err := s.shown(r, e)
	if err != nil {
		return err
	}
	return edge.JSON(w, status, oneEndpointBody{"ok", bodies[0], secret})
}

// endpoint is the organization and the id that the path names; whether the organization
// has such an endpoint is seen when it is used.
func (s *Server) endpoint(r *http.Request) (id.Organization, id.Endpoint, error) {
	o, err := s.organization(r)
	if err != nil {
		return 0, 0, err
	}
	which, err := edge.IDParam[id.Endpoint](r, "id")
	return o.ID, which, err
}

// readSettings reads the members that are there; an empty list of events means all.
func readSettings(w http.ResponseWriter, r *http.Request, required ...string) (webhook.Settings, error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return webhook.Settings{}, err
	}
	b.Required(required...)
	settings := webhook.Settings{URL: b.Text("url", maxURL), TimeZone: b.Text("time_zone", 100)}
	if names := b.List("events"); names != nil {
		events := make([]webhook.Type, len(names))
		for i, n := range names {
			events[i] = webhook.Type(n)
		}
		settings.Events = &events
	}
	return settings, b.Err()
}

type endpointsBody struct {
	Status    string         `json:"status"`
	Count     int            `json:"count"`
	Endpoints []endpointBody `json:"webhook_endpoints"`
}

func (s *Server) listEndpoints(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	list, err := s.Webhooks.List(r.Context(), o.ID)
	if err != nil {
		return err
	}
	bodies, err := s.shown(r, list...)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, endpointsBody{"ok", len(bodies), bodies})
}

func (s *Server) showEndpoint(w http.ResponseWriter, r *http.Request) error {
	org, which, err := s.endpoint(r)
	if err != nil {
		return err
	}
	e, err := s.Webhooks.Find(r.Context(), org, which)
	if err != nil {
		return err
	}
	return s.answerEndpoint(w, r, http.StatusOK, e, "")
}

func (s *Server) changeEndpoint(w http.ResponseWriter, r *http.Request) error {
	settings, err := readSettings(w, r)
	if err != nil {
		return err
	}
	org, which, err := s.endpoint(r)
	if err != nil {
		return err
	}
	e, err := s.Webhooks.Change(r.Context(), audit.Platform, org, which, settings, s.Clock())
	if err != nil {
		return err
	}
	return s.answerEndpoint(w, r, http.StatusOK, e, "")
}

func (s *Server) removeEndpoint(w http.ResponseWriter, r *http.Request) error {
	org, which, err := s.endpoint(r)
	if err != nil {
		return err
	}
	if err := s.Webhooks.Remove(r.Context(), audit.Platform, org, which, s.Clock()); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string      `json:"status"`
		ID     id.Endpoint `json:"id"`
	}{"ok", which})
}

func (s *Server) rotateSecret(w http.ResponseWriter, r *http.Request) error {
	org, which, err := s.endpoint(r)
	if err != nil {
		return err
	}
	e, secret, err := s.Webhooks.Rotate(r.Context(), audit.Platform, org, which, "", s.Clock())
	if err != nil {
		return err
	}
	return s.answerEndpoint(w, r, http.StatusOK, e, secret)
}

func (s *Server) turnOn(w http.ResponseWriter, r *http.Request) error {
	org, which, err := s.endpoint(r)
	if err != nil {
		return err
	}
	e, err := s.Webhooks.TurnOn(r.Context(), audit.Platform, org, which, s.Clock())
	if err != nil {
		return err
	}
	return s.answerEndpoint(w, r, http.StatusOK, e, "")
}

// sentBody names a delivery that is on its way.
type sentBody struct {
	Status   string      `json:"status"`
	Delivery id.Delivery `json:"delivery_id"`
}

func (s *Server) sendTest(w http.ResponseWriter, r *http.Request) error {
	org, which, err := s.endpoint(r)
	if err != nil {
		return err
	}
	delivery, err := s.Webhooks.SendTest(r.Context(), audit.Platform, org, which, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusAccepted, sentBody{"ok", delivery})
}
