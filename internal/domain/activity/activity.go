// Package activity is the attendance register: what students did on each day.
//
// The platform reports events as they happen (Record). They are stored in partitions, one for each day, for
// RawDays. When a day is over, the worker closes and compiles it (CompileDue): it makes one row for each
// student, and organizations read these rows (List). Events that arrive for a closed day are late: they are
// stored and reported as late, and count when the day is compiled again (Compile).
//
// A day is always one of India Standard Time (reference: activity#activity-days).
package activity

import (
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Zone is where days begin and end.
var Zone = func() *time.Location {
	loc, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		panic(err) // package clock embeds the zones
	}
	return loc
}()

const (
	// RawDays is for how many days before today events are accepted and kept.
	RawDays = 92
	// clockSkew is how far the platform's clock may be ahead.
	clockSkew = 5 * time.Minute
	// settle is how long after its end a day is closed, so that its last events have arrived.
	settle = 5 * time.Minute
)

// Kind is what a user did.
type Kind string

// The kinds.
const (
	Visit         Kind = "visit"          // came to the platform
	PageView      Kind = "page_view"      // opened a page
	Heartbeat     Kind = "heartbeat"      // still there, with the page in front
	TestStarted   Kind = "test_started"   // began a test
	TestCompleted Kind = "test_completed" // finished a test
)

// kinds returns all kinds.
func kinds() []Kind { return []Kind{Visit, PageView, Heartbeat, TestStarted, TestCompleted} }

// Event is one thing that a user did. Two events of a user with the same kind and time, to the microsecond,
// are the same event.
type Event struct {
	At   time.Time
	Kind Kind
}

// Totals are the sums of a student's events of one day.
type Totals struct {
	FirstSeenAt, LastSeenAt time.Time
	Visits                  int
	ActiveMinutes           int // minutes of the clock with at least one event
	PageViews               int
	TestsStarted            int
	TestsCompleted          int
}

// Sum returns the totals of one student's events of one day. There must be at least one; they may be in any
// order, and an event that is there twice counts once.
func Sum(events []Event) Totals {
	events = slices.Clone(events)
	slices.SortFunc(events, func(a, b Event) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return slices.Index(kinds(), a.Kind) - slices.Index(kinds(), b.Kind)
	})
	t := Totals{FirstSeenAt: events[0].At, LastSeenAt: events[len(events)-1].At}
	var minute time.Time
	for i, e := range events {
		if i > 0 && e.Kind == events[i-1].Kind && e.At.Equal(events[i-1].At) {
			continue
		}
		if m := e.At.Truncate(time.Minute); !m.Equal(minute) {
			minute = m
			t.ActiveMinutes++
		}
		t.count(e.Kind)
	}
	return t
}

func (t *Totals) count(k Kind) {
	switch k {
	case Visit:
		t.Visits++
	case PageView:
		t.PageViews++
	case TestStarted:
		t.TestsStarted++
	case TestCompleted:
		t.TestsCompleted++
	case Heartbeat:
	}
}

// Report is an event as the platform sent it.
type Report struct {
	Index        int    // in the call
	Organization string // slug
	User         id.User
	Event
}

// check returns the fault of the report by itself, or nil.
func (r Report) check(now time.Time) *fault.Error {
	switch oldest := clock.DateIn(now, Zone).AddDays(-RawDays); {
	case r.Organization == "":
		return fault.Field("organization", "missing", "organization: required; send the organization's slug")
	case r.User < 1:
		return fault.Field("user_id", "not_an_id", "user_id: send the user's id, a positive whole number")
	case !slices.Contains(kinds(), r.Kind):
		return fault.Field("kind", "not_a_choice", "kind: send one of visit, page_view, heartbeat, test_started, test_completed")
	case r.At.After(now.Add(clockSkew)):
		return fault.Field("at", "in_the_future", "at: it is ahead of the clock; send when the event happened, with its offset")
	case clock.DateIn(r.At, Zone).Before(oldest):
		return fault.Field("at", "too_old", "at: events are taken for %d days, and the oldest day is now %s", RawDays, oldest)
	}
	return nil
}

// end returns the first instant after the day.
func end(day clock.Date) time.Time { return clock.DayStart(day.AddDays(1), Zone) }

// lastOver returns the latest day that may be closed.
func lastOver(now time.Time) clock.Date { return clock.DateIn(now.Add(-settle), Zone).AddDays(-1) }
