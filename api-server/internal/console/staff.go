package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	people "github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// owners decide who is on the staff, and how the staff sign in.
var owners = []org.Role{org.RoleOwner}

type staffPage struct {
	frame
	Form   people.Command
	Owns   bool // whether the person may change something here
	Staff  []staffLine
	Policy factor.Policy
}

type staffLine struct {
	User      id.User
	Name      string
	Email     student.Email
	Role      org.Role
	Active    bool
	Factor    bool // has a second one
	LastLogin time.Time
	Self      bool
	Managed   bool // by a Kubernetes resource
}

// Roles are to tick.
func (staffPage) Roles() []org.Role { return org.StaffRoles() }

// Demanded says whether the policy demands a second factor of the role.
func (p staffPage) Demanded(r org.Role) bool { return p.Policy.Demands(string(r)) }

func (s *Server) showStaff(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "staff", "Staff")
	if err != nil {
		return err
	}
	return s.listStaff(w, r, http.StatusOK, staffPage{frame: f})
}

func (s *Server) listStaff(w http.ResponseWriter, r *http.Request, status int, p staffPage) (err error) {
	f := p.frame
	if p.Form.Role == "" {
		p.Form.Role = org.RoleTeacher // whoever does not choose gives the least
	}
	p.Owns = slices.Contains(owners, f.Here.Role)
	if p.Policy, err = factor.PolicyOf(r.Context(), s.DB, f.Here.Organization); err != nil {
		return err
	}
	if len(p.Policy.Roles) == 0 && p.Policy.GraceDays == 0 {
		p.Policy.GraceDays = usualGrace
	}
	members, err := org.Staff(r.Context(), s.DB, f.Here.Organization)
	if err != nil {
		return err
	}
	users := make([]id.User, 0, len(members))
	for user := range members {
		users = append(users, user)
	}
	accounts, err := student.FindAll(r.Context(), s.DB, f.Here.Organization, users)
	if err != nil {
		return err
	}
	have, err := factor.Have(r.Context(), s.DB, users)
	if err != nil {
		return err
	}
	for user, m := range members {
		a := accounts[user].SeenBy(f.Here.Organization)
		p.Staff = append(p.Staff, staffLine{User: user, Name: a.FirstName + " " + a.LastName, Email: a.Email, Role: m.Role, Active: m.Status == org.MemberActive,
			Factor: have[user], LastLogin: a.LastLogin, Self: user == f.Person.ID, Managed: m.Managed})
	}
	slices.SortFunc(p.Staff, byRole)
	return show(w, status, "staff.html", p)
}

// usualGrace are the days of grace that the form of a new policy offers.
const usualGrace = 14

// byRole has active staff first, and those with the most rights.
func byRole(a, b staffLine) int {
	rank := func(l staffLine) string {
		at := slices.Index(org.StaffRoles(), l.Role)
		return fmt.Sprintf("%t %d %s", !l.Active, at, l.Email)
	}
	if rank(a) < rank(b) {
		return -1
	}
	return 1
}

// owner is frameFor for what only owners may do to the staff.
func (s *Server) owner(r *http.Request) (frame, error) {
	return s.frameFor(owners, r, "staff", "Staff")
}

func (s *Server) setPolicy(w http.ResponseWriter, r *http.Request) error {
	f, err := s.owner(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	days, err := strconv.Atoi(r.PostFormValue("grace_days"))
	if err != nil {
		days = -1 // which is refused
	}
	err = s.Staff.SetPolicy(r.Context(), f.Person.Actor(), f.Here.Organization, people.Policy{Factor: &factor.Policy{Roles: r.PostForm["roles"], GraceDays: days}})
	if fault.KindOf(err) == fault.Invalid {
		f.Fault = err.Error()
		return s.listStaff(w, r, http.StatusBadRequest, staffPage{frame: f})
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, "/staff/", "How the staff sign in is changed.")
}

func (s *Server) resetFactors(w http.ResponseWriter, r *http.Request) error {
	return s.ofPerson(w, r, func(f frame, user id.User) (string, error) {
		removed, err := s.Accounts.ResetFactors(r.Context(), f.Person.Actor(), f.Here.Organization, user)
		return fmt.Sprintf("%d second factors are removed. The person signs in with the password and sets up new ones.", len(removed)), err
	})
}

func (s *Server) inviteStaff(w http.ResponseWriter, r *http.Request) error {
	f, err := s.owner(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	form := people.Command{Email: r.PostFormValue("email"), FirstName: strings.TrimSpace(r.PostFormValue("first_name")),
		LastName: strings.TrimSpace(r.PostFormValue("last_name")), Role: org.Role(r.PostFormValue("role"))}
	p, err := s.Staff.Invite(r.Context(), f.Person.Actor(), f.organization(), form)
	if k := fault.KindOf(err); k == fault.Invalid || k == fault.Conflict {
		f.Fault = err.Error()
		return s.listStaff(w, r, http.StatusBadRequest, staffPage{frame: f, Form: form})
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, "/staff/", "A mail is on its way to "+string(p.Email)+".")
}

func (s *Server) setRole(w http.ResponseWriter, r *http.Request) error {
	return s.ofPerson(w, r, func(f frame, user id.User) (string, error) {
		role := org.Role(r.PostFormValue("role"))
		return "The role is " + string(role) + " now.", s.Staff.SetRole(r.Context(), f.Person.Actor(), f.Here.Organization, user, role)
	})
}

func (s *Server) deactivateStaff(w http.ResponseWriter, r *http.Request) error {
	return s.ofPerson(w, r, func(f frame, user id.User) (string, error) {
		return "The person is not on the staff any more.", s.Staff.Deactivate(r.Context(), f.Person.Actor(), f.Here.Organization, user)
	})
}

func (s *Server) transferOwnership(w http.ResponseWriter, r *http.Request) error {
	return s.ofPerson(w, r, func(f frame, user id.User) (string, error) {
		return "The organization is handed over. You are an admin now.", s.Staff.Transfer(r.Context(), f.Person.Actor(), f.Here.Organization, f.Person.ID, user)
	})
}

// ofPerson lets an owner do something with the person that the path names.
func (s *Server) ofPerson(w http.ResponseWriter, r *http.Request, do func(frame, id.User) (string, error)) error {
	f, err := s.owner(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	user, err := edge.IDParam[id.User](r, "id")
	if err != nil {
		return err
	}
	note, err := do(f, user)
	switch fault.KindOf(err) {
	case fault.Conflict, fault.Forbidden, fault.Invalid:
		f.Fault = err.Error()
		return s.listStaff(w, r, http.StatusConflict, staffPage{frame: f})
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, "/staff/", note)
}

// byOwners is confirmed for what only owners may do.
func (s *Server) byOwners(h edge.Handler) edge.Handler { return s.confirmedBy(owners, "/staff/", h) }

func (s *Server) confirmedBy(roles []org.Role, back string, h edge.Handler) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		here, err := signin.SignedIn(r.Context()).Of(edge.Param(r, "slug"), roles...)
		if err != nil {
			return err
		}
		return s.Confirm(w, r, "/console/"+here.Slug+back, h)
	}
}
