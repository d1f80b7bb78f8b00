package console

import (
	"fmt"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// scoreChart is the full results beside the target, in the coordinates of an SVG picture of
// chartWidth by chartHeight.
type scoreChart struct {
	Words       string // what the picture shows, for those who do not see it
	Width       int
	Height      int
	Left, Right float64
	Bottom      float64
	Levels      []chartLevel
	Days        []chartDay
	Target      chartLevel
	Line        string // the points of the way from score to score
	Scores      []chartScore
}

type (
	chartLevel struct {
		Y    float64
		Text string
	}
	chartDay struct {
		X    float64
		Text string
	}
	chartScore struct {
		X, Y float64
		Text string
		Met  bool // the target is reached
	}
)

// The picture's size and the room that its axes take, in pixels.
const (
	chartWidth, chartHeight   = 720, 260
	chartLeft, chartRight     = 44, 684
	chartTop, chartBottom     = 16, 220
	chartLevels, chartDayMark = 4, 4
)

// newScoreChart draws the plan's time from its start to its last test day.
func newScoreChart(s plan.Stored, slots []plan.Slot, scale catalog.Scale, last, first clock.Date) *scoreChart {
	c := &scoreChart{Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartRight, Bottom: chartBottom}
	low, high := s.TargetScore, s.TargetScore
	var full []plan.Slot
	for _, t := range slots {
		if t.State != plan.Finished || t.Score == nil || t.Kind == plan.SkillsCheck {
			continue
		}
		full = append(full, t)
		low, high = min(low, *t.Score), max(high, *t.Score)
		if t.FinishedOn.After(last) {
			last = t.FinishedOn
		}
	}
	low, high = around(low, high, scale.Overall)
	x := func(d clock.Date) float64 {
		return chartLeft + (chartRight-chartLeft)*float64(first.DaysUntil(d))/float64(max(first.DaysUntil(last), 1))
	}
	y := func(n decimal.Number) float64 {
		return chartBottom - (chartBottom-chartTop)*float64(n-low)/float64(max(high-low, 1))
	}
	for i := range chartLevels + 1 {
		n := low + (high-low)*decimal.Number(i)/chartLevels
		c.Levels = append(c.Levels, chartLevel{y(n), n.String()})
	}
	for i := range chartDayMark + 1 {
		d := first.AddDays(first.DaysUntil(last) * i / chartDayMark)
		c.Days = append(c.Days, chartDay{x(d), d.Time().Format("2 Jan")})
	}
	c.Target = chartLevel{y(s.TargetScore), "Target " + s.TargetScore.String()}
	var line, words []string
	for _, t := range full {
		p := chartScore{x(t.FinishedOn), y(*t.Score), t.Score.String(), *t.Score >= s.TargetScore}
		c.Scores = append(c.Scores, p)
		line = append(line, fmt.Sprintf("%.1f,%.1f", p.X, p.Y))
		words = append(words, p.Text+" on "+t.FinishedOn.String())
	}
	c.Line, c.Words = strings.Join(line, " "), "Full scores beside the target of "+s.TargetScore.String()+": "+strings.Join(words, ", ")
	return c
}

// around widens what is shown to a few steps above and below, within the scale.
func around(low, high decimal.Number, scale catalog.Range) (decimal.Number, decimal.Number) {
	room := scale.Step * chartLevels / 2
	low, high = max(low-room, scale.Min), min(high+room, scale.Max)
	// An even number of steps between the lines keeps their labels short.
	for (high-low)%(scale.Step*chartLevels) != 0 && low > scale.Min {
		low -= scale.Step
	}
	return low, high
}
