package queue

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Metrics count what the servers of a process run. A nil *Metrics counts nothing.
type Metrics struct {
	tasks    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	wait     *prometheus.HistogramVec
}

// NewMetrics registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	m := &Metrics{
		tasks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_queue_tasks_total",
			Help: "Tasks run, by queue, kind and outcome (done or error)."}, []string{"queue", "kind", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "registrar_queue_task_duration_seconds",
			Help: "How long a task's handler ran.", Buckets: buckets}, []string{"queue", "kind"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "registrar_queue_wait_seconds",
			Help: "How long a task waited in the queue before it was run.", Buckets: buckets}, []string{"queue"}),
	}
	reg.MustRegister(m.tasks, m.duration, m.wait)
	return m
}

func (m *Metrics) observe(q Name, kind task.Kind, enqueued, began time.Time, err error) {
	if m == nil {
		return
	}
	outcome := "done"
	if err != nil {
		outcome = "error"
	}
	m.tasks.WithLabelValues(string(q), string(kind), outcome).Inc()
	m.duration.WithLabelValues(string(q), string(kind)).Observe(time.Since(began).Seconds())
	if !enqueued.IsZero() {
		m.wait.WithLabelValues(string(q)).Observe(max(0, began.Sub(enqueued).Seconds()))
	}
}

var (
	depthDesc = prometheus.NewDesc("registrar_queue_tasks",
		"Tasks in a queue by state.", []string{"queue", "state"}, nil)
	oldestDesc = prometheus.NewDesc("registrar_queue_oldest_pending_seconds",
		"How long the oldest pending task of a queue has waited.", []string{"queue"}, nil)
	upDesc = prometheus.NewDesc("registrar_redis_up",
		"Whether Redis answered when the queues were measured.", nil, nil)
)

// Collector measures the queues each time it is scraped, in two pipelined round trips of
// at most 2 s in all.
func Collector(rdb redis.UniversalClient, queues ...Name) prometheus.Collector {
	return collector{rdb, queues}
}

type collector struct {
	rdb    redis.UniversalClient
	queues []Name
}

func (c collector) Describe(out chan<- *prometheus.Desc) {
	out <- depthDesc
	out <- oldestDesc
	out <- upDesc
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	all, err := depths(ctx, c.rdb, c.queues)
	if err != nil {
		gauge(upDesc, 0)
		return
	}
	gauge(upDesc, 1)
	for q, d := range all {
		gauge(depthDesc, float64(d.Pending), string(q), string(Pending))
		gauge(depthDesc, float64(d.Active), string(q), string(Active))
		gauge(depthDesc, float64(d.Archived), string(q), string(Archived))
		gauge(oldestDesc, d.Oldest.Seconds(), string(q))
	}
}
