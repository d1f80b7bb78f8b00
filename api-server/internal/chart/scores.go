// Package chart draws pictures for the pages of students and staff.
package chart

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// Scores are the full results beside the target, in the coordinates of an SVG picture of
// chartWidth by chartHeight.
type Scores struct {
	Name        string // of the picture
	Words       string // what it shows, for those who do not see it
	Width       int
	Height      int
	Left, Right float64
	Bottom      float64
	Levels      []level
	Days        []day
	Target      level
	Line        string // the points of the way from score to score
	Results     []score
}

type (
	level struct {
		Y    float64
		Text string
	}
	day struct {
		X    float64
		Text string
	}
	score struct {
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

// OfPlan draws, in the language of the texts, the plan's time from its start, as the platform's zone has it where the plan's is not known, to its last
// test day. It is nil while there is no full result.
func OfPlan(in *lang.Texts, s plan.Stored, slots []plan.Slot, platform *time.Location) *Scores {
	scale, _ := catalog.ScaleOf(s.Exam) // plans are for exams with a scale alone
	zone, err := clock.Zone("time_zone", s.TimeZone)
	if err != nil {
		zone = platform
	}
	first, last := clock.DateIn(s.StartedAt, zone), plan.LastDay(s.ExamDate, s.AccessEnd)
	c := &Scores{Name: in.T("chart.label"), Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartRight, Bottom: chartBottom}
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
	if len(full) == 0 {
		return nil
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
		c.Levels = append(c.Levels, level{y(n), in.Digits(n.String())})
	}
	for i := range chartDayMark + 1 {
		d := first.AddDays(first.DaysUntil(last) * i / chartDayMark)
		c.Days = append(c.Days, day{x(d), in.ShortDay(d)})
	}
	c.Target = level{y(s.TargetScore), in.T("chart.target", "Target", in.Digits(s.TargetScore.String()))}
	var line, words []string
	for _, t := range full {
		p := score{x(t.FinishedOn), y(*t.Score), in.Digits(t.Score.String()), *t.Score >= s.TargetScore}
		c.Results = append(c.Results, p)
		line = append(line, fmt.Sprintf("%.1f,%.1f", p.X, p.Y))
		words = append(words, in.T("chart.score", "Score", p.Text, "Day", in.Day(t.FinishedOn)))
	}
	c.Line = strings.Join(line, " ")
	c.Words = in.T("chart.words", "Target", in.Digits(s.TargetScore.String()), "Scores", strings.Join(words, in.T("chart.and")))
	return c
}

var scores = template.Must(template.New("scores").Parse(`<div class="scroll" tabindex="0" role="group" aria-label="{{.Name}}"><svg class="chart" viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-label="{{.Words}}">{{$c := .}}
{{range .Levels}}<line class="grid" x1="{{$c.Left}}" x2="{{$c.Right}}" y1="{{.Y}}" y2="{{.Y}}"/><text x="{{$c.Left}}" y="{{.Y}}" dx="-8" dy="4" text-anchor="end">{{.Text}}</text>
{{end}}{{range .Days}}<text x="{{.X}}" y="{{$c.Bottom}}" dy="24" text-anchor="middle">{{.Text}}</text>
{{end}}<line class="target" x1="{{.Left}}" x2="{{.Right}}" y1="{{.Target.Y}}" y2="{{.Target.Y}}"/><text class="target-label" x="{{.Right}}" y="{{.Target.Y}}" dy="-6" text-anchor="end">{{.Target.Text}}</text>
<polyline class="way" points="{{.Line}}"/>
{{range .Results}}<circle{{if .Met}} class="met"{{end}} cx="{{.X}}" cy="{{.Y}}" r="5"/><text class="score" x="{{.X}}" y="{{.Y}}" dy="-11" text-anchor="middle">{{.Text}}</text>
{{end}}</svg></div>`))

// HTML is the picture.
func (c *Scores) HTML() (template.HTML, error) {
	var text strings.Builder
	err := scores.Execute(&text, c)
	return template.HTML(text.String()), err //nolint:gosec // of a template
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
