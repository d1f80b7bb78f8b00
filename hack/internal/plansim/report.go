package plansim

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/internal/chart"
)

// Table writes the outcome of the plans, by the pace that they began with.
func (w *World) Table(ctx context.Context, out io.Writer) error {
	rows, err := w.db.Query(ctx, `
		WITH first AS (
			SELECT p.id, p.exam, p.pace, p.target_score_e4 AS target, p.status,
				(SELECT count(*) FROM plan_history h WHERE h.plan_id = p.id AND h.event = 'test_opened') AS opened,
				(SELECT count(*) FROM plan_tests t WHERE t.plan_id = p.id AND t.state = 'finished') AS finished,
				(SELECT count(*) FROM plan_tests t WHERE t.plan_id = p.id AND t.state = 'missed') AS missed,
				(SELECT count(*) FROM plan_drills d WHERE d.plan_id = p.id) AS drills,
				(SELECT count(*) FROM plan_history h WHERE h.plan_id = p.id AND h.event = 'test_unfilled') AS unfilled,
				EXISTS (SELECT FROM plan_history h WHERE h.plan_id = p.id AND h.event = 'at_risk') AS risk,
				(SELECT score_e4 FROM plan_tests t WHERE t.plan_id = p.id AND t.state = 'finished' AND kind <> 'skills_check' ORDER BY slot LIMIT 1) AS start,
				(SELECT max(score_e4) FROM (SELECT score_e4 FROM plan_tests t WHERE t.plan_id = p.id AND t.state = 'finished' AND kind <> 'skills_check'
					ORDER BY slot DESC LIMIT 3) AS l) AS came
			FROM plans p)
		SELECT exam = 'sat', CASE WHEN grouping(pace) = 1 THEN 'all' ELSE pace END, count(*), sum(opened), sum(finished), sum(missed), sum(drills), sum(unfilled),
			100.0 * count(*) FILTER (WHERE risk) / count(*), coalesce(avg(start) / 10000, 0), coalesce(avg(came) / 10000, 0), avg(target) / 10000,
			100.0 * count(*) FILTER (WHERE came >= target) / greatest(count(came), 1)
		FROM first GROUP BY GROUPING SETS ((exam = 'sat', pace), (exam = 'sat'))
		ORDER BY 1, grouping(pace), array_position(ARRAY['auto', 'intensive', 'standard', 'light', 'custom'], pace)`)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  %-6s %-10s %6s %7s %8s %7s %7s %9s %9s %8s %8s %8s %9s\n", "exam", "pace", "plans", "opened", "finished", "missed", "drills", "unfilled",
		"at risk %", "first", "latest", "target", "reached %")
	var sat bool
	var pace string
	var plans, opened, finished, missed, drills, unfilled int
	var risk, start, came, target, reached float64
	_, err = pgx.ForEachRow(rows, []any{&sat, &pace, &plans, &opened, &finished, &missed, &drills, &unfilled, &risk, &start, &came, &target, &reached}, func() error {
		exam, digits := "IELTS", 2
		if sat {
			exam, digits = "SAT", 0
		}
		fmt.Fprintf(out, "  %-6s %-10s %6d %7d %8d %7d %7d %9d %9.0f %8.*f %8.*f %8.*f %9.0f\n", exam, pace, plans, opened, finished, missed, drills, unfilled,
			risk, digits, start, digits, came, digits, target, reached)
		return nil
	})
	return err
}

