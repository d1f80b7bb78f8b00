package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/history"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// deliveriesAPage is how many deliveries a page lists.
const deliveriesAPage = 50

type deliveriesPage struct {
	frame
	Endpoint   webhook.Endpoint
	Deliveries []journal.Delivery
	Statuses   []webhook.Status // to choose from, as Types and Causes
	Types      []webhook.Type
	Causes     []string
	Chosen     deliveryChoice
	Older      string // where the next page begins; "": there is none
	Looked     bool   // the page found fewer than it has room for, and goes on all the same
	Recoveries []journal.Recovery
	Running    []journal.Recovery // of these; one at most
	Since      string             // of the form, when it comes back
	Until      string
	Now        time.Time
}

// deliveryChoice is what the page's form narrows the list by; each may be "".
type deliveryChoice struct {
	Status  webhook.Status
	Type    webhook.Type
	Day     string // in Zone
	Zone    string
	Student string // the address
	Cause   string
}

// Any says whether the list is narrowed.
func (c deliveryChoice) Any() bool {
	return c.Status != "" || c.Type != "" || c.Day != "" || c.Student != "" || c.Cause != ""
}

// Query is the form in an address.
func (c deliveryChoice) Query() template.URL {
	q := url.Values{}
	for name, value := range map[string]string{"status": string(c.Status), "event": string(c.Type), "day": c.Day, "student": c.Student, "cause": c.Cause} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if c.Day != "" {
		q.Set("zone", c.Zone)
	}
	return template.URL(q.Encode()) //nolint:gosec // escaped by Encode
}

// chooseDeliveries reads the form; what is no choice is any.
func chooseDeliveries(said url.Values) (c deliveryChoice, f journal.Filter) {
	c.Student, c.Zone = searchText(said.Get("student")), "UTC"
	if s := webhook.Status(said.Get("status")); slices.Contains(journal.Statuses(), s) {
		c.Status, f.Statuses = s, []webhook.Status{s}
	}
	if t := webhook.Type(said.Get("event")); slices.Contains(deliveredTypes(), t) {
		c.Type, f.Type = t, t
	}
	if cause := strings.TrimSpace(said.Get("cause")); len(cause) <= maxCause {
		c.Cause, f.Cause = cause, cause
		if _, err := strconv.Atoi(cause); err == nil {
			f.Cause = "http_" + cause
		}
	}
	day, err := clock.ParseDate(said.Get("day"))
	zone, err2 := clock.Zone("zone", cmp.Or(said.Get("zone"), "UTC"))
	if err == nil && err2 == nil {
		c.Day, c.Zone = day.String(), zone.String()
		f.Since, f.Until = clock.DayStart(day, zone), clock.DayStart(day.AddDays(1), zone)
	}
	return c, f
}

// maxCause is in bytes.
const maxCause = 50

func deliveredTypes() []webhook.Type { return append(webhook.Types(), webhook.Ping) }

func (s *Server) showDeliveries(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	return s.listDeliveries(w, r, http.StatusOK, deliveriesPage{frame: f, Endpoint: e})
}

func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request, status int, p deliveriesPage) error {
	p.Title, p.Now = "Deliveries to "+p.Endpoint.URL, s.Clock()
	p.Statuses, p.Types, p.Causes = journal.Statuses(), deliveredTypes(), webhook.FailureCauses()
	var filter journal.Filter
	p.Chosen, filter = chooseDeliveries(r.URL.Query())
	err := s.Reads.Do(r.Context(), func(db *pg.DB) (err error) {
		p.Deliveries, p.Older, p.Looked = nil, "", false
		if err = findDeliveries(r.Context(), db, &p, filter, r.URL.Query().Get("before")); err != nil {
			return err
		}
		p.Recoveries, err = journal.Recoveries(r.Context(), db, p.Here.Organization, p.Endpoint.ID)
		return err
	})
	if err != nil {
		return err
	}
	p.Running = runningOf(p.Recoveries)
	return show(w, status, "deliveries.html", p)
}

// eventsOfStudent is how many of a student's events a page of deliveries goes through.
const eventsOfStudent = 50

