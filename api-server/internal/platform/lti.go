package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

type consumerBody struct {
	Status       string           `json:"status"`
	ConsumerKey  string           `json:"consumer_key"`
	SharedSecret string           `json:"shared_secret,omitempty"` // of POST alone
	CreatedAt    *clock.Timestamp `json:"created_at"`
	RotatedAt    *clock.Timestamp `json:"rotated_at"`
}

func consumerOf(c lti.Consumer, secret string) consumerBody {
	return consumerBody{"ok", c.Key, secret, clock.Stamp(c.CreatedAt, time.UTC), clock.Stamp(c.RotatedAt, time.UTC)}
}

// renewConsumer makes the LTI consumer, or replaces its secret.
func (s *Server) renewConsumer(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	c, secret, created, err := s.LTI.Renew(r.Context(), audit.Platform, o.ID, s.Clock())
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, consumerOf(c, secret))
}

func (s *Server) showConsumer(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	c, err := s.LTI.Find(r.Context(), o.ID)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, consumerOf(c, ""))
}

func (s *Server) removeConsumer(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	if err := s.LTI.Remove(r.Context(), audit.Platform, o.ID, s.Clock()); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"ok"})
}
