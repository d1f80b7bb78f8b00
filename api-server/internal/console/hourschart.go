package console

import (
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
)

// hoursChart is the attempts of the last 24 hours as columns, in the coordinates of an SVG picture.
type hoursChart struct {
	Words             string // what the picture shows, for those who do not see it
	Width, Height     int
	Columns           []hourColumn
	Delivered, Failed int // of all hours
	Most              int // attempts of an hour
}

// hourColumn is one hour: what failed stands on what was delivered.
type hourColumn struct {
	X, Width                    float64
	DeliveredY, DeliveredHeight float64
	FailedY, FailedHeight       float64
	Text                        string // for the pointer
	delivered, failed           int
}

// The picture's size and the hours on it; the last of them is the present one.
const (
	hoursWidth, hoursHeight = 960, 120
	hoursShown              = 24
	hoursGap                = .3 // of a column
)

// firstHour is the beginning of the first hour that is shown.
func firstHour(now time.Time) time.Time {
	return now.UTC().Truncate(time.Hour).Add(-(hoursShown - 1) * time.Hour)
}

// newHoursChart draws the attempts of all URLs from first on.
func newHoursChart(first time.Time, hours []journal.Hour) *hoursChart {
	c := &hoursChart{Width: hoursWidth, Height: hoursHeight, Columns: make([]hourColumn, hoursShown)}
	for _, h := range hours {
		i := int(h.At.Sub(first) / time.Hour)
		if i < 0 || i >= hoursShown {
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
	const step = float64(hoursWidth) / hoursShown
	for i := range c.Columns {
		o := &c.Columns[i]
		o.X, o.Width = step*(float64(i)+hoursGap/2), step*(1-hoursGap)
		o.DeliveredHeight, o.FailedHeight = c.height(o.delivered), c.height(o.failed)
		o.DeliveredY = hoursHeight - o.DeliveredHeight
		o.FailedY = o.DeliveredY - o.FailedHeight
		o.Text = fmt.Sprintf("%s: %s delivered, %s failed", ago(hoursShown-1-i), thousands(o.delivered), thousands(o.failed))
	}
	c.Words = fmt.Sprintf("Delivery attempts by the hour, the last 24 hours: %s delivered, %s failed", thousands(c.Delivered), thousands(c.Failed))
	return c
}

// height is that of n attempts: what there is of can be seen.
func (c *hoursChart) height(n int) float64 {
	if n == 0 {
		return 0
	}
	return max(2, float64(n)/float64(c.Most)*(hoursHeight-4))
}

func ago(hours int) string {
	switch hours {
	case 0:
		return "This hour"
	case 1:
		return "1 hour ago"
	}
	return fmt.Sprintf("%d hours ago", hours)
}

// thousands writes a number with a comma after every three digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
