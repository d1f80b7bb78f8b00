// Package svg draws plain charts: lines, bands and bars over one horizontal axis, named bars and
// named ranges. It has what the pictures of the documentation need, and no more. The pictures
// follow the reader's light or dark setting.
package svg

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Panel is a part of a page: a Chart, Rows or Spreads.
type Panel interface {
	height() int
	draw(b *strings.Builder)
}

// Color is one of those that the page's style knows, in light and in dark.
type Color string

// The colors of series.
const (
	Blue  Color = "blue"
	Green Color = "green"
	Amber Color = "amber"
	Red   Color = "red"
	Grey  Color = "grey"
)

// style gives every class its color; shapes take it as currentColor.
const style = `<style>
.paper{color:#ffffff}.ink{color:#1d2433}.dim{color:#5b6475}.grid{color:#e3e7ef}
.blue{color:#1f5fd0}.green{color:#17663a}.amber{color:#b06a00}.red{color:#b3261e}.grey{color:#8a93a5}
@media (prefers-color-scheme: dark){
.paper{color:#12161f}.ink{color:#e8ecf4}.dim{color:#a3adbf}.grid{color:#2b3240}
.blue{color:#6ea3ff}.green{color:#58c58b}.amber{color:#f0ae4b}.red{color:#ff8a80}.grey{color:#7d879a}
}
</style>
`

// Chart is a panel of series over one horizontal axis.
type Chart struct {
	Title  string
	XLabel string
	YLabel string
	Min    float64 // of the vertical axis; with Max equal to it, the series decide
	Max    float64
	Bars   []Bars
	Bands  []Band
	Lines  []Line
}

// Line is a value for each x, from 0; NaN leaves a gap.
type Line struct {
	Name   string
	Color  Color
	Dashed bool
	Y      []float64
}

// Band is the room between two lines.
type Band struct {
	Name      string
	Color     Color
	Low, High []float64
}

// Bars are values that stand on the ones before them.
type Bars struct {
	Name  string
	Color Color
	Y     []float64
}

const (
	width, height = 860, 300
	left, right   = 64, 24
	top, bottom   = 54, 44
	ticks         = 5
)

// Page draws panels, one below the other.
func Page(panels ...Panel) string {
	var b strings.Builder
	total := 0
	for _, p := range panels {
		total += p.height()
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" font-size="12">`+"\n",
		width, total, width, total)
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" class="paper" fill="currentColor"/>`+"\n", width, total)
	y := 0
	for _, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", y)
		p.draw(&b)
		b.WriteString("</g>\n")
		y += p.height()
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c Chart) height() int { return height }

// plane turns values into pixels.
type plane struct {
	n         int
	low, high float64
	step      float64
}

func (p plane) x(i float64) float64 {
	return left + (width-left-right)*i/math.Max(float64(p.n-1), 1)
}

func (p plane) y(v float64) float64 {
	return height - bottom - (height-top-bottom)*(v-p.low)/(p.high-p.low)
}

