package platform

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
)

func (s *Server) putStaff(w http.ResponseWriter, r *http.Request) error {
	command, err := readStaff(w, r)
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	person, joined, err := staff.Put(r.Context(), s.DB, audit.Platform, o.ID, command, s.Clock())
	if err != nil {
		return err
	}
	status := http.StatusOK
	if joined {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, memberBody{"ok", person.Person, person.Membership})
}

func readStaff(w http.ResponseWriter, r *http.Request) (staff.Command, error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return staff.Command{}, err
	}
	roles := make([]string, 0, len(staff.Roles()))
	for _, role := range staff.Roles() {
		roles = append(roles, string(role))
	}
	c := staff.Command{Email: edge.Param(r, "email")}
	set(&c.FirstName, b.Text("first_name", 150))
	set(&c.LastName, b.Text("last_name", 150))
	set(&c.Password, b.Secret("password"))
	if role := b.Choice("role", roles...); role != nil {
		c.Role = org.Role(*role)
	}
	return c, b.Err()
}
