// Package upload takes a roster's file from a request, of the partner API and of the console alike, and hands it over as
// a run.
package upload

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
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Time is how long a file may take to arrive.
const Time = 5 * time.Minute

const (
	maxPart  = 10_000    // bytes of a form field
	maxParts = 20        // of a form
	drained  = 128 << 20 // bytes of a refused upload that are read so that its sender reads the answer
)

// Server holds what receiving needs.
type Server struct {
	DB    *pg.DB
	Clock clock.Clock
}

// Receive stores the request's file and hands it over as a run of the organization. A body that is too large it reads as
// far as its sender needs to read the answer.
func (s Server) Receive(r *http.Request, org id.Organization, by audit.Actor) (id.RosterRun, error) {
	edge.ArriveWithin(r, Time)
	run, err := s.receive(r, org, by)
	if fault.KindOf(err) == fault.TooLarge {
		Drain(r)
	}
	return run, err
}

// Drain reads what is refused, as far as it comes in time: a browser shows no answer before it has sent everything.
func Drain(r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, drained) }

// asked is what a request says about its file, as texts.
type asked struct {
	mode, source, dryRun string
	sent                 []string // the form's fields so far
}

func (s Server) receive(r *http.Request, org id.Organization, by audit.Actor) (id.RosterRun, error) {
	if err := edge.Unencoded(r); err != nil {
		return 0, err
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength > roster.MaxUpload+maxPart*maxParts {
		return 0, roster.ErrTooLarge
	}
	u := &receipt{Server: s, org: org, by: by}
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
	Server
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
