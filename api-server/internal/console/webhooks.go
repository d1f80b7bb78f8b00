package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// endpointForm is what a person chooses of a URL, as typed.
type endpointForm struct {
	URL, TimeZone string
	Events        []webhook.Type // the ticked ones; none means all
	Types         []webhook.Type // to tick
}

// Ticked says whether the box of the event is ticked.
func (f endpointForm) Ticked(t webhook.Type) bool {
	return len(f.Events) == 0 || slices.Contains(f.Events, t)
}

func (f endpointForm) settings() webhook.Settings {
	events := f.Events
	if len(events) == len(webhook.Types()) {
		events = nil // all, also those to come
	}
	return webhook.Settings{URL: &f.URL, Events: &events, TimeZone: &f.TimeZone}
}

func readForm(w http.ResponseWriter, r *http.Request) endpointForm {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	f := endpointForm{URL: strings.TrimSpace(r.PostFormValue("url")), TimeZone: strings.TrimSpace(r.PostFormValue("time_zone")), Types: webhook.Types()}
	if f.TimeZone == "" {
		f.TimeZone = "UTC"
	}
	for _, name := range r.PostForm["events"] {
		f.Events = append(f.Events, webhook.Type(name))
	}
	return f
}

type endpointsPage struct {
	frame
	Endpoints []webhook.Endpoint
	Backlogs  map[id.Endpoint]int
	Form      endpointForm
	Full      bool // no place is left
	Most      int
	Sources   []string // addresses that deliveries come from
}

func (s *Server) showEndpoints(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "webhooks", "Webhooks")
	if err != nil {
		return err
	}
	return s.listEndpoints(w, r, http.StatusOK, endpointsPage{frame: f, Form: endpointForm{TimeZone: "UTC", Types: webhook.Types()}})
}

func (s *Server) listEndpoints(w http.ResponseWriter, r *http.Request, status int, p endpointsPage) (err error) {
	if p.Endpoints, err = s.Webhooks.List(r.Context(), p.Here.Organization); err != nil {
		return err
	}
	ids := make([]id.Endpoint, len(p.Endpoints))
	for i, e := range p.Endpoints {
		ids[i] = e.ID
	}
	if p.Backlogs, err = s.Webhooks.Backlogs(r.Context(), ids...); err != nil {
		return err
	}
	p.Sources = s.EgressAddresses
	p.Most, p.Full = webhook.MaxEndpoints, len(p.Endpoints) >= webhook.MaxEndpoints
	return show(w, status, "webhooks.html", p)
}

func (s *Server) createEndpoint(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "webhooks", "Webhooks")
	if err != nil {
		return err
	}
	form := readForm(w, r)
	e, secret, err := s.Webhooks.Add(r.Context(), f.Person.Actor(), f.Here.Organization, form.settings(), s.Clock())
	if text, mine := typed(err); mine {
		p := endpointsPage{frame: f, Form: form}
		p.Fault = text
		return s.listEndpoints(w, r, http.StatusBadRequest, p)
	}
	if err != nil {
		return err
	}
	f.Note = "The URL is added and switched on."
	return s.oneEndpoint(w, r, http.StatusCreated, f, e, secret)
}

// typed says whether the error is about what the person typed, and its text.
func typed(err error) (string, bool) {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Conflict:
		return err.Error(), !fault.Has(err, "managed")
	case fault.Internal, fault.Unauthenticated, fault.Forbidden, fault.NotFound, fault.TooLarge, fault.Unavailable:
	}
	return "", false
}

type endpointPage struct {
	frame
	Endpoint webhook.Endpoint
	Backlog  int
	Running  []journal.Recovery // under way; one at most
	Form     endpointForm
	Chart    *hoursChart
	Secret   string     // shown once
	Overlap  *time.Time // until when the secret before signs, too
	Test     *testSent  // that the page was asked to show
}

// testSent is a ping that was sent by hand, with the attempt once it is over.
type testSent struct {
	Delivery journal.Delivery
	Attempt  *journal.Attempt // the latest; nil: there was none yet
	Late     bool             // no attempt was made in testPatience
}

// testPatience is how long an attempt of a ping may take, the receiver's 10 seconds included, before its page says
// that something is wrong on this side.
const testPatience = 30 * time.Second

// testBody is how many characters of the answer to a ping the page of the URL shows.
const testBody = 1000

// Beginning is the answer's body up to testBody characters.
func (t testSent) Beginning() string {
	body := []rune(strings.ToValidUTF8(string(t.Attempt.Response), "\uFFFD"))
	if len(body) > testBody {
		return string(body[:testBody]) + "…"
	}
	return string(body)
}

