package platform

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
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

// person is the one whose address the path has.
func (s *Server) person(r *http.Request, o id.Organization) (student.Account, error) {
	address, err := student.ParseEmail(edge.Param(r, "email"))
	if err != nil {
		return student.Account{}, err
	}
	return student.Lookup(r.Context(), s.DB, o, address)
}

func (s *Server) inviteStaff(w http.ResponseWriter, r *http.Request) error {
	command, err := readStaff(w, r)
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	person, err := s.Staff.Invite(r.Context(), audit.Platform, o, command)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, memberBody{"ok", person.Person, person.Membership})
}

func (s *Server) deactivateStaff(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	a, err := s.person(r, o.ID)
	if err != nil {
		return err
	}
	if err := s.Staff.Deactivate(r.Context(), audit.Platform, o.ID, a.ID); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string `json:"status"`
	}{"ok"})
}

type staffBody struct {
	Status string      `json:"status"`
	Count  int         `json:"count"`
	Staff  []staffLine `json:"staff"`
}

type staffLine struct {
	wire.Person
	Membership   wire.Membership  `json:"membership"`
	SecondFactor bool             `json:"second_factor"`
	LastLogin    *clock.Timestamp `json:"last_login"`
}

// listStaff lists who is and was on the staff, by user id.
func (s *Server) listStaff(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	members, err := org.Staff(r.Context(), s.DB, o.ID)
	if err != nil {
		return err
	}
	users := slices.Sorted(maps.Keys(members))
	accounts, err := student.FindAll(r.Context(), s.DB, o.ID, users)
	if err != nil {
		return err
	}
	have, err := factor.Have(r.Context(), s.DB, users)
	if err != nil {
		return err
	}
	body := staffBody{Status: "ok", Count: len(users), Staff: []staffLine{}}
	for _, user := range users {
		a, m := accounts[user].SeenBy(o.ID), members[user]
		body.Staff = append(body.Staff, staffLine{wire.Person{UserID: user, Email: a.Email, FirstName: a.FirstName, LastName: a.LastName},
			wire.Membership{Role: m.Role, Status: m.Status}, have[user], clock.Stamp(a.LastLogin, time.UTC)})
	}
	return edge.JSON(w, http.StatusOK, body)
}

type factorsBody struct {
	Status  string `json:"status"`
	Removed int    `json:"removed"`
}

func (s *Server) removeFactors(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	a, err := s.person(r, o.ID)
	if err != nil {
		return err
	}
	removed, err := s.Accounts.ResetFactors(r.Context(), audit.Platform, o.ID, a.ID)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, factorsBody{"ok", len(removed)})
}

func readStaff(w http.ResponseWriter, r *http.Request) (staff.Command, error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return staff.Command{}, err
	}
	roles := make([]string, 0, len(org.StaffRoles()))
	for _, role := range org.StaffRoles() {
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

func (s *Server) proveDomain(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	domain := edge.Param(r, "domain")
	if err := provider.ProveByPlatform(r.Context(), s.DB, o.ID, domain, s.Clock()); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string `json:"status"`
		Domain string `json:"domain"`
	}{"ok", domain})
}
