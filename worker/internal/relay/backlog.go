package relay

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Backlog measures all deliveries when it is scraped, for 2 s at most.
type Backlog struct {
	DB    *pg.DB
	Clock clock.Clock
	Log   *slog.Logger
}

var (
	backlogDesc = prometheus.NewDesc("registrar_webhook_backlog_deliveries",
		"Deliveries that wait, by organization; the fifty largest, and _other for the rest.", []string{"organization"}, nil)
	backlogAge = prometheus.NewDesc("registrar_webhook_backlog_oldest_seconds",
		"Age of the oldest event that waits, by organization.", []string{"organization"}, nil)
	inFlightDesc = prometheus.NewDesc("registrar_webhook_in_flight_deliveries",
		"Deliveries that are handed to senders.", nil, nil)
	urlsDesc = prometheus.NewDesc("registrar_webhook_urls",
		"Receiver URLs by state: on, probing (on, and failing) or off.", []string{"state"}, nil)
	allowanceDesc = prometheus.NewDesc("registrar_webhook_allowance_mean",
		"How many deliveries a switched-on URL may have in flight, on average.", nil, nil)
	unaccountedDesc = prometheus.NewDesc("registrar_webhook_unaccounted_deliveries",
		"Deliveries that are neither delivered, waiting, under way, declined, exhausted, skipped, superseded nor cancelled; always 0.", nil, nil)
)

// Describe implements prometheus.Collector.
func (b *Backlog) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{backlogDesc, backlogAge, inFlightDesc, urlsDesc, allowanceDesc, unaccountedDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (b *Backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	m, err := journal.Measure(ctx, b.DB, b.Clock())
	if err != nil {
		b.Log.WarnContext(ctx, "the webhook backlog could not be measured", "error", err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, o := range m.Backlogs {
		gauge(backlogDesc, float64(o.Waiting), o.Organization)
		gauge(backlogAge, o.Oldest.Seconds(), o.Organization)
	}
	if m.Others.Waiting > 0 {
		gauge(backlogDesc, float64(m.Others.Waiting), "_other")
		gauge(backlogAge, m.Others.Oldest.Seconds(), "_other")
	}
	gauge(inFlightDesc, float64(m.InFlight))
	gauge(urlsDesc, float64(m.On-m.Probing), "on")
	gauge(urlsDesc, float64(m.Probing), "probing")
	gauge(urlsDesc, float64(m.Off), "off")
	gauge(allowanceDesc, m.Allowance)
	gauge(unaccountedDesc, float64(m.Unaccounted))
}
