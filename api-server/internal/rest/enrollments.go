package rest

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// changedBody answers what ends, suspends or resumes access. changed is false where it was so already.
type changedBody struct {
	Status     string          `json:"status"`
	Changed    bool            `json:"changed"`
	Student    wire.Person     `json:"student"`
	Enrollment wire.Enrollment `json:"enrollment"`
}

// endAccess ends access now, or on the end_date of the body.
func (s *Server) endAccess(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadOptionalBody(w, r)
	if err != nil {
		return err
	}
	end := value(b.Date("end_date"))
	if err := b.Err(); err != nil {
		return err
	}
	return s.changeAccess(w, r, func(p org.Principal, which id.Enrollment) (enrollment.Enrollment, bool, error) {
		return s.Enrollments.End(r.Context(), p.Actor(), p.Organization, which, end)
	})
}

func (s *Server) suspendAccess(w http.ResponseWriter, r *http.Request) error {
	return s.changeAccess(w, r, func(p org.Principal, which id.Enrollment) (enrollment.Enrollment, bool, error) {
		return s.Enrollments.Suspend(r.Context(), p.Actor(), p.Organization, which)
	})
}

func (s *Server) resumeAccess(w http.ResponseWriter, r *http.Request) error {
	return s.changeAccess(w, r, func(p org.Principal, which id.Enrollment) (enrollment.Enrollment, bool, error) {
		return s.Enrollments.Resume(r.Context(), p.Actor(), p.Organization, which)
	})
}

func (s *Server) changeAccess(w http.ResponseWriter, r *http.Request, change func(org.Principal, id.Enrollment) (enrollment.Enrollment, bool, error)) error {
	which, err := edge.IDParam[id.Enrollment](r, "id")
	if err != nil {
		return err
	}
	e, changed, err := change(principal(r.Context()), which)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, changedBody{"ok", changed, e.Student, e.Enrollment})
}
