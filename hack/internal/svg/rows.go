package svg

import (
	"fmt"
	"math"
	"strings"
)

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
	Color Color
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
	rowHeight         = 24
	values            = 150 // room for what stands after a row
	rowsTop, rowsFoot = 58, 14
)

func (r Rows) height() int { return rowsTop + rowHeight*len(r.Rows) + rowsFoot }

func (r Rows) draw(b *strings.Builder) {
	title(b, r.Title)
	most := 0.0
	for _, row := range r.Rows {
		most = max(most, row.sum(), row.Bound)
	}
	if most <= 0 {
		most = 1
	}
	names := margin(r.Rows, func(row Row) string { return row.Name })
	x := func(v float64) float64 { return names + (width-names-values)*v/most }
	l, known := legend{b: b, x: left}, map[string]bool{}
	for i, row := range r.Rows {
		y := float64(rowsTop + i*rowHeight)
		text(b, names-10, y+13, "end", "ink", "", row.Name)
		from := 0.0
		for _, p := range row.Parts {
			bar(b, x(from), y+2, x(from+p.Value)-x(from), rowHeight-8, p.Color)
			from += p.Value
			if !known[p.Name] {
				known[p.Name] = true
				l.entry(p.Name, p.Color, 1)
			}
		}
		words := rounded(from) + " " + r.Unit
		if row.Bound > 0 {
			words += fmt.Sprintf(" (bound %s)", rounded(row.Bound))
			rule(b, x(row.Bound), x(row.Bound), y-2, y+rowHeight-3, "red", `stroke-width="2" stroke-dasharray="4 2"`)
		}
		text(b, max(x(from), x(row.Bound))+8, y+13, "start", "dim", "", words)
	}
}

func (r Row) sum() (all float64) {
	for _, p := range r.Parts {
		all += p.Value
	}
	return all
}

func (s Spreads) height() int { return rowsTop + rowHeight*len(s.Rows) + rowsFoot + 22 }

func (s Spreads) draw(b *strings.Builder) {
	title(b, s.Title)
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range s.Rows {
		low, high = math.Min(low, r.P50), math.Max(high, r.P99)
	}
	if low <= 0 || low > high {
		return
	}
	low, high = decade(low, math.Floor), decade(high, math.Ceil)
	if low == high {
		high *= 10
	}
	names := margin(s.Rows, func(row Spread) string { return row.Name })
	x := func(v float64) float64 {
		return names + (width-names-values)*math.Log(v/low)/math.Log(high/low)
	}
	foot := float64(rowsTop + rowHeight*len(s.Rows))
	for v := low; v <= high*1.001; v *= 10 {
		rule(b, x(v), x(v), rowsTop-4, foot, "grid", "")
		text(b, x(v), foot+16, "middle", "dim", "", rounded(v)+" "+s.Unit)
	}
	l := legend{b: b, x: left}
	l.entry("p50 to p99", Blue, 0.3)
	l.entry("p50", Blue, 1)
	l.entry("p90", Amber, 1)
	l.entry("p99", Red, 1)
	for i, r := range s.Rows {
		y := float64(rowsTop + i*rowHeight + 9)
		text(b, names-10, y+4, "end", "ink", "", r.Name)
		rule(b, x(r.P50), x(r.P99), y, y, Blue, `stroke-width="8" stroke-opacity="0.3"`)
		for _, p := range []struct {
			v     float64
			color Color
		}{{r.P99, Red}, {r.P90, Amber}, {r.P50, Blue}} {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" class="%s" fill="currentColor"/>`+"\n", x(p.v), y, p.color)
		}
		text(b, width-values+12, y+4, "start", "dim", "", fmt.Sprintf("%s · %s · %s %s", rounded(r.P50), rounded(r.P90), rounded(r.P99), s.Unit))
	}
}

// margin is the room that the rows' names need.
func margin[T any](rows []T, name func(T) string) float64 {
	longest := 0
	for _, r := range rows {
		longest = max(longest, len(name(r)))
	}
	return min(max(180, 40+6.4*float64(longest)), width/2)
}

// decade is the power of ten below or above, as the rounding says.
func decade(v float64, rounding func(float64) float64) float64 {
	return math.Pow(10, rounding(math.Log10(v)))
}

// rounded shows three digits, and whole numbers from a hundred on.
func rounded(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return grouped(fmt.Sprintf("%.0f", v))
	case math.Abs(v) >= 10:
		return trimmed(fmt.Sprintf("%.1f", v))
	}
	return trimmed(fmt.Sprintf("%.2f", v))
}

// grouped puts commas between thousands.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func trimmed(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
