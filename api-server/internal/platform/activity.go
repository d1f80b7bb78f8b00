package platform

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

const (
	maxEvents    = 10_000
	maxEventsMiB = MaxBody
)

// ActivityCounter counts reported events by outcome; Server.Activity.
func ActivityCounter(reg prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_activity_events_total",
		Help: "Activity events reported, by outcome (accepted, late: accepted for a day that was closed already, or rejected)."},
		[]string{"outcome"})
	reg.MustRegister(c)
	return c
}

type receiptBody struct {
	Status     string          `json:"status"`
	Accepted   int             `json:"accepted"`
	Late       int             `json:"late"`
	LateDates  []clock.Date    `json:"late_dates"`
	Rejected   int             `json:"rejected"`
	Rejections []rejectionBody `json:"rejections"`
}

type rejectionBody struct {
	Index int    `json:"index"`
	Code  string `json:"code"`
	Field string `json:"field,omitempty"`
	Error string `json:"error"`
}

func (s *Server) recordActivity(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadLargeBody(w, r, maxEventsMiB)
	if err != nil {
		return err
	}
	records, err := b.Records("events", maxEvents)
	if err != nil {
		return err
	}
	reports, unread := readReports(records)
	receipt, err := activity.Record(r.Context(), s.DB, reports, s.Clock())
	if err != nil {
		return err
	}
	body := receiptBody{Status: "ok", Accepted: receipt.Accepted, Late: receipt.Late, LateDates: append([]clock.Date{}, receipt.LateDays...),
		Rejected: len(unread) + len(receipt.Refused), Rejections: merge(unread, receipt.Refused)}
	s.count(body)
	return edge.JSON(w, http.StatusOK, body)
}

// readReports reads the events; unread are those that cannot be.
func readReports(records []*edge.Body) (reports []activity.Report, unread []activity.Refusal) {
	reports = make([]activity.Report, 0, len(records))
	for i, b := range records {
		r, f := readReport(b)
		if f != nil {
			unread = append(unread, activity.Refusal{Index: i, Fault: f})
			continue
		}
		r.Index = i
		reports = append(reports, r)
	}
	return reports, unread
}

func readReport(b *edge.Body) (activity.Report, *fault.Error) {
	if f := b.FirstFault(); f != nil {
		return activity.Report{}, f
	}
	b.Required("organization", "user_id", "at", "kind")
	slug, user, at, kind := b.Text("organization", 100), b.Int("user_id", 1, 1<<53), b.Timestamp("at"), b.Text("kind", 100)
	if f := b.FirstFault(); f != nil {
		return activity.Report{}, f
	}
	return activity.Report{Organization: *slug, User: id.User(*user), Event: activity.Event{At: *at, Kind: activity.Kind(*kind)}}, nil
}

// merge brings two lists of refusals, each in the order of the call, into one.
func merge(a, b []activity.Refusal) []rejectionBody {
	all := make([]rejectionBody, 0, len(a)+len(b))
	for len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].Index < b[0].Index {
			all, a = append(all, rejectionOf(a[0])), a[1:]
		} else {
			all, b = append(all, rejectionOf(b[0])), b[1:]
		}
	}
	return all
}

func rejectionOf(r activity.Refusal) rejectionBody {
	return rejectionBody{r.Index, r.Fault.Code, r.Fault.Field, r.Fault.Message}
}

func (s *Server) count(b receiptBody) {
	s.Activity.WithLabelValues("accepted").Add(float64(b.Accepted - b.Late))
	s.Activity.WithLabelValues("late").Add(float64(b.Late))
	s.Activity.WithLabelValues("rejected").Add(float64(b.Rejected))
}

type compiledBody struct {
	Status string     `json:"status"`
	Date   clock.Date `json:"date"`
	Rows   int        `json:"rows"`
	Events int        `json:"events"`
}

func (s *Server) compileActivity(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	b.Required("date")
	day := b.Date("date")
	if err := b.Err(); err != nil {
		return err
	}
	c, err := activity.Compile(r.Context(), s.DB, *day, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, compiledBody{"ok", c.Date, c.Rows, c.Events})
}
