package rest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/sandboxes"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

var errNotSandbox = fault.New(fault.NotFound, "not_a_sandbox", "this is in sandboxes alone; use a key of the organization's sandbox, which begins with reg_test_")

const wipePath = "/sandbox/wipe"

// Inside makes the routes of the Server of a sandbox, for requests that answerInSandbox has let in.
func (s *Server) Inside(o *sandboxes.Open) http.Handler {
	s.inside, s.work = o, &work.Service{DB: s.DB, Clock: s.Clock, Zone: s.Zone, PublicURL: s.PublicURL}
	router := chi.NewRouter()
	router.Route("/api/v1", s.routes)
	return router
}

type visitKey struct{}

// visit is the one that the request makes to the sandbox.
func visit(ctx context.Context) *sandboxes.Visit {
	v, ok := ctx.Value(visitKey{}).(*sandboxes.Visit)
	if !ok {
		panic("rest: a route outside of a sandbox")
	}
	return v
}

// answerInSandbox answers a request with a key of a sandbox, which authenticate has let in: by the sandbox's own
// Server, which has another database and another clock.
func (s *Server) answerInSandbox(w http.ResponseWriter, r *http.Request, p org.Principal) error {
	ctx := r.Context()
	edge.Annotate(ctx, "sandbox", true)
	v, err := s.Sandboxes.Visit(ctx, p.Organization.ID)
	if err != nil {
		return err
	}
	defer v.Leave()
	if err := mayWrite(r, v); err != nil {
		return err
	}
	all, err := org.ReadAll(ctx, v.DB, v.Organization)
	if err != nil {
		return err
	}
	p.Organization = all[v.Organization]
	ctx = context.WithValue(context.WithValue(ctx, principalKey{}, p), visitKey{}, v)
	v.Partner.ServeHTTP(w, edge.Reroute(r.WithContext(ctx)))
	return nil
}

// mayWrite refuses what changes something while the clock is moved, and once the sandbox is full. Wiping always helps.
func mayWrite(r *http.Request, v *sandboxes.Visit) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || chi.RouteContext(r.Context()).RoutePattern() == "/api/v1"+wipePath {
		return nil
	}
	if err := v.Clock.Moving(); err != nil {
		return err
	}
	return v.Full(r.Context())
}

// inSandbox is a Handler for keys of sandboxes alone.
func (s *Server) inSandbox(h edge.Handler) http.HandlerFunc {
	return edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.inside == nil {
			return errNotSandbox
		}
		return h(w, r)
	})
}

type sandboxBody struct {
	Status    string           `json:"status"`
	CreatedAt *clock.Timestamp `json:"created_at"`
	FilledAt  *clock.Timestamp `json:"filled_at"`
	Clock     *clock.Timestamp `json:"clock"`
	Moving    *moveBody        `json:"moving"`
	Next      *nextBody        `json:"next"`
	Size      sizeBody         `json:"size"`
}

type moveBody struct {
	From     *clock.Timestamp `json:"from"`
	To       *clock.Timestamp `json:"to"`
	Receiver sandbox.Receiver `json:"receiver"`
	Progress float64          `json:"progress"`
}

type nextBody struct {
	Kind string           `json:"kind"`
	At   *clock.Timestamp `json:"at"`
}

type sizeBody struct {
	Bytes int64 `json:"bytes"`
	Limit int64 `json:"limit"`
}

func (s *Server) showSandbox(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	if err := q.Err(); err != nil {
		return err
	}
	return s.answerSandbox(w, r, q.zone)
}

// answerSandbox shows the sandbox; 202 says that its clock is being moved by the call.
func (s *Server) answerSandbox(w http.ResponseWriter, r *http.Request, zone *time.Location) error {
	ctx, in := r.Context(), s.inside
	c, err := sandbox.Read(ctx, s.DB, in.Organization)
	if err != nil {
		return err
	}
	next, err := simulate.NextOf(ctx, s.DB, in.Organization, c, s.Zone)
	if err != nil {
		return err
	}
	body := sandboxBody{Status: "ok", CreatedAt: clock.Stamp(in.CreatedAt, zone), FilledAt: clock.Stamp(in.FilledAt, zone), Clock: clock.Stamp(c.Now, zone)}
	if c.Target != nil {
		body.Moving = &moveBody{clock.Stamp(c.From, zone), clock.Stamp(*c.Target, zone), c.Receiver, c.Progress()}
	}
	if next != nil {
		body.Next = &nextBody{next.Kind, clock.Stamp(next.At, zone)}
	}
	body.Size.Limit = s.Sandboxes.Service.MaxSize
	if body.Size.Bytes, err = sandbox.Size(ctx, s.DB); err != nil {
		return err
	}
	status := http.StatusOK
	if body.Moving != nil && r.Method == http.MethodPost {
		status = http.StatusAccepted
	}
	return edge.JSON(w, status, body)
}

// maxMoveWait is the longest that a request waits for the clock.
const maxMoveWait = 30 * time.Second

// advanceSandbox moves the clock.
func (s *Server) advanceSandbox(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	if err := q.Err(); err != nil {
		return err
	}
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	v := visit(r.Context())
	field, to, receiver := readMove(b, v.Clock)
	if err := b.Err(); err != nil {
		return err
	}
	if err := v.Move(r.Context(), field, to, receiver); err != nil {
		return err
	}
	if err := s.awaitMove(w, r); err != nil {
		return err
	}
	return s.answerSandbox(w, r, q.zone)
}

