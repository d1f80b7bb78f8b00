package clock_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// A zone that is taken has a name of its own and writes timestamps that can be read back.
func FuzzZone(f *testing.F) {
	for _, name := range []string{"", "UTC", "Local", "Asia/Kolkata", "America/Havana", "../etc/passwd", "/etc/localtime", "Asia\\Kolkata",
		"asia/kolkata", "Etc/GMT+12", "posixrules", "\x00"} {
		f.Add(name, int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, name string, seconds int64) {
		zone, err := clock.Zone("tz", name)
		if err != nil {
			return
		}
		at := time.Unix(seconds%253402300799, 0) // up to the year 9999, as RFC 3339 goes
		if at.Year() < 1 {
			return
		}
		back, err := time.Parse(time.RFC3339, clock.Format(at, zone))
		if zoneSeconds(at, zone)%60 == 0 { // else RFC 3339 cannot say it
			check.NoError(t, err, "%s in %q", at.UTC(), name)
			check.True(t, "the time reads as it was written", back.Equal(at), "%q writes %s as %s", name, at.UTC(), clock.Format(at, zone))
		}
		day := clock.DateIn(at, zone)
		first := clock.DayStart(day, zone)
		check.False(t, "the day begins after one of its times", first.After(at), "in %q the day %s begins at %s, after %s", name, day, first, at)
		check.Equal(t, "the day of its first instant", clock.DateIn(first, zone), day, "in %q the day begins at %s", name, first)
	})
}

func zoneSeconds(at time.Time, zone *time.Location) int {
	_, offset := at.In(zone).Zone()
	return offset
}

// A date that is read is written the same, and its neighbours are a day away.
func FuzzParseDate(f *testing.F) {
	for _, text := range []string{"2026-11-21", "2024-02-29", "2026-02-29", "0001-01-01", "9999-12-31", "2026-1-1", "", "2026-11-21T00:00:00Z"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := clock.ParseDate(text)
		if err != nil {
			return
		}
		if check.Equal(t, "the date", d.String(), text, "%q is read as %s", text, d) {
			check.Equal(t, "days from the next day", d.AddDays(1).DaysUntil(d), -1, "%q is read as %s", text, d)
		}
	})
}
