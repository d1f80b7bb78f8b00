package webhooks

import (
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

type deliveryBody struct {
	ID         id.Delivery      `json:"id"`
	Event      id.Event         `json:"event_id"`
	Type       webhook.Type     `json:"event"`
	Status     webhook.Status   `json:"delivery_status"`
	CreatedAt  *clock.Timestamp `json:"created_at"`
	DueAt      *clock.Timestamp `json:"due_at"`
	FinishedAt *clock.Timestamp `json:"finished_at"`
	Superseded *id.Delivery     `json:"superseded_by"`
	Attempts   []attemptBody    `json:"attempts"`
}

type attemptBody struct {
	Number         int               `json:"number"`
	StartedAt      *clock.Timestamp  `json:"started_at"`
	Outcome        webhook.Verdict   `json:"outcome"`
	Cause          string            `json:"cause"`
	Explanation    string            `json:"explanation"`
	Detail         string            `json:"detail"`
	RequestHeaders map[string]string `json:"request_headers"`
	Status         *int              `json:"response_status"`
	Response       *string           `json:"response_body"`
	Peer           string            `json:"peer"`
	Timing         timingBody        `json:"timing_ms"`
}

// timingBody has milliseconds; a part that did not happen is 0.
type timingBody struct {
	Total     float64 `json:"total"`
	DNS       float64 `json:"dns"`
	Connect   float64 `json:"connect"`
	TLS       float64 `json:"tls"`
	FirstByte float64 `json:"first_byte"`
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func deliveryOf(d journal.Delivery, zone *time.Location) deliveryBody {
	body := deliveryBody{d.ID, d.Event, d.Type, d.Status, clock.Stamp(d.CreatedAt, zone), clock.OptionalStamp(d.DueAt, zone), clock.OptionalStamp(d.FinishedAt, zone), d.SupersededBy,
		make([]attemptBody, len(d.Attempts))}
	for i, a := range d.Attempts {
		body.Attempts[i] = attemptBody{a.Number, clock.Stamp(a.StartedAt, zone), a.Verdict, a.Cause, webhook.Explain(a.Cause), a.Detail,
			a.RequestHeaders, a.Status, responseText(a.Response), a.Peer,
			timingBody{millis(a.Duration), millis(a.Timing.DNS), millis(a.Timing.Connect), millis(a.Timing.TLS), millis(a.Timing.FirstByte)}}
	}
	return body
}

// responseText is null where there was no response, and leaves out what is no text.
func responseText(b []byte) *string {
	if b == nil {
		return nil
	}
	text := string(b)
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return &text
}

// Limits of a page. It ends early once its attempts fill mostOfLog bytes, and readAtOnce deliveries are read at a
// time: what receivers have answered is theirs to choose, and must not fill the memory of an api-server.
const (
	maxLimit   = 500
	usualLimit = 100
	readAtOnce = 25
	mostOfLog  = 1 << 20

	attemptSize = 512 // of an attempt without what was answered, in about
)

// readLog reads deliveries of a URL that are older than last, until it has limit or enough. more says that there may
// be others behind the one that it ends with.
func (s *Server) readLog(r *http.Request, db *pg.DB, t target, f journal.Filter, last id.Delivery, limit int, each func(journal.Delivery) error) (end id.Delivery, more bool, err error) {
	for size := 0; limit > 0; {
		if size > mostOfLog {
			return last, true, nil
		}
		n := min(limit, readAtOnce)
		found, err := journal.List(r.Context(), db, t.Organization, t.endpoint, f, last, n)
		if err = edge.Each(found, err, each); err != nil || len(found) == 0 {
			return last, false, err
		}
		for _, d := range found {
			for _, a := range d.Attempts {
				size += attemptSize + len(a.Response)
			}
		}
		last, limit = found[len(found)-1].ID, limit-len(found)
		if len(found) < n {
			return last, false, nil
		}
	}
	return last, false, nil
}

func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	q := edge.ReadQuery(r)
	zone, limit := q.Zone(), q.Limit(maxLimit, usualLimit)
	statuses, err := journal.CheckStatuses(q.Words("status"))
	q.Add(err)
	if err := q.Err(); err != nil {
		return err
	}
	t, err := s.target(r)
	if err != nil {
		return err
	}
	q.Filter("endpoint", strconv.FormatInt(int64(t.endpoint), 10))
	for _, status := range statuses {
		q.Filter("status", string(status))
	}
	var end id.Delivery
	var more bool
	return edge.List[journal.Delivery]{
		Cursors: s.Cursors, Reads: s.Reads, Organization: t.Organization, Name: "deliveries", Array: "deliveries", Limit: limit,
		Read: func(db *pg.DB, after page.Position, limit int, each func(journal.Delivery) error) error {
			if _, err := s.Endpoints.Find(r.Context(), t.Organization, t.endpoint); err != nil {
				return err
			}
			end, more, err = s.readLog(r, db, t, journal.Filter{Statuses: statuses}, deliveryAt(after), limit, each)
			return err
		},
		Position: func(d journal.Delivery) page.Position { return positionOf(d.ID) },
		Show:     func(d journal.Delivery) any { return deliveryOf(d, zone) },
		Reached:  func() (page.Position, bool) { return positionOf(end), more },
	}.Answer(w, r, q)
}

// A delivery's position is the two halves of its id.
func positionOf(d id.Delivery) page.Position {
	return page.Position{int64(binary.BigEndian.Uint64(d[:8])), int64(binary.BigEndian.Uint64(d[8:]))}
}

func deliveryAt(p page.Position) (d id.Delivery) {
	binary.BigEndian.PutUint64(d[:8], uint64(p.At(0)))
	binary.BigEndian.PutUint64(d[8:], uint64(p.At(1)))
	return d
}

// delivery reads a path that names a delivery.
func (s *Server) delivery(r *http.Request) (t target, delivery id.Delivery, err error) {
	if t, err = s.target(r); err == nil {
		delivery, err = id.ParseDelivery(edge.Param(r, "delivery"))
	}
	return t, delivery, err
}

func (s *Server) showDelivery(w http.ResponseWriter, r *http.Request) error {
	zone, err := zoneOf(r)
	if err != nil {
		return err
	}
	t, delivery, err := s.delivery(r)
	if err != nil {
		return err
	}
	d, err := journal.Find(r.Context(), s.Endpoints.DB, t.Organization, t.endpoint, delivery)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string `json:"status"`
		deliveryBody
	}{"ok", deliveryOf(d, zone)})
}

