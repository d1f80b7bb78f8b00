// Package chart draws the pictures of the documentation: series over one horizontal axis, named
// bars and named ranges, one panel below the other, as SVG. The drawing is gonum.org/v1/plot's.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"golang.org/x/image/colornames"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Panel is a part of a page: a Chart, Rows, Spreads or Times.
type Panel interface {
	plot() (*plot.Plot, error)
	height() vg.Length
}

// The colors of series.
var (
	Blue  color.Color = color.NRGBA{0x1f, 0x5f, 0xd0, 0xff}
	Green color.Color = color.NRGBA{0x17, 0x66, 0x3a, 0xff}
	Amber color.Color = color.NRGBA{0xd0, 0x8a, 0x20, 0xff}
	Red   color.Color = color.NRGBA{0xb3, 0x26, 0x1e, 0xff}
	Grey  color.Color = color.NRGBA{0x8a, 0x93, 0xa5, 0xff}
)

// Chart is a panel of series over one horizontal axis.
type Chart struct {
	Title, XLabel, YLabel string
	Step                  float64 // of the horizontal axis, between two values of lines and bands; 0: 1
	Bars                  []Bars
	Bands                 []Band
	Lines                 []Line
}

// Line is a value for each x, from 0; NaN leaves a gap.
type Line struct {
	Name   string
	Color  color.Color
	Dashed bool
	Y      []float64
}

// Band is the room between two lines.
type Band struct {
	Name      string
	Color     color.Color
	Low, High []float64
}

// Bars are a value for each x, from 0.
type Bars struct {
	Name  string
	Color color.Color
	Y     []float64
}

// Rows is a panel of bars that lie one below the other, each with its name before it and its
// value after it.
type Rows struct {
	Title string
	Unit  string // stands after the values
	Rows  []Row
}

// Row is a bar of one part, or of parts that follow one another.
type Row struct {
	Name  string
	Parts []Part
	Bound float64 // a mark on the bar's line; 0 for none
}

// Part is a piece of a bar. Its name and color are in the legend; "" for a bar that needs none.
type Part struct {
	Name  string
	Color color.Color
	Value float64
}

// Spreads is a panel of ranges on a logarithmic axis, from the median to the 99th percentile.
type Spreads struct {
	Title string
	Unit  string // stands after the values
	Rows  []Spread
}

// Spread is a range with its 90th percentile.
type Spread struct {
	Name          string
	P50, P90, P99 float64 // above 0
}

const (
	pixel     = vg.Inch / 96
	width     = 960 * pixel
	legend    = 300 * pixel // room beside the panels
	rowHeight = 24 * pixel
)

// dark inverts the picture for readers who have set dark colors.
const dark = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(1) hue-rotate(180deg) } }</style>\n</svg>"

// Page draws panels, one below the other.
func Page(panels ...Panel) (string, error) {
	var total vg.Length
	for _, p := range panels {
		total += p.height()
	}
	page := vgsvg.New(width, total)
	top := total
	for _, p := range panels {
		drawn, err := p.plot()
		if err != nil {
			return "", err
		}
		area := draw.Canvas{Canvas: page, Rectangle: vg.Rectangle{Min: vg.Point{Y: top - p.height()}, Max: vg.Point{X: width, Y: top}}}
		names := drawn.Legend
		drawn.Legend = plot.NewLegend()
		drawn.Draw(draw.Crop(area, 8*pixel, -legend, 8*pixel, -8*pixel))
		names.Draw(draw.Crop(area, width-legend+30*pixel, 0, 0, -36*pixel))
		top -= p.height()
	}
	var out bytes.Buffer
	_, err := page.WriteTo(&out)
	return string(bytes.Replace(out.Bytes(), []byte("</svg>"), []byte(dark), 1)), err
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Variant, p.Legend.TextStyle.Font.Variant = "Sans", "Sans"
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Variant, axis.Tick.Label.Font.Variant = "Sans", "Sans"
	}
	p.Legend.Top, p.Legend.Left = true, true
	return p
}

func (c Chart) height() vg.Length { return 300 * pixel }

func (c Chart) plot() (*plot.Plot, error) {
	p := newPlot(c.Title)
	p.X.Label.Text, p.Y.Label.Text = c.XLabel, c.YLabel
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = colornames.Gainsboro, nil
	p.Add(grid)
	for _, s := range c.Bars {
		bars, err := plotter.NewBarChart(plotter.Values(s.Y), (width-legend-70*pixel)/vg.Length(len(s.Y)+1))
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle.Width = s.Color, 0
		p.Add(bars)
		p.Legend.Add(s.Name, bars)
	}
	for _, s := range c.Bands {
		high := c.points(s.High)
		low := c.points(s.Low)
		slices.Reverse(low)
		band, err := plotter.NewPolygon(slices.Concat(high, low))
		if err != nil {
			return nil, err
		}
		band.Color, band.Width = faint(s.Color), 0
		p.Add(band)
		p.Legend.Add(s.Name, band)
	}
	for _, s := range c.Lines {
		line, err := plotter.NewLine(c.points(s.Y))
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = s.Color, 1.5
		if s.Dashed {
			line.Dashes = []vg.Length{5, 4}
		}
		p.Add(line)
		p.Legend.Add(s.Name, line)
	}
	return p, nil
}

