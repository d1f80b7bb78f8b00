package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// deliveriesAPage is how many deliveries a page lists.
const deliveriesAPage = 50

type deliveriesPage struct {
	frame
	Endpoint   webhook.Endpoint
	Deliveries []journal.Delivery
	Statuses   []webhook.Status // to choose from
	Chosen     webhook.Status   // "": all
	Older      string           // where the next page begins; "": there is none
	Recoveries []journal.Recovery
	Running    []journal.Recovery // of these; one at most
	Since      string             // of the form, when it comes back
	Until      string
}

func (s *Server) showDeliveries(w http.ResponseWriter, r *http.Request) error {
	f, e, err := s.endpoint(r)
	if err != nil {
		return err
	}
	return s.listDeliveries(w, r, http.StatusOK, deliveriesPage{frame: f, Endpoint: e})
}

func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request, status int, p deliveriesPage) error {
	p.Title, p.Statuses = "Deliveries to "+p.Endpoint.URL, journal.Statuses()
	var filter journal.Filter
	if chosen := webhook.Status(r.URL.Query().Get("status")); slices.Contains(p.Statuses, chosen) {
		p.Chosen, filter.Statuses = chosen, []webhook.Status{chosen}
	}
	before, err := id.ParseDelivery(r.URL.Query().Get("before"))
	if err != nil {
		before = id.Delivery{} // the latest
	}
	org := p.Here.Organization
	list, err := journal.List(r.Context(), s.DB, org, p.Endpoint.ID, filter, before, deliveriesAPage+1)
	if err != nil {
		return err
	}
	if p.Deliveries = list; len(list) > deliveriesAPage {
		p.Deliveries = list[:deliveriesAPage]
		p.Older = list[deliveriesAPage-1].ID.String()
	}
	if p.Recoveries, err = journal.Recoveries(r.Context(), s.DB, org, p.Endpoint.ID); err != nil {
		return err
	}
	p.Running = runningOf(p.Recoveries)
	return show(w, status, "deliveries.html", p)
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
	p.About, p.Timeline, err = s.Explains.Delivery(r.Context(), f.Here.Organization, which, explain.Position{}, timelineAPage)
	return p, err
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
