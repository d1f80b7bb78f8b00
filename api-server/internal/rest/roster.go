package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/upload"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// An import takes longer than other requests: to arrive, and to be worked on.
const (
	runTime     = 10 * time.Minute
	shownIssues = 1000
)

func (s *Server) importRoster(w http.ResponseWriter, r *http.Request) error {
	edge.Extend(r.Context(), upload.Time+runTime+time.Minute)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(upload.Time + runTime + time.Minute)) // the server's own limit stays where it cannot be moved
	p := principal(r.Context())
	run, err := upload.Server{DB: s.DB, Clock: s.Clock}.Receive(r, p.Organization.ID, p.Actor())
	if err != nil {
		return err
	}
	edge.Annotate(r.Context(), "roster_run", int64(run))
	done, err := roster.Await(r.Context(), s.DB, s.Rosters, p.Organization.ID, run, runTime)
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Unavailable, "roster_run_unfinished", "run %d is still at work; send the same file again later to learn how it ended", run)
	}
	if err != nil {
		return err
	}
	return s.answerRun(w, r, done)
}

type rosterBody struct {
	Status      string         `json:"status"`
	RunID       id.RosterRun   `json:"run_id"`
	Mode        roster.Mode    `json:"mode"`
	Source      string         `json:"source"`
	Counts      rosterCounts   `json:"counts"`
	Classes     rosterClasses  `json:"classes"`
	Issues      []roster.Issue `json:"issues"`
	IssuesTotal int            `json:"issues_total"`
	Reasons     []string       `json:"reasons,omitempty"`
	ReasonCodes []string       `json:"reason_codes,omitempty"`
	ReviewURL   string         `json:"review_url,omitempty"`
}

type rosterCounts struct {
	Create     int `json:"create"`
	Update     int `json:"update"`
	Skip       int `json:"skip"`
	Deactivate int `json:"deactivate"`
}

type rosterClasses struct {
	Create     int `json:"create"`
	Rename     int `json:"rename"`
	Reschedule int `json:"reschedule"`
	Add        int `json:"add"`
	Remove     int `json:"remove"`
}

// answerRun shows how a run has ended.
func (s *Server) answerRun(w http.ResponseWriter, r *http.Request, run roster.Run) error {
	if rosterimport.GivenUp(run) {
		return rosterimport.ErrGivenUp
	}
	if run.State == roster.Refused {
		return fault.New(fault.Invalid, run.FaultCode, "%s", run.Fault)
	}
	issues, _, err := diff.Issues(r.Context(), s.DB, run.ID, 0, shownIssues)
	if err != nil {
		return err
	}
	c := run.Counts
	body := rosterBody{Status: string(roster.Applied), RunID: run.ID, Mode: run.Mode, Source: run.Source.Name,
		Counts:  rosterCounts{c.Create, c.Update, c.Skip, c.Deactivate},
		Classes: rosterClasses{c.ClassesCreated, c.ClassesRenamed, c.ClassesRescheduled, c.SeatsAdded, c.SeatsRemoved},
		Issues:  append([]roster.Issue{}, issues...), IssuesTotal: run.Issues}
	for _, reason := range run.Reasons {
		body.Reasons, body.ReasonCodes = append(body.Reasons, reason.Text), append(body.ReasonCodes, reason.Code)
	}
	switch {
	case run.DryRun:
		body.Status = "dry_run"
	case run.State != roster.Applied && run.State != roster.Undone:
		body.Status, body.ReviewURL = string(roster.Held), roster.ReviewURL(s.PublicURL, principal(r.Context()).Organization.Slug, run.ID)
		return edge.JSON(w, http.StatusAccepted, body)
	}
	return edge.JSON(w, http.StatusOK, body)
}
