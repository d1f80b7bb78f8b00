package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
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
	CreatedAt           *clock.Timestamp `json:"created_at"`
}

func endpointOf(e webhook.Endpoint) endpointBody {
	events := e.Events
	if len(events) == 0 {
		events = webhook.Types()
	}
	return endpointBody{e.ID, e.URL, events, e.TimeZone, e.SwitchedOn, stampOf(e.SwitchedOffAt), e.SwitchedOffReason, e.SecretVersion,
		e.ConsecutiveFailures, stampOf(e.LastSuccessAt), stampOf(e.LastFailureAt), clock.Stamp(e.CreatedAt, time.UTC)}
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
	Secret string `json:"signing_secret,omitempty"` // on creation alone
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
	e, secret, err := s.Webhooks.Add(r.Context(), o.ID, settings, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusCreated, oneEndpointBody{"ok", endpointOf(e), secret})
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
	body := endpointsBody{Status: "ok", Count: len(list), Endpoints: []endpointBody{}}
	for _, e := range list {
		body.Endpoints = append(body.Endpoints, endpointOf(e))
	}
	return edge.JSON(w, http.StatusOK, body)
}

func (s *Server) showEndpoint(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.Endpoint](r, "id")
	if err != nil {
		return err
	}
	e, err := s.Webhooks.Find(r.Context(), o.ID, which)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, oneEndpointBody{Status: "ok", endpointBody: endpointOf(e)})
}

func (s *Server) changeEndpoint(w http.ResponseWriter, r *http.Request) error {
	settings, err := readSettings(w, r)
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.Endpoint](r, "id")
	if err != nil {
		return err
	}
	e, err := s.Webhooks.Change(r.Context(), o.ID, which, settings, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, oneEndpointBody{Status: "ok", endpointBody: endpointOf(e)})
}

func (s *Server) removeEndpoint(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.Endpoint](r, "id")
	if err != nil {
		return err
	}
	if err := s.Webhooks.Remove(r.Context(), o.ID, which, s.Clock()); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string      `json:"status"`
		ID     id.Endpoint `json:"id"`
	}{"ok", which})
}
