package console

import (
	"fmt"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// lifeChart is what happened to a student, each kind of things on a line of its own, in the coordinates of an SVG
// picture.
type lifeChart struct {
	Words         string // what the picture shows, for those who do not see it
	Width, Height int
	Left, Right   float64
	Bottom        float64
	Lanes         []lifeLane
	Days          []lifeDay
	Access        []lifeSpan
}

type lifeLane struct {
	Y     float64
	Name  string
	Marks []lifeMark
}

// lifeMark is a thing that happened.
type lifeMark struct {
	X, Y float64
	Text string // for the pointer
}

// lifeSpan is a time with access to a course, the grace period included.
type lifeSpan struct {
	X, Width, Y float64
	Text        string
}

// lifeDay is a day below the picture.
type lifeDay struct {
	X            float64
	Text, Anchor string
}

// lanes say what is on which line of the picture.
var lanes = []struct {
	name  string
	kinds []explain.Kind
}{
	{"Access", []explain.Kind{explain.Roster, explain.Membership, explain.Enrollment}},
	{"Test plan", []explain.Kind{explain.Plan}},
	{"Work", []explain.Kind{explain.Assignment, explain.Result}},
	{"Mails", []explain.Kind{explain.Mail}},
	{"Events", []explain.Kind{explain.Event}},
}

// The picture's size and the room that its axes take, in pixels.
const (
	lifeWidth, lifeLane0, lifeLaneHeight = 860, 24, 34
	lifeLeft, lifeRight                  = 96, 848
	lifeSpanHeight                       = 16
	lifeDays                             = 4 // and the first one
)

// newLifeChart draws the time from the first entry until now, or the last one. Nil without entries.
func newLifeChart(entries []explain.Entry, held []course.Enrollment, now time.Time, zone *time.Location) *lifeChart {
	if len(entries) == 0 {
		return nil
	}
	first, last := now, now
	for _, e := range entries {
		if e.At.Before(first) {
			first = e.At
		}
		if e.At.After(last) {
			last = e.At
		}
	}
	last = last.Add(max(last.Sub(first)/50, time.Hour)) // room for the last marks
	x := func(t time.Time) float64 {
		return lifeLeft + (lifeRight-lifeLeft)*min(max(t.Sub(first).Seconds()/last.Sub(first).Seconds(), 0), 1)
	}
	c := &lifeChart{Width: lifeWidth, Height: lifeLane0 + lifeLaneHeight*len(lanes) + 16, Left: lifeLeft, Right: lifeRight,
		Bottom: float64(lifeLane0 + lifeLaneHeight*(len(lanes)-1) + 20)}
	c.Words = fmt.Sprintf("From %s to %s:", clock.DateIn(first, zone), clock.DateIn(now, zone))
	for i, lane := range lanes {
		l := lifeLane{Y: float64(lifeLane0 + lifeLaneHeight*i), Name: lane.name}
		for _, e := range entries {
			if slices.Contains(lane.kinds, e.Kind) {
				l.Marks = append(l.Marks, lifeMark{x(e.At), l.Y, e.At.UTC().Format("2 Jan 2006, 15:04 UTC: ") + e.Summary})
			}
		}
		c.Words += fmt.Sprintf(" %s %d,", lane.name, len(l.Marks))
		c.Lanes = append(c.Lanes, l)
	}
	c.Words = c.Words[:len(c.Words)-1]
	for _, e := range held {
		from, to := x(clock.DayStart(e.StartDate, zone)), x(clock.DayStart(e.GracePeriodEnd.AddDays(1), zone))
		if to > from {
			c.Access = append(c.Access, lifeSpan{from, to - from, lifeLane0 - lifeSpanHeight/2,
				fmt.Sprintf("%s from %s to %s, grace period until %s", e.Course.Name, e.StartDate, e.EndDate, e.GracePeriodEnd)})
		}
	}
	for i := range lifeDays + 1 {
		at := first.Add(last.Sub(first) * time.Duration(i) / lifeDays)
		c.Days = append(c.Days, lifeDay{x(at), at.In(zone).Format("2 Jan 2006"), "middle"})
	}
	c.Days[0].Anchor, c.Days[lifeDays].Anchor = "start", "end"
	return c
}
