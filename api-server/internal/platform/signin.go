package platform

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// policyBody is how an organization's staff must sign in.
type policyBody struct {
	Status       string    `json:"status"`
	Roles        []string  `json:"factor_roles"`
	GraceDays    int       `json:"grace_days"`
	ProviderOnly bool      `json:"provider_only"`
	BreakGlass   []id.User `json:"break_glass"`
}

func (s *Server) readPolicies(r *http.Request, o id.Organization) (f factor.Policy, p provider.Policy, err error) {
	if f, err = factor.PolicyOf(r.Context(), s.DB, o); err != nil {
		return f, p, err
	}
	p, err = provider.PolicyOf(r.Context(), s.DB, o)
	return f, p, err
}

func (s *Server) showSignInPolicy(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	return s.answerPolicy(w, r, o.ID)
}

func (s *Server) answerPolicy(w http.ResponseWriter, r *http.Request, o id.Organization) error {
	f, p, err := s.readPolicies(r, o)
	if err != nil {
		return err
	}
	body := policyBody{Status: "ok", Roles: []string{}, GraceDays: f.GraceDays, ProviderOnly: p.Only, BreakGlass: []id.User{}}
	body.Roles, body.BreakGlass = append(body.Roles, f.Roles...), append(body.BreakGlass, p.BreakGlass...)
	return edge.JSON(w, http.StatusOK, body)
}

// changeSignInPolicy leaves what is not sent as it is.
func (s *Server) changeSignInPolicy(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	roles, days := b.List("factor_roles"), b.Int("grace_days", 0, factor.MaxGrace)
	only, pass := b.Bool("provider_only"), b.IDs("break_glass")
	if err := b.Err(); err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	f, p, err := s.readPolicies(r, o.ID)
	if err != nil {
		return err
	}
	var sent staff.Policy
	if roles != nil || days != nil {
		if roles != nil {
			f.Roles = roles
		}
		set(&f.GraceDays, days)
		sent.Factor = &f
	}
	if only != nil || pass != nil {
		if pass != nil {
			p.BreakGlass = nil
		}
		for _, user := range pass {
			p.BreakGlass = append(p.BreakGlass, id.User(user))
		}
		set(&p.Only, only)
		sent.Provider = &p
	}
	if err := s.Staff.SetPolicy(r.Context(), audit.Platform, o.ID, sent); err != nil {
		return err
	}
	return s.answerPolicy(w, r, o.ID)
}
