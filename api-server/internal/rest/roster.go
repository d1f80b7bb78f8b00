package rest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// An import takes longer than other requests: to arrive, and to be worked on.
const (
	uploadTime  = 5 * time.Minute
	runTime     = 10 * time.Minute
	shownIssues = 1000
	maxPart     = 10_000    // bytes of a form field
	maxParts    = 20        // of a form
	drained     = 128 << 20 // bytes of a refused upload that are read so that its sender reads the answer
)

func (s *Server) importRoster(w http.ResponseWriter, r *http.Request) error {
	edge.Extend(r.Context(), uploadTime+runTime+time.Minute)
	edge.ArriveWithin(r, uploadTime)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(uploadTime + runTime + time.Minute)) // the server's own limit stays where it cannot be moved
	run, err := s.receiveRoster(r)
	if err != nil {
		if fault.KindOf(err) == fault.TooLarge {
			drain(r)
		}
		return err
	}
	edge.Annotate(r.Context(), "roster_run", int64(run))
	done, err := roster.Await(r.Context(), s.DB, s.Rosters, principal(r.Context()).Organization.ID, run, runTime)
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Unavailable, "roster_run_unfinished", "run %d is still at work; send the same file again later to learn how it ended", run)
	}
	if err != nil {
		return err
	}
	return s.answerRun(w, r, done)
}

// drain reads what is refused, as far as it comes in time.
func drain(r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, drained) }

// asked is what a request says about its file, as texts.
type asked struct {
	mode, source, dryRun string
	sent                 []string // the form's fields so far
}

// receiveRoster stores the request's file and hands it over as a run.
func (s *Server) receiveRoster(r *http.Request) (id.RosterRun, error) {
	if err := edge.Unencoded(r); err != nil {
		return 0, err
	}
	p := principal(r.Context())
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength > roster.MaxUpload+maxPart*maxParts {
		return 0, roster.ErrTooLarge
	}
	u := &receipt{Server: s, org: p.Organization.ID, by: p.Actor()}
	u.asked = asked{mode: r.Header.Get("X-Roster-Mode"), source: r.Header.Get("X-Roster-Source"), dryRun: r.Header.Get("X-Roster-Dry-Run")}
	var err error
	switch strings.ToLower(media) {
	case "multipart/form-data":
		err = u.form(r)
	case "application/zip", "application/x-zip-compressed":
		u.draft.Form = roster.ZipForm
		err = u.file(r.Context(), r.Body)
	case "text/csv", "application/csv", "application/octet-stream":
		err = u.file(r.Context(), r.Body)
	default:
		err = fault.New(fault.Invalid, "unsupported_content_type",
			"Content-Type: send multipart/form-data with the file as archive, or the file itself as application/zip or text/csv")
	}
	if err == nil {
		err = u.submit(r.Context())
	}
	if err != nil {
		u.drop(r.Context())
		return 0, err
	}
	return u.run, nil
}

// upload remembers that it was the request that broke off: connections to PostgreSQL end with
// the same errors, and those are no fault of who sent the file.
type upload struct {
	io.Reader

	broken bool
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	u.broken = u.broken || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, http.ErrBodyReadAfterClose) || errors.Is(err, multipart.ErrMessageTooLarge)
	return n, err
}

var errBroken = fault.New(fault.Invalid, "body_unreadable", "the body broke off; send the whole request again")

// receipt is an upload on its way in.
type receipt struct {
	*Server
	org   id.Organization
	by    audit.Actor
	asked asked
	draft roster.Draft
	run   id.RosterRun
}

// form reads the parts of a form in whatever order they come.
func (u *receipt) form(r *http.Request) error {
	parts, err := r.MultipartReader()
	if err != nil {
		return fault.New(fault.Invalid, "body_unreadable", "Content-Type: the form's boundary is missing or wrong").Because(err)
	}
	for n := 0; ; n++ {
		part, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fault.New(fault.Invalid, "body_unreadable", "the form is not complete; send the whole request again").Because(err)
		case n == maxParts:
			return fault.New(fault.Invalid, "too_many_parts", "the form has more than %d parts", maxParts)
		}
		if err := u.part(r.Context(), part); err != nil {
			return err
		}
	}
}

