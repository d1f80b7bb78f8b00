package console

import (
	"net/http"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
)

type overviewPage struct {
	frame
	Search      string // of the form
	WorkingKeys int
	Endpoints   []webhook.Endpoint
	Entries     []audit.Entry
	Waiting     []roster.Run // for a decision
	Running     []runningRun
}

// recentEntries is how many entries the overview shows.
const recentEntries = 5

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
	p.WorkingKeys = workingKeys(keys, s.Clock())
	runs, err := roster.List(r.Context(), s.DB, f.Here.Organization, 0, pageOfRuns)
	if err != nil {
		return err
	}
	p.Running = running(runs)
	if p.Waiting, err = roster.HeldRuns(r.Context(), s.DB, f.Here.Organization, pageOfRuns); err != nil {
		return err
	}
	if p.Endpoints, err = s.Webhooks.List(r.Context(), f.Here.Organization); err != nil {
		return err
	}
	if p.Entries, err = audit.List(r.Context(), s.DB, f.Here.Organization, 0); err != nil {
		return err
	}
	p.Entries = p.Entries[:min(len(p.Entries), recentEntries)]
	return show(w, http.StatusOK, "overview.html", p)
}
