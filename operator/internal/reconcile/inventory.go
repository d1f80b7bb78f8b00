package reconcile

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inventory counts the resources of a kind by what their conditions say. Every replica counts, from its cache.
type inventory[T resource] struct {
	*kind[T]

	resources *prometheus.Desc
}

func newInventory[T resource](k *kind[T]) inventory[T] {
	return inventory[T]{k, prometheus.NewDesc("registrar_operator_resources",
		"Resources that the operator manages, by kind, and by what each of their conditions says. Those without a status have the condition \"\".",
		[]string{"condition", "status", "reason"}, prometheus.Labels{"kind": k.name})}
}

// Describe implements prometheus.Collector.
func (i inventory[T]) Describe(descs chan<- *prometheus.Desc) { descs <- i.resources }

// countWithin is how long a scrape waits for a cache that is not filled yet.
const countWithin = time.Second

// Collect implements prometheus.Collector.
func (i inventory[T]) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	found := i.list()
	if err := i.Client.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
		return // the cache is not filled yet
	}
	type said struct{ condition, status, reason string }
	counts := map[said]int{}
	for _, o := range items[T](found) {
		if !i.ours(o) || !i.visible(ctx, o) {
			continue
		}
		conditions := conditionsOf(o)
		if len(conditions) == 0 {
			counts[said{}]++
		}
		for _, c := range conditions {
			counts[said{c.Type, string(c.Status), c.Reason}]++
		}
	}
	for s, n := range counts {
		metrics <- prometheus.MustNewConstMetric(i.resources, prometheus.GaugeValue, float64(n), s.condition, s.status, s.reason)
	}
}
