package console

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student/directory"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

type overviewPage struct {
	frame
	Figures     []figure
	WorkingKeys int
	Endpoints   []endpointLine
	Chart       *hoursChart // nil without a URL
	Entries     []audit.Entry
	Waiting     []roster.Run // for a decision
	Running     []runningRun
}

// figure is a number of students, and the way to them.
type figure struct {
	Which directory.Which
	Text  string
	N     int
	Tone  string // a class: warn, bad or ""
}

// endpointLine is a URL with its attempts of the last 24 hours.
type endpointLine struct {
	webhook.Endpoint
	Delivered, Failed int
	Waiting           int
}

// Rate is the share of attempts that were delivered, "" without any. It is 100 % only when all were.
func (l endpointLine) Rate() string {
	all := l.Delivered + l.Failed
	if all == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(l.Delivered*1000/all)/10, 'f', -1, 64) + " %"
}

// recentEntries is how many entries the overview shows.
const recentEntries = 5

func (s *Server) showOverview(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frameFor(staff, r, "overview", "Overview")
	if err != nil {
		return err
	}
	p := overviewPage{frame: f}
	if err := s.readFigures(r.Context(), &p); err != nil {
		return err
	}
	if !f.Manages {
		return show(w, http.StatusOK, "overview.html", p)
	}
	for _, read := range []func(context.Context, *overviewPage) error{s.readKeys, s.readRuns, s.readEndpoints} {
		if err := read(r.Context(), &p); err != nil {
			return err
		}
	}
	if p.Entries, err = audit.List(r.Context(), s.DB, f.Here.Organization, 0); err != nil {
		return err
	}
	p.Entries = p.Entries[:min(len(p.Entries), recentEntries)]
	return show(w, http.StatusOK, "overview.html", p)
}

func (s *Server) readFigures(ctx context.Context, p *overviewPage) error {
	n, err := s.figures.of(p.Here.Organization, s.Clock(), func(now time.Time) (directory.Figures, error) {
		var n directory.Figures
		err := s.Reads.Do(ctx, func(db *pg.DB) (err error) {
			n, err = directory.Count(ctx, db, p.Here.Organization, clock.DateIn(now, s.Zone), now)
			return err
		})
		return n, err
	})
	if err != nil {
		return err
	}
	p.Figures = []figure{
		{directory.WithAccess, "students with access", n.WithAccess, ""},
		{directory.Expiring, "end within 7 days", n.Expiring, tone("warn", n.Expiring)},
		{directory.AtRisk, "at risk of missing their target", n.AtRisk, tone("bad", n.AtRisk)},
		{directory.Joined, "joined in the last 7 days", n.Joined, ""},
	}
	return nil
}

// tone is the class of a number that is no reason to worry when it is 0.
func tone(class string, n int) string {
	if n == 0 {
		return ""
	}
	return class
}

func (s *Server) readKeys(ctx context.Context, p *overviewPage) error {
	keys, err := org.Keys(ctx, s.DB, p.Here.Organization)
	p.WorkingKeys = workingKeys(keys, s.Clock())
	return err
}

func (s *Server) readRuns(ctx context.Context, p *overviewPage) error {
	runs, err := roster.List(ctx, s.DB, p.Here.Organization, 0, pageOfRuns)
	if err != nil {
		return err
	}
	p.Running = running(runs)
	p.Waiting, err = roster.HeldRuns(ctx, s.DB, p.Here.Organization, pageOfRuns)
	return err
}

func (s *Server) readEndpoints(ctx context.Context, p *overviewPage) error {
	endpoints, err := s.Webhooks.List(ctx, p.Here.Organization)
	if err != nil || len(endpoints) == 0 {
		return err
	}
	ids := make([]id.Endpoint, len(endpoints))
	for i, e := range endpoints {
		ids[i] = e.ID
	}
	backlogs, err := s.Webhooks.Backlogs(ctx, ids...)
	if err != nil {
		return err
	}
	now := s.Clock()
	hours, err := journal.Hours(ctx, s.DB, p.Here.Organization, lastDay.first(now))
	if err != nil {
		return err
	}
	p.Chart = newHoursChart(lastDay, now, hours)
	for _, e := range endpoints {
		l := endpointLine{Endpoint: e, Waiting: backlogs[e.ID]}
		for _, h := range hours {
			if h.Endpoint == e.ID {
				l.Delivered, l.Failed = l.Delivered+h.Delivered, l.Failed+h.Failed
			}
		}
		p.Endpoints = append(p.Endpoints, l)
	}
	return nil
}
