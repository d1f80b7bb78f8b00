package clock_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

func TestPeriods(t *testing.T) {
	t.Parallel()
	from := time.Date(2028, 1, 31, 22, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"P1M":         "2028-02-29T22:30:00+00:00",
		"P1Y1M":       "2029-02-28T22:30:00+00:00",
		"P1W":         "2028-02-07T22:30:00+00:00",
		"P1M1D":       "2028-03-01T22:30:00+00:00",
		"P0D":         "2028-01-31T22:30:00+00:00",
		"PT90M":       "2028-02-01T00:00:00+00:00",
		"P1DT1H1M1S":  "2028-02-01T23:31:01+00:00",
		"PT0S":        "2028-01-31T22:30:00+00:00",
		"P":           "",
		"PT":          "",
		"P1DT":        "",
		"1M":          "",
		"-P1M":        "",
		"P-1M":        "",
		"P1H":         "",
		"P99999Y":     "",
		"P1M ":        "",
		"P0.5D":       "",
		"p1m":         "",
		"P1D1M":       "",
		"PT1H\x00":    "",
		"P1DT1H1M1SX": "",
	} {
		got, err := clock.AddPeriod("by", from, text)
		if want == "" {
			check.True(t, "it is refused", err != nil, "%q gives %v", text, got)
			continue
		}
		check.NoError(t, err, "%q", text)
		check.Equal(t, "the time", clock.Format(got, time.UTC), want, "by %q", text)
	}
}
