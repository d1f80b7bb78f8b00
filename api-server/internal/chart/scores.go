// Package chart draws pictures for the pages of students and staff.
package chart

import (
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// Scores are the full results beside the target. Of a picture as wide as its place is, X is in percent of the room between the
// axes, and Y in pixels.
type Scores struct {
	Words   string // what it shows, for those who do not see it
	Bottom  float64
	Levels  []level
	Days    []day
	Target  level
	Way     []part // from score to score
	Results []score
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
	part  struct{ X1, Y1, X2, Y2 float64 }
	score struct {
		X, Y float64
		Text string
		Met  bool // the target is reached
	}
)

const (
	chartBottom               = 204 // the height between the axes; the stylesheet's padding has the room for their texts
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
	c := &Scores{Bottom: chartBottom}
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
		return math.Round(1000*float64(first.DaysUntil(d))/float64(max(first.DaysUntil(last), 1))) / 10
	}
	y := func(n decimal.Number) float64 {
		return math.Round(chartBottom * (1 - float64(n-low)/float64(max(high-low, 1))))
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
	var words []string
	for i, t := range full {
		p := score{x(t.FinishedOn), y(*t.Score), in.Digits(t.Score.String()), *t.Score >= s.TargetScore}
		if i > 0 {
			before := c.Results[i-1]
			c.Way = append(c.Way, part{before.X, before.Y, p.X, p.Y})
		}
		c.Results = append(c.Results, p)
		words = append(words, in.T("chart.score", "Score", p.Text, "Day", in.Day(t.FinishedOn)))
	}
	c.Words = in.T("chart.words", "Target", in.Digits(s.TargetScore.String()), "Scores", strings.Join(words, in.T("chart.and")))
	return c
}

var scores = template.Must(template.New("scores").Parse(`<div class="scroll"><svg class="chart scores" role="img" aria-label="{{.Words}}">{{$c := .}}
{{range .Levels}}<line class="grid" x1="0" x2="100%" y1="{{.Y}}" y2="{{.Y}}"/><text y="{{.Y}}" dx="-8" dy="4" text-anchor="end">{{.Text}}</text>
{{end}}{{range .Days}}<text x="{{.X}}%" y="{{$c.Bottom}}" dy="24" text-anchor="middle">{{.Text}}</text>
{{end}}<line class="target" x1="0" x2="100%" y1="{{.Target.Y}}" y2="{{.Target.Y}}"/><text class="target-label" x="100%" y="{{.Target.Y}}" dy="-6" text-anchor="end">{{.Target.Text}}</text>
{{range .Way}}<line class="way" x1="{{.X1}}%" y1="{{.Y1}}" x2="{{.X2}}%" y2="{{.Y2}}"/>
{{end}}{{range .Results}}<circle{{if .Met}} class="met"{{end}} cx="{{.X}}%" cy="{{.Y}}" r="5"/><text class="score" x="{{.X}}%" y="{{.Y}}" dy="-11" text-anchor="middle">{{.Text}}</text>
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
