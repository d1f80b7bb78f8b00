package pages

import (
	"net/http"
	"net/url"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Dynamic Registration of LTI 1.3: whoever runs an LMS opens there the link that an owner or admin has made, and the LMS adds where its
// configuration is. Opening it changes nothing; the button registers both with one another.

type registering struct {
	Brand                        brand
	Action, Host, Address, Token string
}

// showRegistering says who is to be registered with whom.
func (s *Server) showRegistering(w http.ResponseWriter, r *http.Request) error {
	p, _, err := s.readRegistering(w, r, r.URL.Query())
	if err != nil || p == nil {
		return err
	}
	return show(w, r, http.StatusOK, "register.html", p)
}

// readRegistering checks the link; nil where that is answered.
func (s *Server) readRegistering(w http.ResponseWriter, r *http.Request, q url.Values) (*registering, org.Organization, error) {
	if !s.mayTake(w, r, loginsOfAddress, s.Proxies.Client(r)) {
		return nil, org.Organization{}, showTooManyLaunches(w, r)
	}
	o, err := org.Find(r.Context(), s.DB, edge.Param(r, "slug"))
	if err == nil {
		_, err = s.LMS.Invited(r.Context(), o.ID, edge.Param(r, "token"), s.Clock())
	}
	address := q.Get("openid_configuration")
	if err == nil && address == "" {
		err = fault.Field("openid_configuration", "registration_refused", "openid_configuration: required; this link belongs into an LMS, as that of a tool which registers itself (dynamic registration)")
	}
	if err == nil {
		_, err = s.LMS.Policy.CheckURL("openid_configuration", address)
	}
	if err != nil {
		return nil, o, showLaunchFault(w, r, err)
	}
	b, err := s.brandOf(r.Context(), o.ID)
	at, _ := url.Parse(address) // it was checked
	return &registering{b, r.URL.EscapedPath(), at.Host, address, q.Get("registration_token")}, o, err
}

// register registers the LMS here, and us there. It waits for somebody who confirms it in the console.
func (s *Server) register(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxLaunch)
	if err := r.ParseForm(); err != nil {
		return showLaunchFault(w, r, fault.New(fault.Invalid, "not_a_launch", "the form could not be read"))
	}
	p, o, err := s.readRegistering(w, r, r.PostForm)
	if err != nil || p == nil {
		return err
	}
	ctx, token := r.Context(), edge.Param(r, "token")
	by, err := s.LMS.Invited(ctx, o.ID, token, s.Clock())
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	at, err := s.Registrar.Configuration(ctx, p.Address)
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	if err := s.LMS.TakeInvitation(ctx, o.ID, token, s.Clock()); err != nil {
		return showLaunchFault(w, r, err)
	}
	made, err := s.Registrar.Register(ctx, at, p.Token, o.Name, lms.NewTool(s.PublicURL, o.Slug))
	if err == nil {
		_, err = s.LMS.Add(ctx, by, o.ID, made, s.Clock())
	}
	if err != nil {
		return showLaunchFault(w, r, err)
	}
	return show(w, r, http.StatusOK, "registered.html", p)
}
