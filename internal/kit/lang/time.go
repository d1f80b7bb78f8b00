package lang

import (
	"fmt"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Day is a day: "2 January 2006".
func (t *Texts) Day(d clock.Date) string { return t.day(d.Time(), "date.day") }

// ShortDay is a day without its year, for charts: "2 Jan".
func (t *Texts) ShortDay(d clock.Date) string { return t.day(d.Time(), "date.short") }

// DayOf is the day of an instant in the zone.
func (t *Texts) DayOf(at time.Time, zone *time.Location) string {
	return t.day(at.In(zone), "date.day")
}

// Moment is an instant with its zone: "2 January 2006, 15:04 MST".
func (t *Texts) Moment(at time.Time, zone *time.Location) string {
	return t.moment(at, zone, "date.moment")
}

// MomentAt is a Moment as a part of a sentence: "2 January 2006 at 15:04 MST".
func (t *Texts) MomentAt(at time.Time, zone *time.Location) string {
	return t.moment(at, zone, "date.moment_at")
}

// Due is an instant with its day of the week and the zone's name: "Monday, 2 January 2006, 15:04 (Asia/Kolkata)".
func (t *Texts) Due(at time.Time, zone *time.Location) string {
	at = at.In(zone)
	return t.finish(t.plain("date.due", map[string]any{"Weekday": t.plain("weekday."+strconv.Itoa(int(at.Weekday())), nil), "Date": t.date(at, "date.day"),
		"Time": t.clock(at), "Zone": t.apart(zone.String())}))
}

func (t *Texts) moment(at time.Time, zone *time.Location, key string) string {
	at = at.In(zone)
	return t.finish(t.plain(key, map[string]any{"Date": t.date(at, "date.day"), "Time": t.clock(at), "Zone": t.apart(at.Format("MST"))}))
}

func (t *Texts) day(at time.Time, key string) string { return t.finish(t.date(at, key)) }

func (t *Texts) plain(key string, values map[string]any) string { return t.text(key, nil, values) }

func (t *Texts) date(at time.Time, key string) string {
	month := "month."
	if key == "date.short" {
		month = "month_short."
	}
	return t.plain(key, map[string]any{"Day": t.own(strconv.Itoa(at.Day())), "Month": t.plain(month+strconv.Itoa(int(at.Month())), nil),
		"Year": t.own(strconv.Itoa(at.Year()))})
}

func (t *Texts) clock(at time.Time) string {
	return t.own(fmt.Sprintf("%02d:%02d", at.Hour(), at.Minute()))
}

func (t *Texts) own(figures string) string {
	if t.digits == nil {
		return figures
	}
	return t.digits.Replace(figures)
}
