package deliver

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
)

// Metrics count attempts.
type Metrics struct {
	attempts *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	receipt  prometheus.Histogram
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_webhook_attempts_total",
			Help: "Recorded delivery attempts by verdict (delivered, retry, declined) and cause."}, []string{"verdict", "cause"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "registrar_webhook_attempt_duration_seconds",
			Help: "Time from the name lookup to the last byte of the answer.", Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"verdict"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "registrar_webhook_attempts_in_flight",
			Help: "Attempts under way in this process."}),
	}
	m.receipt = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "registrar_webhook_commit_to_receipt_seconds",
		Help:    "Time from an event to its receiver's answer, where the first attempt was accepted.",
		Buckets: []float64{.0025, .005, .01, .015, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}})
	reg.MustRegister(m.attempts, m.duration, m.inFlight, m.receipt)
	return m
}

func (m *Metrics) began() { m.inFlight.Inc() }
func (m *Metrics) ended() { m.inFlight.Dec() }

func (m *Metrics) observe(outcomes []webhook.Outcome) {
	for _, o := range outcomes {
		m.attempts.WithLabelValues(string(o.Verdict), o.Cause).Inc()
		if o.Number == 1 && o.Verdict == webhook.Delivered {
			m.receipt.Observe(max(0, o.StartedAt.Add(o.Duration).Sub(o.EventAt).Seconds()))
		}
		m.duration.WithLabelValues(string(o.Verdict)).Observe(o.Duration.Seconds())
	}
}
