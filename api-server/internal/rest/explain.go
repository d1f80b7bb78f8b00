package rest

import (
	"net/http"
	"net/url"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/history"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// explanationHead is what stands before the entries.
type explanationHead struct {
	edge.Page
	Student *wire.Person `json:"student"` // null for an event about nobody who is a student now
}

// explain answers GET /explain/.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	read := s.explanation(r, q)
	var who *student.Account
	return edge.List[explain.Entry]{
		Cursors: s.Cursors, Organization: principal(r.Context()).Organization.ID, Name: "explain", Array: "entries", Limit: q.Limit(maxLimit, usualLimit),
		Read: func(_ *pg.DB, after page.Position, limit int, each func(explain.Entry) error) error {
			var entries []explain.Entry
			var err error
			who, entries, err = read(positionOf(after), limit)
			return edge.Each(entries, err, each)
		},
		Position: func(e explain.Entry) page.Position {
			return page.Position{e.Position.At.UnixMicro(), int64(e.Position.Behind)}
		},
		Show: func(e explain.Entry) any { return newEntryBody(e, q.zone) },
		Head: func(p edge.Page) any {
			if who == nil {
				return explanationHead{Page: p}
			}
			person := wire.NewPerson(*who)
			return explanationHead{p, &person}
		},
	}.Answer(w, r, q.Query)
}

func positionOf(p page.Position) explain.Position {
	if len(p) == 0 {
		return explain.Position{}
	}
	return explain.Position{At: time.UnixMicro(p.At(0)), Behind: int(p.At(1))}
}

// explanation reads which subject is asked about, of which there is one, and returns what reads its entries.
func (s *Server) explanation(r *http.Request, q *query) func(explain.Position, int) (*student.Account, []explain.Entry, error) {
	ctx, o := r.Context(), principal(r.Context()).Organization.ID
	email, event, delivery := q.email(), q.Text("event"), q.Text("delivery")
	asked := 0
	for name, is := range map[string]bool{"email": q.Has("email"), "event": event != "", "delivery": delivery != ""} {
		if is {
			asked++
			q.Filter("subject", name)
		}
	}
	if asked != 1 {
		q.Fault("email", "one_subject", "send one of email, event and delivery")
	}
	q.Filter("id", event+delivery)
	return func(from explain.Position, limit int) (*student.Account, []explain.Entry, error) {
		switch {
		case event != "":
			which, err := id.ParseEvent(event)
			if err != nil {
				return nil, nil, err
			}
			return s.Explains.Event(ctx, o, which, from, limit)
		case delivery != "":
			which, err := id.ParseDelivery(delivery)
			if err != nil {
				return nil, nil, err
			}
			return s.Explains.Delivery(ctx, o, which, from, limit)
		}
		a, err := student.Lookup(ctx, s.DB, o, email)
		if err != nil {
			return nil, nil, err
		}
		entries, err := s.Explains.Student(ctx, o, a, from, limit)
		return &a, entries, err
	}
}

type entryBody struct {
	At         *clock.Timestamp `json:"at"`
	Kind       explain.Kind     `json:"kind"`
	Summary    string           `json:"summary"`
	Reason     *string          `json:"reason"`
	By         *string          `json:"by"`
	IDs        explain.IDs      `json:"ids"`
	Deliveries []deliveryBody   `json:"deliveries"` // null but for events
}

// deliveryBody names the receiver by its host: the rest of an address may be secret.
type deliveryBody struct {
	ID            id.Delivery      `json:"id"`
	EndpointID    id.Endpoint      `json:"endpoint_id"`
	Host          string           `json:"host"`
	Status        webhook.Status   `json:"status"`
	Reason        string           `json:"reason"`
	NextAttemptAt *clock.Timestamp `json:"next_attempt_at"`
	SupersededBy  *id.Delivery     `json:"superseded_by"`
	AttemptCount  int              `json:"attempt_count"`
	Attempts      []answerBody     `json:"attempts"`
}

type answerBody struct {
	Number     int              `json:"number"`
	StartedAt  *clock.Timestamp `json:"started_at"`
	Outcome    webhook.Verdict  `json:"outcome"`
	Status     *int             `json:"response_status"`
	Cause      string           `json:"cause"`
	Reason     string           `json:"reason"`
	DurationMS float64          `json:"duration_ms"`
}

func newEntryBody(e explain.Entry, zone *time.Location) entryBody {
	body := entryBody{At: clock.Stamp(e.At, zone), Kind: e.Kind, Summary: e.Summary, Reason: orNull(e.Reason), By: orNull(e.By), IDs: e.IDs}
	if e.Kind != explain.Event {
		return body
	}
	body.Deliveries = make([]deliveryBody, len(e.Deliveries))
	for i, d := range e.Deliveries {
		b := deliveryBody{ID: d.ID, EndpointID: d.Endpoint, Host: hostOf(d.URL), Status: d.Status, Reason: d.Reason,
			SupersededBy: d.SupersededBy, AttemptCount: d.Tried, Attempts: make([]answerBody, len(d.Answers))}
		if d.DueAt != nil {
			b.NextAttemptAt = clock.Stamp(*d.DueAt, zone)
		}
		for j, a := range d.Answers {
			b.Attempts[j] = newAnswerBody(a, zone)
		}
		body.Deliveries[i] = b
	}
	return body
}

func newAnswerBody(a history.Answer, zone *time.Location) answerBody {
	return answerBody{Number: a.Number, StartedAt: clock.Stamp(a.StartedAt, zone), Outcome: a.Verdict, Status: a.Status, Cause: a.Cause,
		Reason: webhook.Explain(a.Cause), DurationMS: float64(a.Duration.Microseconds()) / 1000}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
