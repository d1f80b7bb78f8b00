package main

import (
	"fmt"
	"image/color"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
)

// findings are what a case has measured, for the report.
type findings struct {
	Figures []figure
	Steps   []step
	Peaks   map[string]int64 // the most memory that each program held, in bytes
	panels  []chart.Panel
	picture string // one that the case drew by itself
}

// figure is one measured thing beside its bound.
type figure struct {
	What, Asked, Text string
	Reached           bool
}

// step is a sort of call that a case made many times.
type step struct {
	Name  string
	Times times
	Rate  float64 // calls a second; 0 where their number is the case's choice
}

// verdict prints a figure beside what is asked of it.
func (r *run) verdict(what string, ok bool, asked, format string, args ...any) {
	f := figure{What: what, Asked: asked, Text: fmt.Sprintf(format, args...), Reached: ok}
	r.found.Figures = append(r.found.Figures, f)
	r.printf("  %-34s %-8s %s; asked: %s", what, f.Word(), f.Text, asked)
}

func (f figure) Word() string {
	if f.Reached {
		return "reached"
	}
	return "MISSED"
}

// step prints how long a sort of call took.
func (r *run) step(name string, t times, rate float64) {
	r.found.Steps = append(r.found.Steps, step{name, t, rate})
	words := ""
	if rate > 0 {
		words = fmt.Sprintf(", %.0f/s", rate)
	}
	r.printf("  %-50s %6d calls%s, %s", name, len(t), words, t)
}

// peak notes how much memory a program held; the most counts.
func (r *run) peak(program string, bytes int64) {
	if bytes == 0 { // it has ended
		return
	}
	if r.found.Peaks == nil {
		r.found.Peaks = map[string]int64{}
	}
	r.found.Peaks[program] = max(r.found.Peaks[program], bytes)
}

// draw adds a panel to the case's chart.
func (r *run) draw(p chart.Panel) { r.found.panels = append(r.found.panels, p) }

// chart is the case's picture; "" when there is nothing to draw.
func (f *findings) chart() (string, error) {
	panels := f.panels
	if len(f.Steps) > 0 {
		panels = append(panels, spreads(f.Steps))
	}
	if f.picture != "" || len(panels) == 0 {
		return f.picture, nil
	}
	return chart.Page(panels...)
}

func spreads(steps []step) chart.Spreads {
	s := chart.Spreads{Title: "How long it took", Unit: "ms"}
	for _, st := range steps {
		s.Rows = append(s.Rows, chart.Spread{Name: st.Name, P50: milliseconds(st.Times.At(.5)), P90: milliseconds(st.Times.At(.9)), P99: milliseconds(st.Times.At(.99))})
	}
	return s
}

// milliseconds is at least a microsecond, which a logarithmic axis can show.
func milliseconds(d time.Duration) float64 {
	return float64(max(d, time.Microsecond)) / float64(time.Millisecond)
}

// bar is a row of a chart with one part.
func bar(name string, value, bound float64, c color.Color) chart.Row {
	return chart.Row{Name: name, Parts: []chart.Part{{Color: c, Value: value}}, Bound: bound}
}
