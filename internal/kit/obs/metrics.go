package obs

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry makes a program's registry, with the metrics of the Go runtime, the
// process and the build. Metrics of Registrar itself begin with registrar_.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return reg
}

// PoolMetrics registers the state of a connection pool, read when it is scraped.
func PoolMetrics(reg prometheus.Registerer, pool interface{ Stat() *pgxpool.Stat }) {
	reg.MustRegister(poolCollector{pool})
}

type poolCollector struct {
	pool interface{ Stat() *pgxpool.Stat }
}

var (
	poolConnections = prometheus.NewDesc("registrar_postgres_pool_connections",
		"Connections of the PostgreSQL pool by state.", []string{"state"}, nil)
	poolMax = prometheus.NewDesc("registrar_postgres_pool_max_connections",
		"The most connections that the PostgreSQL pool opens.", nil, nil)
	poolAcquires = prometheus.NewDesc("registrar_postgres_pool_acquires_total",
		"Connections handed out by the PostgreSQL pool.", nil, nil)
	poolWaits = prometheus.NewDesc("registrar_postgres_pool_waited_acquires_total",
		"Connections that a caller had to wait for because none was idle.", nil, nil)
	poolCanceled = prometheus.NewDesc("registrar_postgres_pool_canceled_acquires_total",
		"Callers that gave up waiting for a connection.", nil, nil)
	poolWaitSeconds = prometheus.NewDesc("registrar_postgres_pool_acquire_seconds_total",
		"Time spent on getting connections.", nil, nil)
)

func (c poolCollector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

func (c poolCollector) Collect(out chan<- prometheus.Metric) {
	s := c.pool.Stat()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	gauge(poolConnections, float64(s.AcquiredConns()), "acquired")
	gauge(poolConnections, float64(s.IdleConns()), "idle")
	gauge(poolConnections, float64(s.ConstructingConns()), "constructing")
	gauge(poolMax, float64(s.MaxConns()))
	counter(poolAcquires, float64(s.AcquireCount()))
	counter(poolWaits, float64(s.EmptyAcquireCount()))
	counter(poolCanceled, float64(s.CanceledAcquireCount()))
	counter(poolWaitSeconds, s.AcquireDuration().Seconds())
}
