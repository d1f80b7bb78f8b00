package pages

import (
	"errors"
	"net/http"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/oidc"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// askedName is what a session keeps a question to a provider under.
const askedName = "provider"

// institutePage leads to an institute's own sign-in.
type institutePage struct {
	Email, Slug, Name string
	Asked             bool
}

// showInstitute finds whose provider vouches for an address. It depends on the address's domain alone.
func (s *Server) showInstitute(w http.ResponseWriter, r *http.Request) error {
	page := institutePage{Email: strings.TrimSpace(r.URL.Query().Get("email"))}
	if page.Email == "" {
		return show(w, r, http.StatusOK, "institute.html", page)
	}
	if !s.mayTake(w, r, triesOfAddress, s.Proxies.Client(r)) {
		return show(w, r, http.StatusTooManyRequests, "sign-in.html", signInPage{Fault: textsOf(r).T(textTooOften), Passkeys: s.Accounts.Factors.Passkeys()})
	}
	page.Asked = true
	if address, err := student.ParseEmail(page.Email); err == nil {
		if _, page.Slug, page.Name, err = provider.Of(r.Context(), s.DB, string(address)); err != nil {
			return err
		}
	}
	return show(w, r, http.StatusOK, "institute.html", page)
}

// awayPage is what somebody sees whose institute's provider does not sign them in.
type awayPage struct {
	Title, Name, Text, Slug string
	English                 bool // the Text is: it is for whoever looks after the provider
}

// beginWith leads to the provider of the organization that the path names.
func (s *Server) beginWith(w http.ResponseWriter, r *http.Request) error {
	if !s.mayTake(w, r, triesOfAddress, s.Proxies.Client(r)) {
		return show(w, r, http.StatusTooManyRequests, "sign-in.html", signInPage{Fault: textsOf(r).T(textTooOften), Passkeys: s.Accounts.Factors.Passkeys()})
	}
	o, err := org.Find(r.Context(), s.DB, edge.Param(r, "slug"))
	if err != nil {
		return err
	}
	settings, err := s.Providers.Find(r.Context(), o.ID)
	if err != nil {
		return err
	}
	if !settings.Set() {
		return fault.New(fault.NotFound, "not_found", "there is no such page")
	}
	query := r.URL.Query()
	address, keep, err := s.OIDC.Begin(r.Context(), settings, oidc.Question{Organization: o.ID, Slug: o.Slug, Next: signin.Next(query.Get("next"), ""),
		Fresh: query.Get("again") != "", Hint: query.Get("email")})
	if fault.Has(err, oidc.Away) || fault.KindOf(err) == fault.Invalid {
		return show(w, r, http.StatusServiceUnavailable, "provider-away.html", awayPage{textsOf(r).T("provider.away"), o.Name, err.Error(), o.Slug, true})
	}
	if err != nil {
		return err
	}
	s.Sessions.Keep(r.Context(), askedName, keep)
	http.Redirect(w, r, address, http.StatusSeeOther)
	return nil
}

// takeAnswer takes what the provider says of who has signed in there.
func (s *Server) takeAnswer(w http.ResponseWriter, r *http.Request) error {
	keep := s.Sessions.Taken(r.Context(), askedName)
	asked := oidc.Of(keep)
	if asked == 0 {
		return show(w, r, http.StatusUnauthorized, "sign-in.html", signInPage{Fault: textsOf(r).T("sign_in.not_begun"), Passkeys: s.Accounts.Factors.Passkeys()})
	}
	all, err := org.ReadAll(r.Context(), s.DB, asked)
	if err != nil {
		return err
	}
	o := all[asked]
	a, answer, err := s.answered(r, o, keep)
	switch {
	case fault.Has(err, oidc.Away):
		return show(w, r, http.StatusServiceUnavailable, "provider-away.html", awayPage{textsOf(r).T("provider.away"), o.Name, err.Error(), o.Slug, true})
	case fault.Has(err, oidc.Refused):
		s.refused(r, a, "refused sign-in: identity provider")
		return show(w, r, http.StatusUnauthorized, "provider-away.html", awayPage{textsOf(r).T("provider.refused"), o.Name, err.Error(), o.Slug, !errors.Is(err, errNotIn)})
	case err != nil:
		return err
	}
	if answer.Fresh {
		return s.confirmByProvider(w, r, a, answer.Next)
	}
	needs, err := s.awaitSecond(r, a, answer.Next, o.ID)
	if err != nil {
		return err
	}
	if needs {
		http.Redirect(w, r, secondPath, http.StatusSeeOther)
		return nil
	}
	return s.enterByProvider(w, r, a, o.ID, answer.Next, false)
}

// errNotIn is the cause of refusals in the reader's own language.
var errNotIn = errors.New("not let in")

func notIn(text string) error {
	return fault.New(fault.Unauthenticated, oidc.Refused, "%s", text).Because(errNotIn)
}

// answered is the account that the provider's answer means: that of a verified address of a domain that the
// organization has proven, who belongs to the organization. Nobody is made a member of anything.
func (s *Server) answered(r *http.Request, o org.Organization, keep string) (a student.Account, answer oidc.Answer, err error) {
	ctx, t := r.Context(), textsOf(r)
	settings, err := s.Providers.Find(ctx, o.ID)
	if err != nil {
		return a, answer, err
	}
	if answer, err = s.OIDC.Finish(ctx, settings, keep, edge.Param(r, "slug"), r.URL.Query()); err != nil {
		return a, answer, err
	}
	address, err := student.ParseEmail(answer.Email)
	if err != nil {
		return a, answer, notIn(t.T("provider.unverified"))
	}
	domains, err := provider.Domains(ctx, s.DB, o.ID)
	if err != nil {
		return a, answer, err
	}
	if !provider.Vouches(domains, string(address)) {
		return a, answer, notIn(t.T("provider.domain", "Email", address, "Name", o.Name))
	}
	var b pg.Batch
	student.Load(&b, 0, address, &a)
	if err := b.Send(ctx, s.DB); err != nil {
		return a, answer, err
	}
	var m org.Member
	if a.ID != 0 {
		var b pg.Batch
		org.LoadMember(&b, o.ID, a.ID, &m)
		if err := b.Send(ctx, s.DB); err != nil {
			return a, answer, err
		}
	}
	if m.Status != org.MemberActive || !m.Role.Staff() && !settings.Students {
		return a, answer, notIn(t.T("provider.nobody", "Name", o.Name, "Email", address))
	}
	return a, answer, s.takeRole(r, o, settings, a.ID, m, answer)
}

// takeRole gives somebody of the staff the role that the provider names, if any.
func (s *Server) takeRole(r *http.Request, o org.Organization, settings provider.Settings, user id.User, m org.Member, answer oidc.Answer) error {
	if settings.RoleClaim == "" || !m.Role.Staff() {
		return nil
	}
	var ranked []string
	for _, role := range org.StaffRoles() {
		ranked = append(ranked, string(role))
	}
	role := org.Role(settings.RoleOf(answer.Roles, ranked))
	if role == "" || role == m.Role {
		return nil
	}
	return s.Staff.SetRoleByProvider(r.Context(), o.ID, user, role)
}

func (s *Server) enterByProvider(w http.ResponseWriter, r *http.Request, a student.Account, o id.Organization, next string, withFactor bool) error {
	a, err := student.NoteSignIn(r.Context(), s.DB, a.ID, s.Clock())
	if err != nil {
		return err
	}
	if err := s.noteDevice(r, a); err != nil {
		return err
	}
	if err := s.Sessions.BeginByProvider(r.Context(), a, o, withFactor); err != nil {
		return err
	}
	if err := s.Devices.Remember(w, r, a); err != nil {
		return err
	}
	return s.lead(w, r, a, next, false)
}

// confirmByProvider is for who confirms by the provider who they are: nobody else, and not without the factor of who has
// one.
func (s *Server) confirmByProvider(w http.ResponseWriter, r *http.Request, a student.Account, next string) error {
	p, err := s.Sessions.Person(r.Context())
	if err != nil {
		return err
	}
	all, err := factor.Of(r.Context(), s.DB, a.ID)
	if err != nil {
		return err
	}
	if p == nil || p.ID != a.ID || len(all) > 0 {
		return notIn(textsOf(r).T("provider.somebody"))
	}
	s.Sessions.NotePassword(r.Context())
	return s.lead(w, r, a, next, false)
}