func (c Chart) draw(b *strings.Builder) {
	p := c.plane()
	title(b, c.Title)
	for v := p.low; v <= p.high+p.step/2; v += p.step {
		rule(b, left, width-right, p.y(v), p.y(v), "grid", "")
		text(b, left-8, p.y(v)+4, "end", "dim", "", short(v))
	}
	every := tickOf(float64(p.n) / 8)
	for i := 0.0; i < float64(p.n); i += every {
		text(b, p.x(i), height-bottom+18, "middle", "dim", "", short(i))
	}
	text(b, (left+width-right)/2, height-8, "middle", "dim", "", c.XLabel)
	fmt.Fprintf(b, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle" class="dim" fill="currentColor">%s</text>`+"\n", (top+height-bottom)/2, html.EscapeString(c.YLabel))
	c.drawSeries(b, p)
	c.legend(b)
}

// plane chooses round limits around every value.
func (c Chart) plane() plane {
	p := plane{low: c.Min, high: c.Max}
	low, high := math.Inf(1), math.Inf(-1)
	take := func(all []float64) {
		p.n = max(p.n, len(all))
		for _, v := range all {
			if !math.IsNaN(v) {
				low, high = math.Min(low, v), math.Max(high, v)
			}
		}
	}
	for _, l := range c.Lines {
		take(l.Y)
	}
	for _, d := range c.Bands {
		take(d.Low)
		take(d.High)
	}
	if len(c.Bars) > 0 {
		take(stacked(c.Bars))
		low = math.Min(low, 0)
	}
	if c.Min == c.Max && low < high {
		p.low, p.high = low, high
	} else if c.Min == c.Max {
		p.low, p.high = 0, 1
	}
	p.step = tickOf((p.high - p.low) / ticks)
	p.low, p.high = math.Floor(p.low/p.step+1e-9)*p.step, math.Ceil(p.high/p.step-1e-9)*p.step
	return p
}

func stacked(bars []Bars) []float64 {
	var sums []float64
	for _, s := range bars {
		for i, v := range s.Y {
			if i == len(sums) {
				sums = append(sums, 0)
			}
			sums[i] += v
		}
	}
	return sums
}

func (c Chart) drawSeries(b *strings.Builder, p plane) {
	base := make([]float64, p.n)
	wide := math.Max(1, (width-left-right)/float64(max(p.n, 1))-1)
	for _, s := range c.Bars {
		for i, v := range s.Y {
			if v > 0 {
				bar(b, p.x(float64(i))-wide/2, p.y(base[i]+v), wide, p.y(base[i])-p.y(base[i]+v), s.Color)
			}
			base[i] += v
		}
	}
	for _, d := range c.Bands {
		var points []string
		for i, v := range d.High {
			points = append(points, p.point(i, v)...)
		}
		for i := len(d.Low) - 1; i >= 0; i-- {
			points = append(points, p.point(i, d.Low[i])...)
		}
		fmt.Fprintf(b, `<polygon points="%s" class="%s" fill="currentColor" fill-opacity="0.22"/>`+"\n", strings.Join(points, " "), d.Color)
	}
	for _, l := range c.Lines {
		dash := ""
		if l.Dashed {
			dash = ` stroke-dasharray="6 5"`
		}
		var points []string
		for i, v := range l.Y {
			points = append(points, p.point(i, v)...)
		}
		fmt.Fprintf(b, `<polyline points="%s" class="%s" fill="none" stroke="currentColor" stroke-width="2"%s/>`+"\n", strings.Join(points, " "), l.Color, dash)
	}
}

func (p plane) point(i int, v float64) []string {
	if math.IsNaN(v) {
		return nil
	}
	return []string{fmt.Sprintf("%.1f,%.1f", p.x(float64(i)), p.y(v))}
}

func (c Chart) legend(b *strings.Builder) {
	l := legend{b: b, x: left}
	for _, s := range c.Bars {
		l.entry(s.Name, s.Color, 1)
	}
	for _, d := range c.Bands {
		l.entry(d.Name, d.Color, 0.3)
	}
	for _, s := range c.Lines {
		l.entry(s.Name, s.Color, 1)
	}
}

// legend names colors in the line below the title.
type legend struct {
	b *strings.Builder
	x float64
}

func (l *legend) entry(name string, color Color, opacity float64) {
	if name == "" {
		return
	}
	fmt.Fprintf(l.b, `<rect x="%.1f" y="33" width="14" height="8" rx="2" class="%s" fill="currentColor" fill-opacity="%.2f"/>`+"\n", l.x, color, opacity)
	text(l.b, l.x+19, 41, "start", "ink", "", name)
	l.x += 40 + 6.6*float64(len(name))
}

func title(b *strings.Builder, words string) {
	text(b, left-40, 22, "start", "ink", `font-size="15" font-weight="600"`, words)
}

func text(b *strings.Builder, x, y float64, anchor string, color Color, more, words string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s" fill="currentColor" %s>%s</text>`+"\n", x, y, anchor, color, more, html.EscapeString(words))
}

func rule(b *strings.Builder, x1, x2, y1, y2 float64, color Color, more string) {
	fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" class="%s" stroke="currentColor" %s/>`+"\n", x1, x2, y1, y2, color, more)
}

func bar(b *strings.Builder, x, y, wide, high float64, color Color) {
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s" fill="currentColor"/>`+"\n", x, y, wide, high, color)
}

// tickOf rounds up to 1, 2 or 5 times a power of ten.
func tickOf(about float64) float64 {
	if about <= 0 || math.IsNaN(about) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(about)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= about*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func short(v float64) string {
	if math.Abs(v) < 1e-9 {
		return "0"
	}
	return trimmed(fmt.Sprintf("%.2f", v))
}
