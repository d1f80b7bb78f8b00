package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// Times is a panel of rows, one below the other, with what lasted from when to when.
type Times struct {
	Title, XLabel string
	Rows          []Spans
	Until         float64 // the end of the horizontal axis, which begins at 0
}

// Spans are those of a row, each from its begin to its end.
type Spans struct {
	Name  string
	Parts [][2]float64
}

func (t Times) height() vg.Length { return rowsHeight(len(t.Rows)) }

func (t Times) plot() (*plot.Plot, error) {
	p := newPlot(t.Title)
	p.X.Label.Text = t.XLabel
	rows := newRows(p, t.Rows, func(row Spans) string { return row.Name })
	for i, row := range t.Rows {
		for _, part := range row.Parts {
			if _, err := rows.line(rows.place(i), part[0], max(part[1], part[0]+t.Until/500), Red); err != nil {
				return nil, err
			}
		}
	}
	p.X.Min, p.X.Max = 0, t.Until
	return p, nil
}