func findDeliveries(ctx context.Context, db *pg.DB, p *deliveriesPage, f journal.Filter, before string) error {
	if p.Chosen.Student != "" {
		return findDeliveriesAbout(ctx, db, p, f, before)
	}
	at, err := id.ParseDelivery(before)
	if err != nil {
		at = id.Delivery{} // the latest
	}
	var next id.Delivery
	p.Deliveries, next, err = journal.Look(ctx, db, p.Here.Organization, p.Endpoint.ID, f, at, deliveriesAPage)
	if next != (id.Delivery{}) {
		p.Older, p.Looked = next.String(), len(p.Deliveries) < deliveriesAPage
	}
	return err
}

// findDeliveriesAbout goes through the events about a student from before on, a time in microseconds.
func findDeliveriesAbout(ctx context.Context, db *pg.DB, p *deliveriesPage, f journal.Filter, before string) error {
	who, err := student.Resolve(ctx, db, p.Here.Organization, student.Ref{Email: student.Email(strings.ToLower(p.Chosen.Student))})
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	until := p.Now
	if at := parseTimelinePosition(before + "-0").At; !at.IsZero() {
		until = at
	}
	if !f.Until.IsZero() && f.Until.Before(until) {
		until = f.Until.Add(-time.Microsecond)
	}
	events, err := history.Events(ctx, db, p.Here.Organization, who.ID, until, eventsOfStudent)
	if err != nil {
		return err
	}
	var next time.Time
	if len(events) == eventsOfStudent {
		events, next = cutMoment(events)
	}
	ids := make([]id.Event, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	of, err := history.Deliveries(ctx, db, p.Here.Organization, ids)
	if err != nil {
		return err
	}
	var kept []id.Delivery
	for _, e := range events {
		if f.Type != "" && e.Type != f.Type || e.CreatedAt.Before(f.Since) {
			continue
		}
		for _, d := range of[e.ID] {
			if d.Endpoint == p.Endpoint.ID && (p.Chosen.Status == "" || d.Status == p.Chosen.Status) && (f.Cause == "" || lastCause(d) == f.Cause) {
				kept = append(kept, d.ID)
			}
		}
	}
	if !next.IsZero() && !next.Before(f.Since) {
		p.Older, p.Looked = strconv.FormatInt(next.UnixMicro(), 10), len(kept) < eventsOfStudent
	}
	p.Deliveries, err = journal.Some(ctx, db, p.Here.Organization, p.Endpoint.ID, kept)
	return err
}

// cutMoment leaves the events of the last moment to the next page, which is from that moment on: it may have more of them.
func cutMoment(events []history.Event) ([]history.Event, time.Time) {
	last := events[len(events)-1].CreatedAt
	for i := len(events); i > 0; i-- {
		if !events[i-1].CreatedAt.Equal(last) {
			return events[:i], last
		}
	}
	return events, last.Add(-time.Microsecond)
}

func lastCause(d history.Delivery) string {
	if n := len(d.Answers); n > 0 {
		return d.Answers[n-1].Cause
	}
	return ""
}

// runningOf picks the recovery that is under way, if one is.
func runningOf(all []journal.Recovery) (running []journal.Recovery) {
	for _, r := range all {
		if r.Status == journal.RecoveryRunning {
			running = append(running, r)
		}
	}
	return running
}

type deliveryPage struct {
	frame
	Endpoint webhook.Endpoint
	Delivery journal.Delivery
	About    *student.Account // whom the event is about; nil: nobody who is a student now
	Timeline []explain.Entry
	Payload  string // the event's data, indented; "": it was erased or is not kept
	Now      time.Time
	Live     bool // an attempt is under way, or begins at once
}

// delivery finds what the path names.
func (s *Server) delivery(r *http.Request) (deliveryPage, error) {
	f, e, err := s.endpoint(r)
	if err != nil {
		return deliveryPage{}, err
	}
	which, err := id.ParseDelivery(edge.Param(r, "delivery"))
	if err != nil {
		return deliveryPage{}, err
	}
	f.Title = "Delivery " + which.String()
	p := deliveryPage{frame: f, Endpoint: e}
	if p.Delivery, err = journal.Find(r.Context(), s.DB, f.Here.Organization, e.ID, which); err != nil {
		return p, err
	}
	p.Now = s.Clock()
	due := p.Delivery.DueAt
	if p.Live = p.Delivery.Status == webhook.StatusInFlight ||
		p.Delivery.Status == webhook.StatusWaiting && due != nil && !due.After(p.Now) && p.Now.Sub(*due) < testPatience; p.Live {
		p.Refresh = 2
	}
	if p.Payload, err = s.payload(r.Context(), f.Here.Organization, p.Delivery.Event); err != nil {
		return p, err
	}
	p.About, p.Timeline, err = s.Explains.Delivery(r.Context(), f.Here.Organization, which, explain.Position{}, timelineAPage)
	return p, err
}

// mostPayload is how much of an event's data a page shows, in bytes.
const mostPayload = 10_000

// payload is the event's data as people read it.
func (s *Server) payload(ctx context.Context, org id.Organization, event id.Event) (string, error) {
	e, err := history.Find(ctx, s.DB, org, event)
	if fault.KindOf(err) == fault.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, e.Data, "", "  "); err != nil {
		return "", err
	}
	if text.Len() > mostPayload {
		return strings.ToValidUTF8(string(text.Bytes()[:mostPayload]), "") + "…", nil
	}
	return text.String(), nil
}

