package platform

import (
	"context"
	"encoding/csv"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

type sourceBody struct {
	Status               string          `json:"status"`
	ID                   id.RosterSource `json:"id"`
	Name                 string          `json:"name"`
	AuthoritativeEnabled bool            `json:"authoritative_enabled"`
	Approval             roster.Approval `json:"approval"`
	GuardPercent         *int            `json:"guard_percent"`
	ManagedBy            string          `json:"managed_by"`
}

func (s *Server) putRosterSource(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	set := readSettings(b)
	if err := b.Err(); err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	name, err := roster.ParseSource(edge.Param(r, "source"))
	if err != nil {
		return err
	}
	source, err := roster.PutSource(r.Context(), s.DB, audit.Platform, o.ID, name, set, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, sourceBody{"ok", source.ID, source.Name, source.AuthoritativeEnabled, source.Approval, source.GuardPercent, source.ManagedBy})
}

// readSettings reads what a body changes of a source's settings.
func readSettings(b *edge.Body) func(*roster.Settings) {
	enabled := b.Bool("authoritative_enabled")
	approval := b.Choice("approval", string(roster.ApproveGuarded), string(roster.ApproveAlways))
	percent, usual := b.Int("guard_percent", 0, 100), b.Cleared("guard_percent")
	return func(s *roster.Settings) {
		if enabled != nil {
			s.AuthoritativeEnabled = *enabled
		}
		if approval != nil {
			s.Approval = roster.Approval(*approval)
		}
		if percent != nil || usual {
			s.GuardPercent = percent
		}
	}
}

type runBody struct {
	ID          id.RosterRun     `json:"id"`
	Source      string           `json:"source"`
	Mode        roster.Mode      `json:"mode"`
	DryRun      bool             `json:"dry_run"`
	State       roster.State     `json:"state"`
	RequestedBy string           `json:"requested_by"`
	DecidedBy   string           `json:"decided_by"`
	Undoes      id.RosterRun     `json:"undoes,omitempty"`
	Create      int              `json:"create"`
	Update      int              `json:"update"`
	Skip        int              `json:"skip"`
	Deactivate  int              `json:"deactivate"`
	Issues      int              `json:"issues"`
	Reasons     []string         `json:"reasons"`
	Error       string           `json:"error,omitempty"`
	ReviewURL   string           `json:"review_url"`
	CreatedAt   *clock.Timestamp `json:"created_at"`
	FinishedAt  *clock.Timestamp `json:"finished_at"`
}

func (s *Server) runOf(o org.Organization, run roster.Run) runBody {
	c := run.Counts
	body := runBody{ID: run.ID, Source: run.Source.Name, Mode: run.Mode, DryRun: run.DryRun, State: run.State, RequestedBy: run.RequestedBy,
		DecidedBy: run.DecidedBy, Undoes: run.Undoes, Create: c.Create, Update: c.Update, Skip: c.Skip, Deactivate: c.Deactivate,
		Issues: run.Issues, Reasons: []string{}, Error: run.Fault, ReviewURL: roster.ReviewURL(s.PublicURL, o.Slug, run.ID),
		CreatedAt: clock.Stamp(run.CreatedAt, time.UTC), FinishedAt: clock.Stamp(run.FinishedAt, time.UTC)}
	for _, reason := range run.Reasons {
		body.Reasons = append(body.Reasons, reason.Text)
	}
	return body
}

type runAnswer struct {
	Status string `json:"status"`
	runBody
}

// listRosterRuns lists the organization's runs, the newest first.
func (s *Server) listRosterRuns(w http.ResponseWriter, r *http.Request) error {
	q := edge.ReadQuery(r)
	limit := q.Limit(maxLimit, usualLimit)
	if err := q.Err(); err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	return edge.List[roster.Run]{
		Cursors: s.Cursors, Organization: o.ID, Name: "roster-runs", Array: "roster_runs", Limit: limit,
		Read: func(_ *pg.DB, after page.Position, limit int, each func(roster.Run) error) error {
			runs, err := roster.List(r.Context(), s.DB, o.ID, id.RosterRun(after.At(0)), limit)
			return edge.Each(runs, err, each)
		},
		Position: func(run roster.Run) page.Position { return page.Position{int64(run.ID)} },
		Show:     func(run roster.Run) any { return s.runOf(o, run) },
	}.Answer(w, r, q)
}

// rosterRun is the run that the path names.
func (s *Server) rosterRun(r *http.Request) (org.Organization, roster.Run, error) {
	o, err := s.organization(r)
	if err != nil {
		return o, roster.Run{}, err
	}
	which, err := edge.IDParam[id.RosterRun](r, "id")
	if err != nil {
		return o, roster.Run{}, err
	}
	run, err := roster.Find(r.Context(), s.DB, o.ID, which)
	return o, run, err
}

func (s *Server) showRosterRun(w http.ResponseWriter, r *http.Request) error {
	o, run, err := s.rosterRun(r)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, runAnswer{"ok", s.runOf(o, run)})
}

