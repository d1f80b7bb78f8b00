package relay

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/kit/outbox"
)

var (
	outboxDue = prometheus.NewDesc("registrar_outbox_due",
		"Owed tasks whose time has come and that are not on the run queue.", []string{"kind"}, nil)
	outboxOldest = prometheus.NewDesc("registrar_outbox_oldest_due_seconds",
		"How long the oldest due task has been waiting.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (o *Outbox) Describe(out chan<- *prometheus.Desc) {
	out <- outboxDue
	out <- outboxOldest
}

// Collect measures the outbox's lag when it is scraped; without PostgreSQL there is none.
func (o *Outbox) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	lags, err := outbox.Measure(ctx, o.DB, o.Clock())
	if err != nil {
		o.Log.WarnContext(ctx, "the outbox's lag could not be measured", "error", err)
		return
	}
	for kind := range o.Kinds {
		lag := lags[kind]
		out <- prometheus.MustNewConstMetric(outboxDue, prometheus.GaugeValue, float64(lag.Due), string(kind))
		out <- prometheus.MustNewConstMetric(outboxOldest, prometheus.GaugeValue, lag.Oldest.Seconds(), string(kind))
	}
}