// readMove also says which field named the time.
func readMove(b *edge.Body, c sandbox.Clock) (field string, to time.Time, by sandbox.Receiver) {
	by = sandbox.Accepts
	var receivers []string
	for _, r := range sandbox.Receivers() {
		receivers = append(receivers, string(r))
	}
	if word := b.Choice("receiver", receivers...); word != nil {
		by = sandbox.Receiver(*word)
	}
	at, period := b.Timestamp("to"), b.Text("by", 40)
	switch {
	case at != nil && period != nil:
		b.Fault("by", "invalid", "send to or by, not both")
	case at != nil:
		return "to", at.Truncate(time.Second), by
	case period != nil:
		to, err := clock.AddPeriod("by", c.Now, *period)
		if err != nil {
			b.Add(err)
		}
		return "by", to, by
	case !b.Has("to") && !b.Has("by"):
		b.Fault("to", "missing", "required, unless by is sent")
	}
	return "", to, by
}

// awaitMove waits for the clock as long as the caller prefers, where few others of the organization wait.
func (s *Server) awaitMove(w http.ResponseWriter, r *http.Request) error {
	limit, of := edge.Wait(r, maxMoveWait), s.inside.Organization
	if limit == 0 {
		return nil
	}
	leave, ok := s.Places.waits.Try(of)
	if !ok {
		return nil
	}
	defer leave()
	edge.Waited(w, limit)
	err := wake.NewWatch(nil, "").Until(r.Context(), "clock", limit, func(ctx context.Context) (bool, error) {
		c, err := sandbox.Read(ctx, s.DB, of)
		return c.Target == nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil {
		return nil
	}
	return err
}

type sandboxMail struct {
	ID      id.Email         `json:"id"`
	SentAt  *clock.Timestamp `json:"sent_at"`
	To      string           `json:"to"`
	Subject string           `json:"subject"`
	Text    string           `json:"text"`
	HTML    string           `json:"html"`
}

// listSandboxMails lists the mails that the sandbox caught, in the order in which they were written.
func (s *Server) listSandboxMails(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	ctx, of := r.Context(), s.inside.Organization
	return edge.List[sandbox.Mail]{
		Cursors: s.Cursors, Reads: s.Reads, Organization: of, Name: "sandbox_mails", Array: "mails", Limit: q.Limit(maxLimit, usualLimit),
		Read: func(db *pg.DB, after page.Position, limit int, each func(sandbox.Mail) error) error {
			found, err := sandbox.Mails(ctx, db, of, id.Email(after.At(0)), limit)
			return edge.Each(found, err, each)
		},
		Position: func(m sandbox.Mail) page.Position { return page.Position{int64(m.ID)} },
		Show: func(m sandbox.Mail) any {
			return sandboxMail{m.ID, clock.Stamp(m.SentAt, q.zone), m.Recipient, m.Subject, m.Plain, m.HTML}
		},
	}.Answer(w, r, q.Query)
}

type actBody struct {
	Status       string          `json:"status"`
	AssignmentID string          `json:"assignment_id"`
	ResultID     string          `json:"result_id"`
	State        result.State    `json:"state"`
	Score        *decimal.Number `json:"score"`
	MaxScore     *decimal.Number `json:"max_score"`
}

// actInSandbox hands in assigned work as its student would, marked at once.
func (s *Server) actInSandbox(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	b.Required("assignment_id")
	ref, score, seed := b.Text("assignment_id", 100), b.Number("score"), b.Int("seed", 0, 1<<31-1)
	if score != nil && seed != nil {
		b.Fault("seed", "invalid", "send score or seed, not both")
	}
	if err := b.Err(); err != nil {
		return err
	}
	record, err := s.handedIn(r.Context(), *ref, score, seed)
	if err != nil {
		return err
	}
	o, err := s.work.Result(r.Context(), record)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, actBody{"ok", *ref, o.Result.Ref, o.Result.State, o.Result.Score, o.Result.MaxScore})
}

func (s *Server) handedIn(ctx context.Context, ref string, score *decimal.Number, seed *int) (record work.Record, err error) {
	o := principal(ctx).Organization
	kind, which, err := assignment.SplitRef(ref)
	if err != nil {
		return record, err
	}
	a, err := assignment.Show(ctx, s.DB, o.ID, which)
	if err != nil {
		return record, err
	}
	if a.Kind != kind {
		return record, assignment.ErrNone(ref)
	}
	item, err := catalog.Find(ctx, s.DB, o.ID, catalog.Kind(a.Kind), a.Item)
	if err != nil {
		return record, err
	}
	record = work.Record{Kind: item.Kind, User: a.User, Assignment: ref, State: result.Finished, Mark: catalog.Mark{Score: score}}
	switch item.Kind {
	case catalog.Test:
		record.Organization, record.Item, record.Session = o.Slug, a.Item, "sandbox-"+ref
	case catalog.Assessment:
		record.State = result.Released
	case catalog.Quiz:
	}
	if score == nil {
		var n uint64
		if seed != nil {
			n = uint64(*seed)
		}
		// Not by the id, whose numbers have gaps where a process ended.
		of := fnv.New64a()
		_, _ = fmt.Fprintf(of, "%s %d %d", a.Email, a.Item, a.AssignedAt.UnixMicro())
		record.Mark = item.Draw(rand.New(rand.NewPCG(n, of.Sum64())))
	}
	return record, nil
}

// wipeSandbox empties the sandbox.
func (s *Server) wipeSandbox(w http.ResponseWriter, r *http.Request) error {
	p := principal(r.Context())
	found, err := s.Sandboxes.Service.Wipe(r.Context(), p.Actor(), p.Organization.ID)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status   string           `json:"status"`
		FilledAt *clock.Timestamp `json:"filled_at"`
	}{"ok", clock.Stamp(found.FilledAt, time.UTC)})
}
