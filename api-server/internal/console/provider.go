package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/domain/student"
	people "github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// providerPage is where an organization's people sign in.
type providerPage struct {
	frame
	Settings  provider.Settings
	Roles     string // as typed: a line for each value of the claim
	AnswerURL string
	Domains   []provider.Domain
	Policy    provider.Policy
	Owners    []student.Account
	Tested    string // what a test found to be right
}

// BreakGlass says whether the owner keeps another way in.
func (p providerPage) BreakGlass(user id.User) bool {
	return slices.Contains(p.Policy.BreakGlass, user)
}

func (s *Server) showProvider(w http.ResponseWriter, r *http.Request) error {
	f, err := s.providerFrame(r)
	if err != nil {
		return err
	}
	return s.listProvider(w, r, http.StatusOK, providerPage{frame: f})
}

func (s *Server) providerFrame(r *http.Request) (frame, error) {
	return s.frameFor(owners, r, "staff", "Your own sign-in")
}

func (s *Server) listProvider(w http.ResponseWriter, r *http.Request, status int, p providerPage) (err error) {
	o := p.Here.Organization
	if !p.Settings.Set() {
		if p.Settings, err = s.Providers.Find(r.Context(), o); err != nil {
			return err
		}
		p.Roles = rolesText(p.Settings.Roles)
	}
	p.Settings.Secret = "" // it is never shown
	p.AnswerURL = s.OIDC.AnswerURL(p.Here.Slug)
	if p.Domains, err = provider.Domains(r.Context(), s.DB, o); err != nil {
		return err
	}
	if p.Policy, err = provider.PolicyOf(r.Context(), s.DB, o); err != nil {
		return err
	}
	users, err := s.owners(r, o)
	if err != nil {
		return err
	}
	accounts, err := student.FindAll(r.Context(), s.DB, o, users)
	if err != nil {
		return err
	}
	for _, user := range users {
		p.Owners = append(p.Owners, accounts[user])
	}
	return show(w, status, "provider.html", p)
}

// owners are the organization's active ones.
func (s *Server) owners(r *http.Request, o id.Organization) (all []id.User, err error) {
	members, err := org.Staff(r.Context(), s.DB, o)
	for user, m := range members {
		if m.Role == org.RoleOwner && m.Status == org.MemberActive {
			all = append(all, user)
		}
	}
	slices.Sort(all)
	return all, err
}

func rolesText(roles map[string]string) string {
	var lines []string
	for value, role := range roles {
		lines = append(lines, value+" = "+role)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// readRoles reads a line for each value: "registrar-admins = admin". Invalid on roles.
func readRoles(text string) (map[string]string, error) {
	roles := map[string]string{}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		i := strings.LastIndex(line, "=")
		if i < 1 {
			return nil, fault.Field("roles", "invalid", "Write each role as: value = role")
		}
		value, role := strings.TrimSpace(line[:i]), org.Role(strings.TrimSpace(line[i+1:]))
		if !slices.Contains(org.StaffRoles(), role) {
			return nil, fault.Field("roles", "invalid", "%q is no role; choose owner, admin, examiner or teacher.", role)
		}
		roles[value] = string(role)
	}
	return roles, nil
}

func (s *Server) setProvider(w http.ResponseWriter, r *http.Request) error {
	f, err := s.providerFrame(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	text := func(field string) string { return strings.TrimSpace(r.PostFormValue(field)) }
	p := providerPage{frame: f, Roles: r.PostFormValue("roles"), Settings: provider.Settings{Issuer: text("issuer"), ClientID: text("client_id"),
		Secret: text("client_secret"), CA: text("ca"), Students: r.PostFormValue("students") != "", RoleClaim: text("role_claim")}}
	p.Settings.Roles, err = readRoles(p.Roles)
	if err == nil {
		_, err = s.Webhooks.Policy.CheckURL("issuer", p.Settings.Issuer)
	}
	if err == nil {
		err = s.Providers.Put(r.Context(), f.Person.Actor(), f.Here.Organization, p.Settings, s.Clock())
	}
	if fault.KindOf(err) == fault.Invalid {
		p.Fault = err.Error()
		return s.listProvider(w, r, http.StatusBadRequest, p)
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, "/staff/provider/", "The settings are saved. Test them.")
}

func (s *Server) testProvider(w http.ResponseWriter, r *http.Request) error {
	f, err := s.providerFrame(r)
	if err != nil {
		return err
	}
	p := providerPage{frame: f}
	settings, err := s.Providers.Find(r.Context(), f.Here.Organization)
	if err == nil && !settings.Set() {
		err = fault.New(fault.Conflict, "no_provider", "There is no provider to test: save its settings first.")
	}
	if err == nil {
		err = s.OIDC.Test(r.Context(), settings)
	}
	switch k := fault.KindOf(err); {
	case err == nil:
		p.Tested = "The provider answers as it should. What only a sign-in shows is whether the client id, the secret and the redirect URI are right: try it."
		return s.listProvider(w, r, http.StatusOK, p)
	case k == fault.Conflict, k == fault.Invalid:
		p.Fault = err.Error()
		return s.listProvider(w, r, http.StatusConflict, p)
	}
	return err
}

func (s *Server) removeProvider(w http.ResponseWriter, r *http.Request) error {
	return s.withProvider(w, r, "The provider is removed.", func(f frame) error {
		return s.Providers.Remove(r.Context(), f.Person.Actor(), f.Here.Organization, s.Clock())
	})
}

func (s *Server) addDomain(w http.ResponseWriter, r *http.Request) error {
	return s.withProvider(w, r, "Add the record below to the DNS, and then press Prove.", func(f frame) error {
		_, err := provider.AddDomain(r.Context(), s.DB, f.Person.Actor(), f.Here.Organization, r.PostFormValue("domain"), s.Clock())
		return err
	})
}

func (s *Server) proveDomain(w http.ResponseWriter, r *http.Request) error {
	return s.withProvider(w, r, "The domain is proven.", func(f frame) error {
		return provider.ProveByDNS(r.Context(), s.DB, s.DNS, f.Person.Actor(), f.Here.Organization, r.PostFormValue("domain"), s.Clock())
	})
}

func (s *Server) removeDomain(w http.ResponseWriter, r *http.Request) error {
	return s.withProvider(w, r, "The domain is removed.", func(f frame) error {
		return provider.RemoveDomain(r.Context(), s.DB, f.Person.Actor(), f.Here.Organization, r.PostFormValue("domain"), s.Clock())
	})
}

func (s *Server) setProviderPolicy(w http.ResponseWriter, r *http.Request) error {
	return s.withProvider(w, r, "How the staff sign in is changed.", func(f frame) error {
		p := provider.Policy{Only: r.PostFormValue("only") != ""}
		for _, text := range r.PostForm["break_glass"] {
			user, _ := strconv.ParseInt(text, 10, 64) // 0 is no owner
			p.BreakGlass = append(p.BreakGlass, id.User(user))
		}
		return s.Staff.SetPolicy(r.Context(), f.Person.Actor(), f.Here.Organization, people.Policy{Provider: &p})
	})
}

// withProvider lets an owner do something about the provider, and says so, or why it was not done.
func (s *Server) withProvider(w http.ResponseWriter, r *http.Request, done string, do func(frame) error) error {
	f, err := s.providerFrame(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err = do(f)
	switch fault.KindOf(err) {
	case fault.Conflict, fault.Invalid, fault.NotFound:
		f.Fault = err.Error()
		return s.listProvider(w, r, http.StatusConflict, providerPage{frame: f})
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, "/staff/provider/", done)
}
