package plan_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Clocks skip midnight in Havana, Santiago and Cairo on the days given, and Apia went
// without 30 December 2011.
func TestDaysInZonesThatSkipMidnightOrADay(t *testing.T) {
	date := clock.DateOf
	for name, c := range map[string]struct {
		zone  string
		d     clock.Date
		opens string // UTC
		due   string
	}{
		"Havana":             {"America/Havana", date(2027, 3, 14), "2027-03-14T05:00:00Z", "2027-03-15T03:59:00Z"},
		"Havana, day before": {"America/Havana", date(2027, 3, 13), "2027-03-13T05:00:00Z", "2027-03-14T04:59:00Z"},
		"Santiago":           {"America/Santiago", date(2027, 9, 5), "2027-09-05T04:00:00Z", "2027-09-06T02:59:00Z"},
		"Cairo":              {"Africa/Cairo", date(2027, 4, 30), "2027-04-29T22:00:00Z", "2027-04-30T20:59:00Z"},
		"Kiritimati":         {"Pacific/Kiritimati", date(2027, 1, 1), "2026-12-31T10:00:00Z", "2027-01-01T09:59:00Z"},
		"Apia":               {"Pacific/Apia", date(2011, 12, 31), "2011-12-30T10:00:00Z", "2011-12-31T09:59:00Z"},
		"Apia, day before":   {"Pacific/Apia", date(2011, 12, 29), "2011-12-29T10:00:00Z", "2011-12-30T09:59:00Z"},
		"Kolkata":            {"Asia/Kolkata", date(2027, 3, 1), "2027-02-28T18:30:00Z", "2027-03-01T18:29:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			zone, err := clock.Zone("zone", c.zone)
			if err != nil {
				t.Fatal(err)
			}
			opens := clock.DayStart(c.d, zone)
			if got := opens.UTC().Format(time.RFC3339); got != c.opens {
				t.Errorf("opens %s, want %s", got, c.opens)
			}
			if got := plan.DueAt(c.d, zone).UTC().Format(time.RFC3339); got != c.due {
				t.Errorf("due %s, want %s", got, c.due)
			}
			s := newStory(t, ielts, "7", 0)
			s.plan.Zone, s.plan.FirstDay, s.plan.LastDay = zone, c.d, c.d.AddDays(30)
			if got := plan.NextRun(s.plan, opens.Add(-time.Second)); !got.Equal(opens) {
				t.Errorf("next run at %v, want %v", got, opens)
			}
			before := plan.Decide(s.plan, nil, nil, s.papers, opens.Add(-time.Second))
			check.Equal(check.Now(t), "number of steps", len(before), 1, "a second before the day: %+v", before)
			check.Equal(check.Now(t), "what the first step does", before[0].Do, plan.Schedule, "a second before the day: %+v", before)
			check.Equal(check.Now(t), "the first step's day of opening", before[0].Test.OpensOn, c.d, "a second before the day: %+v", before)
			_, tests := plan.Apply(s.plan, nil, before)
			if at := plan.Decide(s.plan, tests, nil, s.papers, opens); check.Equal(t, "number of steps", len(at), 1, "at the day's first instant: %+v", at) &&
				check.Equal(t, "what the first step does", at[0].Do, plan.OpenTest, "at the day's first instant: %+v", at) {
				check.Equal(t, "the first step's day of opening", at[0].Test.OpensOn, c.d, "at the day's first instant: %+v", at)
			}
		})
	}
}