func (u *receipt) part(ctx context.Context, part *multipart.Part) error {
	name := part.FormName()
	if name == "archive" {
		if u.run != 0 {
			return fault.Field("archive", "sent_twice", "archive: send one file")
		}
		from := bufio.NewReaderSize(part, roster.NamedSize)
		start, _ := from.Peek(roster.NamedSize) // what fails here fails again below
		u.draft.Form = roster.FormOf(part.FileName(), start)
		return u.file(ctx, from)
	}
	text, err := io.ReadAll(io.LimitReader(part, maxPart+1))
	switch {
	case err != nil && ctx.Err() == nil:
		return errBroken.Because(err)
	case err != nil:
		return err
	case len(text) > maxPart:
		return fault.Field(name, "too_long", "%.100s: too long; send the file as archive", name)
	}
	return u.asked.take(name, string(text))
}

// take takes a form's field; what the form does not have is ignored.
func (a *asked) take(name, text string) error {
	into := map[string]*string{"mode": &a.mode, "source": &a.source, "dry_run": &a.dryRun}[name]
	switch {
	case into == nil:
		return nil
	case slices.Contains(a.sent, name):
		return fault.Field(name, "sent_twice", "%s: the form names it twice; send it once", name)
	}
	*into, a.sent = text, append(a.sent, name)
	return nil
}

// file stores the file. What the request says by now is checked before, so that a caller
// need not send 25 MB to be refused.
func (u *receipt) file(ctx context.Context, from io.Reader) error {
	err := u.check(ctx)
	if err != nil {
		return err
	}
	if u.run, err = roster.Begin(ctx, u.DB, u.org, u.by.Name, u.Clock()); err != nil {
		return err
	}
	body := &upload{Reader: from}
	u.draft.Size, err = roster.Store(ctx, u.DB, u.run, body)
	if body.broken && ctx.Err() == nil {
		return errBroken.Because(err)
	}
	return err
}

// check reads what was said and whether the source may send it.
func (u *receipt) check(ctx context.Context) error {
	mode, err := roster.ParseMode(strings.ToLower(strings.TrimSpace(u.asked.mode)))
	if err != nil {
		return err
	}
	name, err := roster.ParseSource(u.asked.source)
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(u.asked.dryRun)) {
	case "", "false", "no", "0":
	case "true", "yes", "1":
		u.draft.DryRun = true
	default:
		return fault.Field("dry_run", "not_a_boolean", "dry_run: send true or false")
	}
	u.draft.Mode = mode
	if u.draft.Source, err = roster.FindSource(ctx, u.DB, u.org, name); err != nil {
		return err
	}
	if mode == roster.Snapshot && !u.draft.Source.AuthoritativeEnabled {
		return roster.ErrNotEnabled
	}
	return nil
}

func (u *receipt) submit(ctx context.Context) error {
	if u.run == 0 {
		return fault.Field("archive", "missing", "archive: required; send a zip archive or people.csv as a file")
	}
	if err := u.check(ctx); err != nil {
		return err
	}
	return roster.Submit(ctx, u.DB, u.by, u.org, u.run, u.draft, u.Clock())
}

// drop forgets a file that is not imported; what is left by a lost connection is cleared
// by a periodic duty.
func (u *receipt) drop(ctx context.Context) {
	if u.run == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = roster.Abandon(ctx, u.DB, u.org, u.run)
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
	Create int `json:"create"`
	Rename int `json:"rename"`
	Add    int `json:"add"`
	Remove int `json:"remove"`
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
		Classes: rosterClasses{c.ClassesCreated, c.ClassesRenamed, c.SeatsAdded, c.SeatsRemoved},
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
