package console

import (
	"net/http"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
)

type overviewPage struct {
	frame
	Search      string // of the form
	WorkingKeys int
	Endpoints   []webhook.Endpoint
	Deeds       []org.Deed
}

// recentDeeds is how many deeds the overview shows.
const recentDeeds = 5

func (s *Server) showOverview(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frameFor(staff, r, "overview", "Overview")
	if err != nil {
		return err
	}
	p := overviewPage{frame: f}
	if !f.Manages {
		return show(w, http.StatusOK, "overview.html", p)
	}
	keys, err := org.Keys(r.Context(), s.DB, f.Here.Organization)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.RevokedAt.IsZero() {
			p.WorkingKeys++
		}
	}
	if p.Endpoints, err = s.Webhooks.List(r.Context(), f.Here.Organization); err != nil {
		return err
	}
	if p.Deeds, err = org.Deeds(r.Context(), s.DB, f.Here.Organization, 0); err != nil {
		return err
	}
	p.Deeds = p.Deeds[:min(len(p.Deeds), recentDeeds)]
	return show(w, http.StatusOK, "overview.html", p)
}
