package clock_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

func date(t *testing.T, s string) clock.Date {
	t.Helper()
	d, err := clock.ParseDate(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAddMonthsClampsToTheLastDay(t *testing.T) {
	for _, c := range []struct {
		from string
		n    int
		want string
	}{
		{"2026-01-31", 1, "2026-02-28"},
		{"2028-01-31", 1, "2028-02-29"},
		{"2026-01-15", 12, "2027-01-15"},
		{"2026-12-31", 2, "2027-02-28"},
		{"2028-02-29", 12, "2029-02-28"},
		{"2026-03-31", -1, "2026-02-28"},
		{"2026-08-31", 120, "2036-08-31"},
	} {
		if got := date(t, c.from).AddMonths(c.n).String(); got != c.want {
			t.Errorf("%s + %d months = %s, want %s", c.from, c.n, got, c.want)
		}
	}
}

func TestDayStartIsTheFirstInstantOfTheDay(t *testing.T) {
	for _, c := range []struct{ zone, day, want string }{
		{"UTC", "2026-11-21", "2026-11-21T00:00:00+00:00"},
		{"Asia/Kolkata", "2026-11-21", "2026-11-21T00:00:00+05:30"},
		{"America/Havana", "2026-03-08", "2026-03-08T01:00:00-04:00"},   // midnight is skipped
		{"America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00"}, // midnight is skipped
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00"},   // midnight comes twice
		{"Pacific/Kiritimati", "2026-11-21", "2026-11-21T00:00:00+14:00"},
	} {
		loc, err := clock.Zone("tz", c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := clock.Format(clock.DayStart(date(t, c.day), loc), loc); got != c.want {
			t.Errorf("%s begins in %s at %s, want %s", c.day, c.zone, got, c.want)
		}
	}
}

func TestDayStartProperty(t *testing.T) {
	zones := []string{"UTC", "America/Havana", "America/Santiago", "Africa/Cairo", "Asia/Beirut",
		"Europe/London", "Pacific/Apia", "Pacific/Kiritimati", "America/Sao_Paulo", "Asia/Kolkata"}
	rapid.Check(t, func(rt *rapid.T) {
		loc, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(rt, "zone"))
		if err != nil {
			rt.Fatal(err)
		}
		d := clock.DateOf(2012, 1, 1).AddDays(rapid.IntRange(0, 9000).Draw(rt, "day"))
		start := clock.DayStart(d, loc)
		if got := clock.DateIn(start, loc); got != d {
			if d == clock.DateOf(2011, 12, 30) {
				return
			}
			rt.Fatalf("%v in %v starts on %v", d, loc, got)
		}
		if before := clock.DateIn(start.Add(-time.Second), loc); !before.Before(d) {
			rt.Fatalf("a second before the start of %v in %v it is %v", d, loc, before)
		}
	})
}

// Reference: conventions#dates-and-times.
func TestTimestampNeverPrintsZ(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 0, 0, 123, time.UTC)
	b, err := json.Marshal(clock.Stamp(at, time.UTC))
	check.NoError(check.Now(t), err, "%s, %v", b, err)
	check.Equal(check.Now(t), "the JSON", string(b), `"2026-11-21T08:00:00+00:00"`, "%s, %v", b, err)
	var back clock.Timestamp
	if err := json.Unmarshal(b, &back); check.NoError(check.Now(t), err, "back = %v, %v", time.Time(back), err) {
		check.True(check.Now(t), "the time is read back to the second", time.Time(back).Equal(at.Truncate(time.Second)), "back = %v, %v", time.Time(back), err)
	}
	if clock.Stamp(time.Time{}, time.UTC) != nil {
		t.Fatal("the zero time is not null")
	}
}

// Reference: conventions#dates-and-times.
func TestZoneRefusesWhatIsNoName(t *testing.T) {
	for _, name := range []string{"", "Local", "localtime", "posixrules", "Factory", "right/UTC", "posix/Asia/Kolkata", "Mars/Olympus", "../etc/passwd", "+05:30"} {
		if _, err := clock.Zone("tz", name); err == nil {
			t.Errorf("zone %q is accepted", name)
		}
	}
}

// Reference: conventions#dates-and-times.
func TestInstantsInISO8601(t *testing.T) {
	kolkata, err := clock.Zone("tz", "Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{ // as read in Kolkata; "": refused
		"2026-11-21T10:00:00Z":           "2026-11-21T10:00:00Z",
		"2026-11-21T10:00:00.25Z":        "2026-11-21T10:00:00.25Z",
		"2026-11-21T10:00Z":              "2026-11-21T10:00:00Z",
		"2026-11-21T10:00:00+00":         "2026-11-21T10:00:00Z",
		"2026-11-21T10:00:00+0000":       "2026-11-21T10:00:00Z",
		"2026-11-21T10:00:00+00:00":      "2026-11-21T10:00:00Z",
		"2026-11-21T15:30+0530":          "2026-11-21T10:00:00Z",
		"2026-11-21T05:00-05":            "2026-11-21T10:00:00Z",
		"2026-11-21T15:30:00":            "2026-11-21T10:00:00Z",
		"2026-11-21T15:30":               "2026-11-21T10:00:00Z",
		"2026-11-21 10:00:00Z":           "",
		"2026-11-21T10Z":                 "",
		"2026-11-21T24:00:00Z":           "",
		"2026-02-29T10:00:00Z":           "",
		"2026-11-21T10:00:00+05:30:00":   "",
		"2026-11-21T10:00:00 Asia/Tokyo": "",
		"9999-12-31T23:59:59Z":           "",
		"0001-01-01T00:00:00+14:00":      "",
		"2026-11-21":                     "",
		"":                               "",
	} {
		got := ""
		if at, err := clock.ParseInstant(text, kolkata); err == nil {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"2026-11-21T15:30:00", "2026-11-21T15:30"} {
		if at, err := clock.ParseInstant(text, nil); err == nil {
			t.Errorf("%q has no offset and no zone, and is read as %v", text, at)
		}
	}
}

func TestDateJSON(t *testing.T) {
	var v struct{ A, B clock.Date }
	if err := json.Unmarshal([]byte(`{"A":"2026-02-28","B":null}`), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	check.NoError(check.Now(t), err, "%s, %v", b, err)
	check.Equal(check.Now(t), "the JSON", string(b), `{"A":"2026-02-28","B":null}`, "%s, %v", b, err)
	if err := json.Unmarshal([]byte(`{"A":"2026-02-30"}`), &v); err == nil {
		t.Fatal("30 February is accepted")
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		began, ticks, calls := time.Now(), 0, 0
		for range clock.Ticks(ctx, time.Second) {
			if ticks++; ticks == 2 {
				break
			}
		}
		check.Equal(t, "the time of two ticks", time.Since(began), 2*time.Second, "")
		check.NoError(t, clock.Pause(ctx, time.Second), "")
		check.Equal(t, "the time after a pause", time.Since(began), 3*time.Second, "")
		for range clock.Ticks(ctx, 400*time.Millisecond) {
			ticks++
		}
		check.Equal(t, "ticks", ticks, 3, "")
		check.True(t, "a pause fails", clock.Pause(ctx, time.Hour) != nil, "")
		clock.Every(ctx, time.Hour, func(last context.Context) {
			calls++
			check.NoError(t, last.Err(), "")
		})
		check.Equal(t, "calls of Every", calls, 1, "")
		check.Equal(t, "the time at the end", time.Since(began), 3500*time.Millisecond, "")
	})
}
