package relay

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/kit/outbox"
)

var (
	outboxPass   = passDesc("outbox")
	webhooksPass = passDesc("webhooks")
	outboxDue    = prometheus.NewDesc("registrar_outbox_due",
		"Tasks that are due and not on the run queue.", []string{"kind"}, nil)
	outboxOldest = prometheus.NewDesc("registrar_outbox_oldest_due_seconds",
		"How long the oldest due task has been waiting.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (o *Outbox) Describe(out chan<- *prometheus.Desc) {
	out <- outboxPass
	out <- outboxDue
	out <- outboxOldest
}

// Collect measures the outbox's lag when it is scraped; without PostgreSQL there is none.
func (o *Outbox) Collect(out chan<- prometheus.Metric) {
	out <- o.passes.since(outboxPass)
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

// Describe implements prometheus.Collector.
func (w *Webhooks) Describe(out chan<- *prometheus.Desc) { out <- webhooksPass }

// Collect implements prometheus.Collector.
func (w *Webhooks) Collect(out chan<- prometheus.Metric) { out <- w.passes.since(webhooksPass) }

func passDesc(relay string) *prometheus.Desc {
	return prometheus.NewDesc("registrar_relay_last_pass_seconds",
		"How long ago this worker's relay last relayed all that was due to it. One worker relays the outbox, so the least of all "+
			"counts; each relays its share of the webhooks, so the most counts.",
		nil, prometheus.Labels{"relay": relay})
}

// passes is when a relay last relayed all that it could. It uses the process's monotonic clock,
// which nobody can set.
type passes struct{ last atomic.Pointer[time.Time] }

var started = time.Now()

func (p *passes) done() {
	now := time.Now()
	p.last.Store(&now)
}

// since counts from the program's start in a worker that never led.
func (p *passes) since(desc *prometheus.Desc) prometheus.Metric {
	last := p.last.Load()
	if last == nil {
		last = &started
	}
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, time.Since(*last).Seconds())
}
