package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

type sandboxBody struct {
	Status       string           `json:"status,omitempty"`
	Organization string           `json:"organization"`
	CreatedAt    *clock.Timestamp `json:"created_at"`
	FilledAt     *clock.Timestamp `json:"filled_at"`
}

func sandboxOf(status, slug string, s sandbox.Sandbox) sandboxBody {
	return sandboxBody{status, slug, clock.Stamp(s.CreatedAt, time.UTC), clock.Stamp(s.FilledAt, time.UTC)}
}

// sandboxed is the organization that the path names, where the installation has sandboxes.
func (s *Server) sandboxed(r *http.Request) (org.Organization, error) {
	if s.Sandboxes == nil {
		return org.Organization{}, fault.New(fault.NotFound, "no_sandbox", "this installation has no sandboxes; SANDBOX_DATABASE_URL says where they are")
	}
	return s.organization(r)
}

func (s *Server) putSandbox(w http.ResponseWriter, r *http.Request) error {
	o, err := s.sandboxed(r)
	if err != nil {
		return err
	}
	found, created, err := s.Sandboxes.Make(r.Context(), audit.Platform, o.ID)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, sandboxOf("ok", o.Slug, found))
}

func (s *Server) showSandbox(w http.ResponseWriter, r *http.Request) error {
	o, err := s.sandboxed(r)
	if err != nil {
		return err
	}
	found, err := sandbox.Find(r.Context(), s.DB, o.ID)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, sandboxOf("ok", o.Slug, found))
}

func (s *Server) wipeSandbox(w http.ResponseWriter, r *http.Request) error {
	o, err := s.sandboxed(r)
	if err != nil {
		return err
	}
	found, err := s.Sandboxes.Wipe(r.Context(), audit.Platform, o.ID)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, sandboxOf("ok", o.Slug, found))
}

func (s *Server) deleteSandbox(w http.ResponseWriter, r *http.Request) error {
	o, err := s.sandboxed(r)
	if err != nil {
		return err
	}
	if err := s.Sandboxes.Drop(r.Context(), audit.Platform, o.ID); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"ok"})
}

func (s *Server) listSandboxes(w http.ResponseWriter, r *http.Request) error {
	found, err := sandbox.List(r.Context(), s.DB)
	if err != nil {
		return err
	}
	body := struct {
		Status    string        `json:"status"`
		Count     int           `json:"count"`
		Sandboxes []sandboxBody `json:"sandboxes"`
	}{"ok", len(found), []sandboxBody{}}
	for _, l := range found {
		body.Sandboxes = append(body.Sandboxes, sandboxOf("", l.Slug, l.Sandbox))
	}
	return edge.JSON(w, http.StatusOK, body)
}
