package clock

import (
	"regexp"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

var period = regexp.MustCompile(`^P(?:(\d{1,4})Y)?(?:(\d{1,4})M)?(?:(\d{1,4})W)?(?:(\d{1,4})D)?(T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,7})S)?)?$`)

// AddPeriod adds a duration in ISO 8601, such as P1M, P7D or PT36H, in UTC: first years and months, to the month's
// last day at most, then the rest. Invalid, on the field.
func AddPeriod(field string, t time.Time, text string) (time.Time, error) {
	parts := period.FindStringSubmatch(text)
	if parts == nil || text[len(text)-1] == 'P' || text[len(text)-1] == 'T' {
		return t, fault.Field(field, "invalid", "%s: %.40q is no duration in ISO 8601; send one such as P1M, P7D or PT12H", field, text)
	}
	n := func(i int) int {
		n, _ := strconv.Atoi(parts[i]) // digits, or none
		return n
	}
	t = t.UTC()
	d := DateIn(t, time.UTC).AddMonths(12*n(1) + n(2)).AddDays(7*n(3) + n(4))
	clock := time.Duration(n(6))*time.Hour + time.Duration(n(7))*time.Minute + time.Duration(n(8))*time.Second
	return d.Time().Add(t.Sub(DateIn(t, time.UTC).Time())).Add(clock), nil
}
