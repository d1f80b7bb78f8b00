package console

import (
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
)

// hoursChart is the attempts of a stretch of time as columns, in the coordinates of an SVG picture.
type hoursChart struct {
	Span              chartSpan
	Words             string // what the picture shows, for those who do not see it
	Width, Height     int
	Columns           []hourColumn
	Delivered, Failed int // of all hours
	Most              int // attempts of an hour
}

// hourColumn is one hour or day: what failed stands on what was delivered.
type hourColumn struct {
	X, Width                    float64
	DeliveredY, DeliveredHeight float64
	FailedY, FailedHeight       float64
	Text                        string // for the pointer
	delivered, failed           int
}

// The picture's size.
const (
	hoursWidth, hoursHeight = 960, 120
	hoursGap                = .3 // of a column
)

// chartSpan is the time that a chart shows: columns of one step, the last of which is the present one. Days are UTC's.
type chartSpan struct {
	Name  string // in addresses
	Words string
	step  time.Duration
	unit  string // of a step
	n     int
}

var (
	lastDay   = chartSpan{"", "24 hours", time.Hour, "hour", 24}
	lastMonth = chartSpan{"30-days", "30 days", 24 * time.Hour, "day", 30}
)

// Start and Middle are how long ago the span begins and has its middle.
func (s chartSpan) Start() string  { return s.ago(s.n) }
func (s chartSpan) Middle() string { return s.ago(s.n / 2) }

// first is the beginning of the first column.
func (s chartSpan) first(now time.Time) time.Time {
	return now.UTC().Truncate(s.step).Add(-time.Duration(s.n-1) * s.step)
}

func (s chartSpan) ago(steps int) string {
	switch {
	case steps == 0 && s.unit == "day":
		return "Today"
	case steps == 0:
		return "This " + s.unit
	case steps == 1:
		return "1 " + s.unit + " ago"
	}
	return fmt.Sprintf("%d %ss ago", steps, s.unit)
}

// newHoursChart draws the attempts of all URLs in the span.
func newHoursChart(span chartSpan, now time.Time, hours []journal.Hour) *hoursChart {
	c := &hoursChart{Span: span, Width: hoursWidth, Height: hoursHeight, Columns: make([]hourColumn, span.n)}
	first := span.first(now)
	for _, h := range hours {
		i := int(h.At.Sub(first) / span.step)
		if h.At.Before(first) || i >= span.n {
			continue
		}
		c.Columns[i].delivered += h.Delivered
		c.Columns[i].failed += h.Failed
	}
	for i := range c.Columns {
		o := &c.Columns[i]
		c.Delivered, c.Failed = c.Delivered+o.delivered, c.Failed+o.failed
		c.Most = max(c.Most, o.delivered+o.failed)
	}
	step := float64(hoursWidth) / float64(span.n)
	for i := range c.Columns {
		o := &c.Columns[i]
		o.X, o.Width = step*(float64(i)+hoursGap/2), step*(1-hoursGap)
		o.DeliveredHeight, o.FailedHeight = c.height(o.delivered), c.height(o.failed)
		o.DeliveredY = hoursHeight - o.DeliveredHeight
		o.FailedY = o.DeliveredY - o.FailedHeight
		o.Text = fmt.Sprintf("%s: %s delivered, %s failed", span.ago(span.n-1-i), thousands(o.delivered), thousands(o.failed))
	}
	c.Words = fmt.Sprintf("Delivery attempts by the %s, the last %s: %s delivered, %s failed", span.unit, span.Words, thousands(c.Delivered), thousands(c.Failed))
	return c
}

// height is that of n attempts: what there is of can be seen.
func (c *hoursChart) height(n int) float64 {
	if n == 0 {
		return 0
	}
	return max(2, float64(n)/float64(c.Most)*(hoursHeight-4))
}

// thousands writes a number with a comma after every three digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