func (s *Server) showDelivery(w http.ResponseWriter, r *http.Request) error {
	p, err := s.delivery(r)
	if err != nil {
		return err
	}
	return show(w, http.StatusOK, "delivery.html", p)
}

func (s *Server) resend(w http.ResponseWriter, r *http.Request) error {
	p, err := s.delivery(r)
	if err != nil {
		return err
	}
	err = journal.Resend(r.Context(), s.DB, p.Person.Actor(), p.Here.Organization, p.Endpoint.ID, p.Delivery.ID, s.Clock())
	if text, mine := typed(err); mine {
		p.Fault = text
		return show(w, http.StatusConflict, "delivery.html", p)
	}
	if err != nil {
		return err
	}
	return s.back(w, r, p.frame, edgePath(p.Endpoint)+"deliveries/"+p.Delivery.ID.String()+"/",
		"The event is sent again; the new attempt shows below once it is over.")
}

// formTime is how a datetime-local field sends an instant.
const formTime = "2006-01-02T15:04"

func (s *Server) recoverEvents(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	p := deliveriesPage{frame: f, Endpoint: e, Since: r.PostFormValue("since"), Until: r.PostFormValue("until")}
	since, until, text := readSpan(p.Since, p.Until, r.PostFormValue("zone"), s.Clock())
	if text == "" {
		asked := journal.Recovery{Organization: f.Here.Organization, Endpoint: e.ID, Since: since, Until: until}
		_, err = journal.Recover(r.Context(), s.DB, f.Person.Actor(), asked, s.Clock())
		text, _ = typed(err)
	}
	if text != "" {
		p.Fault = text
		return s.listDeliveries(w, r, http.StatusBadRequest, p)
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, edgePath(e)+"deliveries/", "The recovery has begun: undelivered events leave again in their order.")
}

// readSpan reads the form's two times, which are in the form's zone: the viewer's, or UTC
// from a browser without scripts. Without an end it ends now. text says what is wrong, ""
// when nothing is.
func readSpan(sinceText, untilText, zone string, now time.Time) (since, until time.Time, text string) {
	if zone == "" {
		zone = "UTC"
	}
	at, err := clock.Zone("zone", zone)
	if err != nil {
		return since, until, "The time zone of your browser is not known here."
	}
	since, err = time.ParseInLocation(formTime, strings.TrimSpace(sinceText), at)
	if err != nil {
		return since, until, "Say since when: a day and a time, such as 2026-11-21T08:00."
	}
	if until = now; strings.TrimSpace(untilText) != "" {
		if until, err = time.ParseInLocation(formTime, strings.TrimSpace(untilText), at); err != nil {
			return since, until, "The end is no day and time, such as 2026-11-21T09:00. Leave it empty for now."
		}
	}
	return since.UTC(), until.UTC(), ""
}