func (s *Server) resendDelivery(w http.ResponseWriter, r *http.Request) error {
	t, delivery, err := s.delivery(r)
	if err != nil {
		return err
	}
	if err := journal.Resend(r.Context(), s.Endpoints.DB, t.Actor, t.Organization, t.endpoint, delivery, s.Clock()); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusAccepted, sentBody{"ok", delivery})
}

type recoveryBody struct {
	ID         id.Recovery            `json:"id"`
	State      journal.RecoveryStatus `json:"recovery_status"`
	Since      *clock.Timestamp       `json:"since"`
	Until      *clock.Timestamp       `json:"until"`
	Total      int                    `json:"total"`
	PutBack    int                    `json:"put_back"`
	Waiting    int                    `json:"waiting"`
	CreatedAt  *clock.Timestamp       `json:"created_at"`
	FinishedAt *clock.Timestamp       `json:"finished_at"`
}

func recoveryOf(r journal.Recovery, zone *time.Location) recoveryBody {
	return recoveryBody{r.ID, r.Status, clock.Stamp(r.Since, zone), clock.Stamp(r.Until, zone), r.Total, r.PutBack, r.Waiting,
		clock.Stamp(r.CreatedAt, zone), clock.OptionalStamp(r.FinishedAt, zone)}
}

// recoverDeliveries takes since and, when it is not now, until.
func (s *Server) recoverDeliveries(w http.ResponseWriter, r *http.Request) error {
	b, zone, err := readBody(w, r)
	if err != nil {
		return err
	}
	b.Required("since")
	since, until := b.Timestamp("since"), b.Timestamp("until")
	if err := b.Err(); err != nil {
		return err
	}
	t, err := s.target(r)
	if err != nil {
		return err
	}
	now := s.Clock()
	if until == nil {
		until = &now
	}
	run, err := journal.Recover(r.Context(), s.Endpoints.DB, t.Actor, journal.Recovery{Organization: t.Organization, Endpoint: t.endpoint, Since: *since, Until: *until}, now)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusAccepted, struct {
		Status string `json:"status"`
		recoveryBody
		Warnings []string `json:"warnings,omitempty"`
	}{"ok", recoveryOf(run, zone), b.Unread()})
}

func (s *Server) listRecoveries(w http.ResponseWriter, r *http.Request) error {
	zone, err := zoneOf(r)
	if err != nil {
		return err
	}
	t, err := s.target(r)
	if err != nil {
		return err
	}
	if _, err := s.Endpoints.Find(r.Context(), t.Organization, t.endpoint); err != nil {
		return err
	}
	runs, err := journal.Recoveries(r.Context(), s.Endpoints.DB, t.Organization, t.endpoint)
	if err != nil {
		return err
	}
	body := struct {
		Status     string         `json:"status"`
		Count      int            `json:"count"`
		Recoveries []recoveryBody `json:"recoveries"`
	}{"ok", len(runs), make([]recoveryBody, len(runs))}
	for i, run := range runs {
		body.Recoveries[i] = recoveryOf(run, zone)
	}
	return edge.JSON(w, http.StatusOK, body)
}