// Picture draws the days: tests given and missed, scores on the way to their targets, and the
// share of plans at risk.
func (w *World) Picture(ctx context.Context) (string, error) {
	opened, err := w.aDay(ctx, `event = 'test_opened'`)
	if err != nil {
		return "", err
	}
	missed, err := w.aDay(ctx, `event = 'test_missed'`)
	if err != nil {
		return "", err
	}
	gap, err := w.gaps(ctx)
	if err != nil {
		return "", err
	}
	running, risk, err := w.statuses(ctx)
	if err != nil {
		return "", err
	}
	zero := make([]float64, w.Days)
	return chart.Page(
		chart.Chart{Title: fmt.Sprintf("Tests a day, of %d students in %d time zones", w.Students, len(slices.Compact(slices.Sorted(slices.Values(zones))))), XLabel: "day", YLabel: "tests",
			Bars: []chart.Bars{{Name: "opened", Color: chart.Blue, Y: opened}}, Lines: []chart.Line{{Name: "missed", Color: chart.Red, Y: missed}}},
		chart.Chart{Title: "IELTS: the latest full score, less the target", XLabel: "days since the plan began", YLabel: "bands",
			Bands: []chart.Band{{Name: "nine of ten students", Color: chart.Blue, Low: gap[0], High: gap[4]}, {Name: "half of them", Color: chart.Blue, Low: gap[1], High: gap[3]}},
			Lines: []chart.Line{{Name: "median", Color: chart.Blue, Y: gap[2]}, {Name: "the target", Color: chart.Green, Dashed: true, Y: zero}}},
		chart.Chart{Title: "Active plans, and those of them at risk", XLabel: "day", YLabel: "plans",
			Lines: []chart.Line{{Name: "active", Color: chart.Grey, Y: running}, {Name: "at risk", Color: chart.Red, Y: risk}}},
	)
}

func (w *World) day(at time.Time) int { return int(at.Sub(begin) / (24 * time.Hour)) }

func (w *World) aDay(ctx context.Context, which string) ([]float64, error) {
	rows, err := w.db.Query(ctx, `SELECT at FROM plan_history WHERE `+which)
	if err != nil {
		return nil, err
	}
	days := make([]float64, w.Days)
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&at}, func() error { days[w.day(at)]++; return nil })
	return days, err
}

// quantiles are those of the score's picture.
var quantiles = []float64{0.05, 0.25, 0.5, 0.75, 0.95}

// gaps are quantiles, for each day since the plans' beginnings, of how far the latest full
// score is from the target.
func (w *World) gaps(ctx context.Context) ([][]float64, error) {
	rows, err := w.db.Query(ctx, `
		SELECT p.id, t.finished_on - (p.started_at AT TIME ZONE p.time_zone)::date, (t.score_e4 - p.target_score_e4) / 10000.0
		FROM plans p JOIN plan_tests t ON t.plan_id = p.id AND t.state = 'finished' AND t.kind <> 'skills_check' WHERE p.exam <> 'sat' ORDER BY p.id, t.slot`)
	if err != nil {
		return nil, err
	}
	steps := map[int64]map[int]float64{}
	var which int64
	var day int
	var gap float64
	if _, err := pgx.ForEachRow(rows, []any{&which, &day, &gap}, func() error {
		if steps[which] == nil {
			steps[which] = map[int]float64{}
		}
		steps[which][day] = gap
		return nil
	}); err != nil {
		return nil, err
	}
	lines, latest := make([][]float64, len(quantiles)), map[int64]float64{}
	for d := range w.Days {
		var all []float64
		for which, of := range steps {
			if v, ok := of[d]; ok {
				latest[which] = v
			}
			if v, ok := latest[which]; ok {
				all = append(all, v)
			}
		}
		slices.Sort(all)
		for i, q := range quantiles {
			v := math.NaN()
			if len(all) > 0 {
				v = all[int(q*float64(len(all)-1)+0.5)]
			}
			lines[i] = append(lines[i], v)
		}
	}
	return lines, nil
}

// statuses count, for each day, the plans that are active and those at risk.
func (w *World) statuses(ctx context.Context) (running, risk []float64, err error) {
	rows, err := w.db.Query(ctx, `SELECT plan_id, at, event, coalesce(detail ->> 'at_risk', '') FROM plan_history
		WHERE event IN ('created', 'closed', 'paused', 'resumed', 'at_risk') ORDER BY at, id`)
	if err != nil {
		return nil, nil, err
	}
	running, risk = make([]float64, w.Days), make([]float64, w.Days)
	active, behind := map[int64]bool{}, map[int64]bool{}
	last := 0
	flush := func(to int) {
		for ; last < to; last++ {
			for which := range active {
				running[last]++
				if behind[which] {
					risk[last]++
				}
			}
		}
	}
	var which int64
	var at time.Time
	var event, is string
	_, err = pgx.ForEachRow(rows, []any{&which, &at, &event, &is}, func() error {
		flush(w.day(at))
		switch event {
		case "created", "resumed":
			active[which] = true
		case "closed", "paused":
			delete(active, which)
		case "at_risk":
			behind[which] = strings.EqualFold(is, "true")
		}
		return nil
	})
	flush(w.Days)
	return running, risk, err
}
