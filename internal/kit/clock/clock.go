// Package clock is the only source of "now", and holds the calendar arithmetic of
// dates that have no time of day.
//
// It embeds the time zone database, so that a zone name means the same in every image.
package clock

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"time"
	_ "time/tzdata" // a scratch image has no zoneinfo

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Clock tells the time. Programs use System; tests pass a function of their own.
type Clock func() time.Time

// System is the machine's clock, moved by the process's Config.
func System() time.Time { return time.Now().Add(offset) }

// offset is written once, before a program's work begins.
var offset time.Duration

// Config is a part of a program's configuration.
type Config struct {
	Offset time.Duration `env:"CLOCK_OFFSET" envDefault:"0s" help:"moves this program's clock, to try what happens when machines disagree on the time; never in production"`
}

// Set moves System for the whole process, and says so. A program calls it before its work begins.
func (c Config) Set(log *slog.Logger) {
	if c.Offset != 0 {
		log.Warn("CLOCK_OFFSET is set: this program's clock is not the machine's", "offset", c.Offset)
	}
	offset = c.Offset
}

// Pause waits so long. It fails as soon as ctx has ended.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Ticks is a loop whose body runs at each interval until ctx ends.
func Ticks(ctx context.Context, interval time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !yield() {
					return
				}
			}
		}
	}
}

// Every calls do at each interval until ctx ends, and then once more, with lastTime for it.
func Every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	for range Ticks(ctx, interval) {
		do(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	do(last)
}

const lastTime = 5 * time.Second

// At is a clock that stands still.
func At(t time.Time) Clock { return func() time.Time { return t } }

// wire is the form of a timestamp (reference: conventions#dates-and-times): seconds, and +00:00 rather than Z.
const wire = "2006-01-02T15:04:05-07:00"

// Format writes t as answers and events have it, in the zone loc (UTC as +00:00, never Z).
func Format(t time.Time, loc *time.Location) string { return t.In(loc).Format(wire) }

// Timestamp is a time that marshals in the form of the wire, in the zone it carries.
type Timestamp time.Time

// MarshalJSON implements json.Marshaler.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).AppendFormat(nil, `"`+wire+`"`), nil
}

// UnmarshalJSON implements json.Unmarshaler; any RFC 3339 offset is read.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	v, err := time.Parse(`"`+time.RFC3339+`"`, string(b))
	*t = Timestamp(v)
	return err
}

// Stamp is t in loc, ready for a response. The zero time is null.
func Stamp(t time.Time, loc *time.Location) *Timestamp {
	if t.IsZero() {
		return nil
	}
	s := Timestamp(t.In(loc))
	return &s
}

// OptionalStamp is Stamp of a time that there may be; nil is null.
func OptionalStamp(t *time.Time, loc *time.Location) *Timestamp {
	if t == nil {
		return nil
	}
	return Stamp(*t, loc)
}

// In is t in loc; nil stays nil.
func (t *Timestamp) In(loc *time.Location) *Timestamp {
	if t == nil {
		return nil
	}
	return Stamp(time.Time(*t), loc)
}

// instants are the forms of ISO 8601 in which a point in time may be sent, without their offset.
// A fraction of a second is read after any of them that has seconds.
var instants = []string{"2006-01-02T15:04:05", "2006-01-02T15:04"}

// offsets are the forms of an offset from UTC: Z, +05:30, +0530 and +05.
var offsets = []string{"Z07:00", "Z0700", "Z07"}

// ParseInstant reads a point in time in RFC 3339 or ISO 8601. One without an offset is meant in
// zone, and an error where zone is nil. So is a year that cannot be stored and written again in
// every zone (reference: conventions#dates-and-times).
func ParseInstant(s string, zone *time.Location) (time.Time, error) {
	for _, form := range instants {
		if zone != nil {
			if t, err := time.ParseInLocation(form, s, zone); err == nil {
				return checkYear(t)
			}
		}
		for _, offset := range offsets {
			if t, err := time.Parse(form+offset, s); err == nil {
				return checkYear(t)
			}
		}
	}
	return time.Time{}, fmt.Errorf("%q is no point in time in ISO 8601", s)
}