// readTest reads the ping that the query names. What is none of the URL leaves the page as it is.
func (s *Server) readTest(r *http.Request, p *endpointPage) error {
	which, err := id.ParseDelivery(r.URL.Query().Get("test"))
	if err != nil {
		return nil //nolint:nilerr // it names none
	}
	d, err := journal.Find(r.Context(), s.DB, p.Here.Organization, p.Endpoint.ID, which)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil || d.Type != webhook.Ping {
		return err
	}
	p.Test = &testSent{Delivery: d, Late: s.Clock().Sub(d.CreatedAt) > testPatience}
	if n := len(d.Attempts); n > 0 {
		p.Test.Attempt = &d.Attempts[n-1]
	} else if !p.Test.Late {
		p.Refresh = 2
	}
	return nil
}

func (s *Server) oneEndpoint(w http.ResponseWriter, r *http.Request, status int, f frame, e webhook.Endpoint, secret string) error {
	backlogs, err := s.Webhooks.Backlogs(r.Context(), e.ID)
	if err != nil {
		return err
	}
	recoveries, err := journal.Recoveries(r.Context(), s.DB, f.Here.Organization, e.ID)
	if err != nil {
		return err
	}
	span, now := lastDay, s.Clock()
	if r.URL.Query().Get("chart") == lastMonth.Name {
		span = lastMonth
	}
	hours, err := journal.Hours(r.Context(), s.DB, f.Here.Organization, span.first(now))
	if err != nil {
		return err
	}
	hours = slices.DeleteFunc(hours, func(h journal.Hour) bool { return h.Endpoint != e.ID })
	f.Title = e.URL
	p := endpointPage{frame: f, Endpoint: e, Backlog: backlogs[e.ID], Overlap: e.Overlap(now), Running: runningOf(recoveries), Chart: newHoursChart(span, now, hours), Secret: secret,
		Form: endpointForm{URL: e.URL, TimeZone: e.TimeZone, Events: e.Events, Types: webhook.Types()}}
	if err := s.readTest(r, &p); err != nil {
		return err
	}
	return show(w, status, "webhook.html", p)
}

// endpoint finds the frame and the URL that the path names.
func (s *Server) endpoint(r *http.Request) (frame, webhook.Endpoint, error) {
	f, err := s.frame(r, "webhooks", "Webhooks")
	if err != nil {
		return frame{}, webhook.Endpoint{}, err
	}
	which, err := edge.IDParam[id.Endpoint](r, "id")
	if err != nil {
		return frame{}, webhook.Endpoint{}, err
	}
	e, err := s.Webhooks.Find(r.Context(), f.Here.Organization, which)
	return f, e, err
}

func (s *Server) showEndpoint(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	return s.oneEndpoint(w, r, http.StatusOK, f, e, "")
}

func (s *Server) changeEndpoint(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	form := readForm(w, r)
	_, err = s.Webhooks.Change(r.Context(), f.Person.Actor(), f.Here.Organization, e.ID, form.settings(), s.Clock())
	if text, mine := typed(err); mine {
		f.Title, f.Fault = e.URL, text
		return show(w, http.StatusBadRequest, "webhook.html", endpointPage{frame: f, Endpoint: e, Form: form})
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, edgePath(e), "The settings are saved; they hold from the next attempt on.")
}

func (s *Server) rotateSecret(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	hours, _ := strconv.Atoi(r.PostFormValue("overlap_hours")) // none: 0
	e, secret, err := s.Webhooks.Rotate(r.Context(), f.Person.Actor(), f.Here.Organization, e.ID, "", time.Duration(hours)*time.Hour, s.Clock())
	if err != nil {
		return err
	}
	f.Note = "The new secret signs from the very next attempt on. The old one is worth nothing any more."
	if hours > 0 {
		f.Note = "The new secret signs from the very next attempt on, and the old one beside it for a while."
	}
	return s.oneEndpoint(w, r, http.StatusOK, f, e, secret)
}

func (s *Server) sendTest(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	sent, err := s.Webhooks.SendTest(r.Context(), f.Person.Actor(), f.Here.Organization, e.ID, s.Clock())
	if err != nil {
		return err
	}
	return s.back(w, r, f, edgePath(e)+"?test="+sent.String(), "")
}

func (s *Server) turnOn(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	if _, err := s.Webhooks.TurnOn(r.Context(), f.Person.Actor(), f.Here.Organization, e.ID, s.Clock()); err != nil {
		return err
	}
	return s.back(w, r, f, edgePath(e), "The URL is on: what happens from now on is delivered.")
}

func (s *Server) deleteEndpoint(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	if err := s.Webhooks.Remove(r.Context(), f.Person.Actor(), f.Here.Organization, e.ID, s.Clock()); err != nil {
		return err
	}
	return s.back(w, r, f, "/webhooks/", "The URL "+e.URL+" is deleted.")
}

func edgePath(e webhook.Endpoint) string { return "/webhooks/" + formatID(e.ID) + "/" }
