package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
)

// sampled is the width of the picture's steps.
const sampled = 5 * time.Second

// timeline is what the picture of a run shows.
type timeline struct {
	calls, retries []time.Time
	backlog        []sample
	delays         []sample // of deliveries, in seconds, when their calls were answered
	faults         []span
}

type sample struct {
	at    time.Time
	value float64
}

type span struct {
	kind     string
	from, to time.Time
}

func (t *timeline) called()  { t.calls = append(t.calls, time.Now()) }
func (t *timeline) retried() { t.retries = append(t.retries, time.Now()) }

func (t *timeline) waits(n int) { t.backlog = append(t.backlog, sample{time.Now(), float64(n)}) }

func (t *timeline) broke(kind string, from, to time.Time) {
	t.faults = append(t.faults, span{kind, from, to})
}

// arrived notes an event that a healthy URL got, and when the call was answered that caused it.
func (r *report) arrived(answered, at time.Time) {
	r.times.delays = append(r.times.delays, sample{answered, max(0, at.Sub(answered)).Seconds()})
}

// backlog is how many deliveries are pending to URLs that are well.
func (s *site) backlog(ctx context.Context) (n int, err error) {
	err = s.db.QueryRow(ctx, `
		SELECT count(*) FROM webhook_queue q JOIN webhook_endpoints e ON e.id = q.endpoint_id WHERE e.url LIKE '%/healthy'`).Scan(&n)
	return n, err
}

func (s *site) redisName() string {
	if s.sentinels != nil {
		return "a pair of Redis under three Sentinels"
	}
	return "one Redis"
}

// draw shows the run over its minutes.
func (t *timeline) draw(began time.Time) (string, error) {
	last := began
	for _, at := range t.calls {
		if at.After(last) {
			last = at
		}
	}
	steps := int(last.Sub(began)/sampled) + 1
	in := func(at time.Time) int { return min(max(0, int(at.Sub(began)/sampled)), steps-1) }
	perSecond := func(times []time.Time) []float64 {
		values := make([]float64, steps)
		for _, at := range times {
			values[in(at)] += 1 / sampled.Seconds()
		}
		return values
	}
	each := func(samples []sample, of func(sorted []float64) float64) []float64 {
		values, all := make([]float64, steps), make([][]float64, steps)
		for _, s := range samples {
			all[in(s.at)] = append(all[in(s.at)], s.value)
		}
		for i := range all {
			if values[i] = math.NaN(); len(all[i]) > 0 {
				slices.Sort(all[i])
				values[i] = of(all[i])
			}
		}
		return values
	}
	quantile := func(q float64) func([]float64) float64 {
		return func(sorted []float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
	}
	var rows []chart.Spans
	for _, f := range t.faults {
		i := slices.IndexFunc(rows, func(r chart.Spans) bool { return r.Name == f.kind })
		if i < 0 {
			rows, i = append(rows, chart.Spans{Name: f.kind}), len(rows)
		}
		rows[i].Parts = append(rows[i].Parts, [2]float64{f.from.Sub(began).Minutes(), f.to.Sub(began).Minutes()})
	}
	slices.SortFunc(rows, func(a, b chart.Spans) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	step := sampled.Minutes()
	return chart.Page(
		chart.Times{Title: "What was broken", XLabel: "minutes", Rows: rows, Until: last.Sub(began).Minutes()},
		chart.Chart{Title: "Calls", XLabel: "minutes", YLabel: "a second", Step: step, Lines: []chart.Line{
			{Name: "accepted", Color: chart.Blue, Y: perSecond(t.calls)}, {Name: "tries made again", Color: chart.Red, Y: perSecond(t.retries)}}},
		chart.Chart{Title: "From a call's answer to the receipt of its event at a URL that is well", XLabel: "minutes", YLabel: "seconds", Step: step, Lines: []chart.Line{
			{Name: "p99", Color: chart.Red, Y: each(t.delays, quantile(0.99))}, {Name: "p50", Color: chart.Blue, Y: each(t.delays, quantile(0.5))}}},
		chart.Chart{Title: "Deliveries that are pending to URLs that are well", XLabel: "minutes", YLabel: "deliveries", Step: step, Lines: []chart.Line{
			{Name: "pending", Color: chart.Green, Y: each(t.backlog, quantile(1))}}},
	)
}