// points are a series' values with their places; gaps are left out.
func (c Chart) points(values []float64) plotter.XYs {
	var all plotter.XYs
	step := c.Step
	if step == 0 {
		step = 1
	}
	for x, y := range values {
		if !math.IsNaN(y) {
			all = append(all, plotter.XY{X: float64(x) * step, Y: y})
		}
	}
	return all
}

func faint(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0x40}
}

func (r Rows) height() vg.Length { return rowsHeight(len(r.Rows)) }

func rowsHeight(n int) vg.Length { return rowHeight*vg.Length(n) + 90*pixel }

func (r Rows) plot() (*plot.Plot, error) {
	p := newPlot(r.Title)
	rows := newRows(p, r.Rows, func(row Row) string { return row.Name })
	known := map[string]bool{}
	for i, row := range slices.Backward(r.Rows) {
		y, from := rows.place(i), 0.0
		for _, part := range row.Parts {
			piece, err := rows.line(y, from, from+part.Value, part.Color)
			if err != nil {
				return nil, err
			}
			from += part.Value
			if part.Name != "" && !known[part.Name] {
				known[part.Name] = true
				p.Legend.Add(part.Name, piece)
			}
		}
		words := rounded(from) + " " + r.Unit
		if row.Bound > 0 {
			words += fmt.Sprintf(" (bound %s)", rounded(row.Bound))
			mark, err := plotter.NewLine(plotter.XYs{{X: row.Bound, Y: y - 0.45}, {X: row.Bound, Y: y + 0.45}})
			if err != nil {
				return nil, err
			}
			mark.Color, mark.Width, mark.Dashes = Red, 1.5, []vg.Length{3, 2}
			p.Add(mark)
		}
		if err := rows.label(max(from, row.Bound), y, words); err != nil {
			return nil, err
		}
	}
	p.X.Min = 0
	return p, nil
}

func (s Spreads) height() vg.Length { return rowsHeight(len(s.Rows)) }

func (s Spreads) plot() (*plot.Plot, error) {
	p := newPlot(s.Title)
	if len(s.Rows) == 0 {
		return p, nil
	}
	p.X.Label.Text = s.Unit
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	rows := newRows(p, s.Rows, func(row Spread) string { return row.Name })
	var places [3]plotter.XYs
	for i, row := range slices.Backward(s.Rows) {
		y := rows.place(i)
		if _, err := rows.line(y, row.P50, row.P99, faint(Blue)); err != nil {
			return nil, err
		}
		for j, v := range []float64{row.P50, row.P90, row.P99} {
			places[j] = append(places[j], plotter.XY{X: v, Y: y})
		}
		if err := rows.label(row.P99, y, fmt.Sprintf("%s · %s · %s %s", rounded(row.P50), rounded(row.P90), rounded(row.P99), s.Unit)); err != nil {
			return nil, err
		}
	}
	for i, c := range []color.Color{Blue, Amber, Red} {
		dots, err := plotter.NewScatter(places[i])
		if err != nil {
			return nil, err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: c, Radius: 3, Shape: draw.CircleGlyph{}}
		p.Add(dots)
		p.Legend.Add([]string{"p50", "p90", "p99"}[i], dots)
	}
	p.X.Min, p.X.Max = math.Pow(10, math.Floor(math.Log10(p.X.Min))), math.Pow(10, math.Ceil(math.Log10(p.X.Max)))
	if p.X.Min == p.X.Max {
		p.X.Max *= 10
	}
	return p, nil
}

// rows are places one below the other, the first at the top.
type rows struct {
	*plot.Plot

	n int
}

func newRows[T any](p *plot.Plot, all []T, name func(T) string) rows {
	names := make([]string, len(all))
	for i, row := range all {
		names[len(all)-1-i] = name(row)
	}
	if len(names) > 0 {
		p.NominalY(names...)
	}
	p.Y.Min, p.Y.Max = -0.6, float64(len(all))-0.4
	return rows{p, len(all)}
}

func (r rows) place(i int) float64 { return float64(r.n - 1 - i) }

// line draws a piece of a row's bar.
func (r rows) line(y, from, to float64, c color.Color) (*plotter.Line, error) {
	piece, err := plotter.NewLine(plotter.XYs{{X: from, Y: y}, {X: to, Y: y}})
	if err != nil {
		return nil, err
	}
	piece.Color, piece.Width = c, 16*pixel
	r.Add(piece)
	return piece, nil
}

// label writes behind a row's bar.
func (r rows) label(x, y float64, words string) error {
	label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x, Y: y}}, Labels: []string{words}})
	if err != nil {
		return err
	}
	label.Offset = vg.Point{X: 8, Y: -4}
	label.TextStyle[0].Font.Variant = "Sans"
	r.Add(label)
	return nil
}

// rounded shows three digits, and whole numbers with commas from a hundred on.
func rounded(v float64) string {
	if math.Abs(v) < 100 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
