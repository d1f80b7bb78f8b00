package activity_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/activity"
)

func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05.999", "2026-11-20 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// Reference: activity#activity-rows.
func TestSum(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []activity.Event
		want   activity.Totals
	}{
		"one visit": {
			[]activity.Event{{at("10:00:00"), activity.Visit}},
			activity.Totals{FirstSeenAt: at("10:00:00"), LastSeenAt: at("10:00:00"), Visits: 1, ActiveMinutes: 1}},
		"an hour's work, in any order": {
			[]activity.Event{
				{at("10:59:59"), activity.TestCompleted}, {at("10:00:30"), activity.PageView}, {at("10:00:01"), activity.Visit},
				{at("10:01:30"), activity.Heartbeat}, {at("10:02:30"), activity.Heartbeat}, {at("10:02:31"), activity.TestStarted}},
			activity.Totals{FirstSeenAt: at("10:00:01"), LastSeenAt: at("10:59:59"), Visits: 1, ActiveMinutes: 4, PageViews: 1,
				TestsStarted: 1, TestsCompleted: 1}},
		"an event twice counts once": {
			[]activity.Event{{at("10:00:00"), activity.PageView}, {at("10:00:00"), activity.Visit}, {at("10:00:00"), activity.PageView}},
			activity.Totals{FirstSeenAt: at("10:00:00"), LastSeenAt: at("10:00:00"), Visits: 1, ActiveMinutes: 1, PageViews: 1}},
		"two in one second are two": {
			[]activity.Event{{at("10:00:00.1"), activity.PageView}, {at("10:00:00.2"), activity.PageView}},
			activity.Totals{FirstSeenAt: at("10:00:00.1"), LastSeenAt: at("10:00:00.2"), ActiveMinutes: 1, PageViews: 2}},
		"minutes are the clock's": {
			[]activity.Event{{at("10:00:59"), activity.Heartbeat}, {at("10:01:00"), activity.Heartbeat}},
			activity.Totals{FirstSeenAt: at("10:00:59"), LastSeenAt: at("10:01:00"), ActiveMinutes: 2}},
	} {
		if got := activity.Sum(c.events); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