type changeBody struct {
	N          int64         `json:"n"`
	Line       int           `json:"line"`
	Action     roster.Action `json:"action"`
	UserID     *id.User      `json:"user_id"` // null: made by the run
	ExternalID string        `json:"person_external_id"`
	Email      string        `json:"email"`
	FirstName  string        `json:"first_name"`
	LastName   string        `json:"last_name"`
	Before     *beforeBody   `json:"before"` // null where email and names stay
}

type beforeBody struct {
	Email     string `json:"email"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
}

// changesLimit is how many rows of a run a page has, at most and where the call does not say.
const changesLimit = 1000

func (s *Server) listRosterChanges(w http.ResponseWriter, r *http.Request) error {
	q := edge.ReadQuery(r)
	limit := q.Limit(changesLimit, changesLimit)
	if err := q.Err(); err != nil {
		return err
	}
	o, run, err := s.rosterRun(r)
	if err != nil {
		return err
	}
	q.Filter("run", strconv.FormatInt(int64(run.ID), 10))
	return edge.List[roster.Change]{
		Cursors: s.Cursors, Organization: o.ID, Name: "roster-changes", Array: "changes", Limit: limit,
		Read: func(_ *pg.DB, after page.Position, limit int, each func(roster.Change) error) error {
			changes, err := diff.Changes(r.Context(), s.DB, run.ID, after.At(0), limit)
			return edge.Each(changes, err, each)
		},
		Position: func(c roster.Change) page.Position { return page.Position{c.N} },
		Show:     func(c roster.Change) any { return changeOf(c) },
	}.Answer(w, r, q)
}

func changeOf(c roster.Change) changeBody {
	b := changeBody{N: c.N, Line: c.Line, Action: c.Action, ExternalID: c.ExternalID, Email: c.Email, FirstName: c.FirstName, LastName: c.LastName}
	if c.User != 0 {
		b.UserID = &c.User
	}
	if c.Effects.Has(roster.ChangeProfile) {
		b.Before = &beforeBody{c.BeforeEmail, c.BeforeFirst, c.BeforeLast}
	}
	return b
}

func (s *Server) downloadIssues(w http.ResponseWriter, r *http.Request) error {
	_, run, err := s.rosterRun(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="roster-run-`+strconv.FormatInt(int64(run.ID), 10)+`-issues.csv"`)
	w.Header().Set("Cache-Control", "no-store")
	return diff.WriteIssues(r.Context(), s.DB, run.ID, csv.NewWriter(w))
}

func (s *Server) approveRosterRun(w http.ResponseWriter, r *http.Request) error {
	return s.decideRun(w, r, func(ctx context.Context, o id.Organization, run id.RosterRun) (id.RosterRun, error) {
		return run, roster.Approve(ctx, s.DB, audit.Platform, o, run, s.Clock())
	})
}

func (s *Server) discardRosterRun(w http.ResponseWriter, r *http.Request) error {
	return s.decideRun(w, r, func(ctx context.Context, o id.Organization, run id.RosterRun) (id.RosterRun, error) {
		return run, roster.Discard(ctx, s.DB, audit.Platform, o, run, s.Clock())
	})
}

func (s *Server) undoRosterRun(w http.ResponseWriter, r *http.Request) error {
	return s.decideRun(w, r, func(ctx context.Context, o id.Organization, run id.RosterRun) (id.RosterRun, error) {
		return roster.Undo(ctx, s.DB, audit.Platform, o, run, s.Clock())
	})
}

const runPatience = 45 * time.Second // within the server's time for an answer

// decideRun does what a person decided and shows the run that it led to, finished unless
// that takes longer than the request may.
func (s *Server) decideRun(w http.ResponseWriter, r *http.Request, do func(context.Context, id.Organization, id.RosterRun) (id.RosterRun, error)) error {
	ctx := r.Context()
	o, run, err := s.rosterRun(r)
	if err != nil {
		return err
	}
	next, err := do(ctx, o.ID, run.ID)
	if err != nil {
		return err
	}
	run, err = roster.Await(ctx, s.DB, s.Rosters, o.ID, next, runPatience)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	status := http.StatusOK
	if !run.State.Over() {
		status = http.StatusAccepted
	}
	return edge.JSON(w, status, runAnswer{"ok", s.runOf(o, run)})
}
