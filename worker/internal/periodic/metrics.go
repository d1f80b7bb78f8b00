package periodic

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Late measures held roster runs, overdue test plans and new epochs of lists when it is scraped, for 2 s at most.
type Late struct {
	DB    *pg.DB
	Clock clock.Clock
	Log   *slog.Logger
}

var (
	heldDesc = prometheus.NewDesc("registrar_roster_held_runs",
		"Roster runs that a guard holds until a person approves or discards them.", nil, nil)
	heldAge = prometheus.NewDesc("registrar_roster_oldest_held_seconds",
		"How long the oldest held roster run has waited; 0 where none does.", nil, nil)
	lmsFailing = prometheus.NewDesc("registrar_lms_rosters_failing",
		"Courses of LMSes whose people could not be pulled as a roster, however often it was tried.", nil, nil)
	plansDue = prometheus.NewDesc("registrar_plans_due",
		"Test plans whose next decision is due.", nil, nil)
	plansAge = prometheus.NewDesc("registrar_plans_oldest_due_seconds",
		"How long the oldest due decision of a test plan has waited; 0 where none does.", nil, nil)
	plansFailing = prometheus.NewDesc("registrar_plans_failing",
		"Test plans that could not be decided and are tried again later.", nil, nil)
	epochsBegun = prometheus.NewDesc("registrar_list_epochs_begun",
		"Lists of organizations that began an epoch in the last hour: a standby took over, or the database came back with an earlier state.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *Late) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{heldDesc, heldAge, lmsFailing, plansDue, plansAge, plansFailing, epochsBegun} {
		out <- d
	}
}

// Collect implements prometheus.Collector; it leaves out what cannot be read.
func (l *Late) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64) { out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	if runs, err := roster.Measure(ctx, l.DB, l.Clock()); err == nil {
		gauge(heldDesc, float64(runs.Held))
		gauge(heldAge, runs.Oldest.Seconds())
	} else {
		l.Log.WarnContext(ctx, "the held roster runs could not be counted", "error", err)
	}
	if failing, err := lms.FailingPulls(ctx, l.DB); err == nil {
		gauge(lmsFailing, float64(failing))
	} else {
		l.Log.WarnContext(ctx, "the failing rosters of LMSes could not be counted", "error", err)
	}
	if plans, err := plan.Measure(ctx, l.DB, l.Clock()); err == nil {
		gauge(plansDue, float64(plans.Due))
		gauge(plansAge, plans.Oldest.Seconds())
		gauge(plansFailing, float64(plans.Failing))
	} else {
		l.Log.WarnContext(ctx, "the due test plans could not be counted", "error", err)
	}
	if epochs, err := page.EpochsSince(ctx, l.DB, l.Clock().Add(-time.Hour)); err == nil {
		gauge(epochsBegun, float64(epochs))
	} else {
		l.Log.WarnContext(ctx, "the new epochs of lists could not be counted", "error", err)
	}
}
