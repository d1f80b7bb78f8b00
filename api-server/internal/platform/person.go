package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/flow/person"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// exportTime is how long an export may take, and its client to read it.
const exportTime = 10 * time.Minute

// exportUser gives everything that is stored about a person as JSON lines.
func (s *Server) exportUser(w http.ResponseWriter, r *http.Request) error {
	user, err := edge.IDParam[id.User](r, "user_id")
	if err != nil {
		return err
	}
	ctx := r.Context()
	edge.Extend(ctx, exportTime)
	out := edge.NewLines(w, exportTime)
	if err := person.Export(ctx, s.DB, audit.Platform, user, s.Clock(), out.Line); err != nil {
		return out.Fail(err)
	}
	return out.Fail(out.Close())
}

// erasureBody is how far the erasure of a person is.
type erasureBody struct {
	Status     string           `json:"status"`
	User       id.User          `json:"user_id"`
	State      person.State     `json:"state"`
	ErasedAt   *clock.Timestamp `json:"erased_at"`
	FinishedAt *clock.Timestamp `json:"finished_at"`
}

func (s *Server) eraseUser(w http.ResponseWriter, r *http.Request) error {
	user, err := edge.IDParam[id.User](r, "user_id")
	if err != nil {
		return err
	}
	e, err := s.People.Erase(r.Context(), audit.Platform, user)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if e.State() == person.Erasing {
		status = http.StatusAccepted
	}
	return edge.JSON(w, status, erasureBody{"ok", e.User, e.State(), clock.Stamp(e.At, time.UTC), clock.Stamp(e.Finished, time.UTC)})
}
