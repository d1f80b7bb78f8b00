package grade

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Backlog measures the marks that are due when it is scraped, for 2 s at most.
type Backlog struct {
	DB    *pg.DB
	Clock clock.Clock
	Log   *slog.Logger
}

var (
	dueDesc = prometheus.NewDesc("registrar_lms_marks_due", "Marks for LMSes that are due and in no sender's hand.", nil, nil)
	ageDesc = prometheus.NewDesc("registrar_lms_marks_oldest_due_seconds", "How long the oldest due mark for an LMS has waited; 0 where none does.", nil, nil)
)

// Describe implements prometheus.Collector.
func (*Backlog) Describe(out chan<- *prometheus.Desc) {
	out <- dueDesc
	out <- ageDesc
}

// Collect implements prometheus.Collector; it leaves out what cannot be read.
func (b *Backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	due, oldest, err := lms.Measure(ctx, b.DB, b.Clock())
	if err != nil {
		b.Log.WarnContext(ctx, "the due marks for LMSes could not be counted", "error", err)
		return
	}
	out <- prometheus.MustNewConstMetric(dueDesc, prometheus.GaugeValue, float64(due))
	out <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, oldest.Seconds())
}