func checkYear(t time.Time) (time.Time, error) {
	if year := t.UTC().Year(); year < 1 || year > 9998 {
		return t, fmt.Errorf("the year %d is out of range", year)
	}
	return t, nil
}

// notInIANA are names that time.LoadLocation finds in a machine's folder of zones, where the IANA
// database has none: the machine's own zone, and copies of the database in other scales.
var notInIANA = regexp.MustCompile(`^(Local|localtime|posixrules|Factory|(posix|right)/.*)?$`)

// Zone finds a zone by its name in the IANA database. "" is refused: it means UTC to Go alone.
func Zone(field, name string) (*time.Location, error) {
	if !notInIANA.MatchString(name) {
		if loc, err := time.LoadLocation(name); err == nil {
			return loc, nil
		}
	}
	return nil, fault.Field(field, "unknown_time_zone",
		"%s: %q is no IANA time zone name; send one such as Asia/Kolkata, Europe/London or UTC", field, name)
}

// DayStart is the first instant of the day d in loc. Where a zone's clocks skip
// midnight, it is the first instant after the gap, while time.Date gives the day before.
func DayStart(d Date, loc *time.Location) time.Time {
	t := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, loc)
	if DateIn(t, loc) == d {
		// Clocks set back over midnight give the day two midnights: take the first.
		if e := t.Add(-time.Hour); DateIn(e, loc) == d {
			return firstInstant(e.Add(-2*time.Hour), t, d, loc)
		}
		return t
	}
	return firstInstant(t, t.Add(26*time.Hour), d, loc)
}

// firstInstant searches (before, in] for the first second that lies on d.
func firstInstant(before, in time.Time, d Date, loc *time.Location) time.Time {
	for in.Sub(before) > time.Second {
		mid := before.Add(in.Sub(before) / 2).Truncate(time.Second)
		if mid.Equal(before) {
			break
		}
		if DateIn(mid, loc).Before(d) {
			before = mid
		} else {
			in = mid
		}
	}
	return in
}

// Date is a calendar day without a zone. The zero Date is no day.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf makes a Date, normalising as time.Date does.
func DateOf(year int, month time.Month, day int) Date {
	return dateOf(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
}

// DateIn is the day on which t falls in loc.
func DateIn(t time.Time, loc *time.Location) Date { return dateOf(t.In(loc)) }

func dateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// ParseDate reads YYYY-MM-DD and nothing else.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Date{}, fmt.Errorf("%q is no date of the form YYYY-MM-DD", s)
	}
	return dateOf(t), nil
}

// Time is midnight UTC of the day, for arithmetic and storage.
func (d Date) Time() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }

// IsZero says whether d is no day at all.
func (d Date) IsZero() bool { return d == Date{} }

// String writes YYYY-MM-DD.
func (d Date) String() string { return d.Time().Format(time.DateOnly) }

// Before says whether d is earlier than o.
func (d Date) Before(o Date) bool { return d.Compare(o) < 0 }

// After says whether d is later than o.
func (d Date) After(o Date) bool { return d.Compare(o) > 0 }

// Compare is -1, 0 or 1.
func (d Date) Compare(o Date) int { return d.Time().Compare(o.Time()) }

// AddDays moves by whole days.
func (d Date) AddDays(n int) Date { return dateOf(d.Time().AddDate(0, 0, n)) }

// AddMonths moves by calendar months, clamped to the month's last day:
// 31 January + 1 month is 28 or 29 February, where time.AddDate gives March.
func (d Date) AddMonths(n int) Date {
	first := time.Date(d.Year, d.Month+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return Date{first.Year(), first.Month(), min(d.Day, last)}
}

// DaysUntil counts the days from d to o, negative when o is earlier.
func (d Date) DaysUntil(o Date) int { return int(o.Time().Sub(d.Time()) / (24 * time.Hour)) }

// Later is the later one of two days.
func Later(a, b Date) Date {
	if a.Before(b) {
		return b
	}
	return a
}
