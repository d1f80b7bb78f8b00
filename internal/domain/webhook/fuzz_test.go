package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// A receiver can ask for a pause and never for one that lies in the past; what it writes as a
// date is understood as net/http writes it.
func FuzzParseRetryAfter(f *testing.F) {
	now := time.Date(2027, 2, 28, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{"", "0", "120", " 7 ", "-1", "1.5", "99999999999999999999", "Sun, 28 Feb 2027 12:01:00 GMT", "Sun, 28 Feb 2027 11:00:00 GMT",
		"Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 30 Feb 2027 12:00:00 GMT", "tomorrow", "1e3", "١٢", "120\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		pause := webhook.ParseRetryAfter(value, now)
		if pause < 0 {
			t.Errorf("%q is a pause of %s", value, pause)
		}
		at := now.Add(pause).Truncate(time.Second)
		if at.Year() <= 9999 && pause == pause.Truncate(time.Second) {
			check.Equal(t, "the pause as a date", webhook.ParseRetryAfter(at.Format(http.TimeFormat), now), pause, "%q", value)
		}
	})
}
