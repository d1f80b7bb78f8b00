package rest

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// activityHead is what stands before the days of an answer.
type activityHead struct {
	Status      string     `json:"status"`
	From        clock.Date `json:"from"`
	To          clock.Date `json:"to"`
	DayTimeZone string     `json:"day_timezone"`
	Count       int        `json:"count"`
	HasMore     bool       `json:"has_more"`
	NextCursor  string     `json:"next_cursor"`
}

// activityDay is one row (reference: activity#activity-rows).
type activityDay struct {
	Student        wire.Person      `json:"student"`
	Date           clock.Date       `json:"date"`
	FirstSeenAt    *clock.Timestamp `json:"first_seen_at"`
	LastSeenAt     *clock.Timestamp `json:"last_seen_at"`
	Visits         int              `json:"visits"`
	ActiveMinutes  int              `json:"active_minutes"`
	PageViews      int              `json:"page_views"`
	TestsStarted   int              `json:"tests_started"`
	TestsCompleted int              `json:"tests_completed"`
}

func activityDayOf(l activity.Listed, loc *time.Location) activityDay {
	return activityDay{wire.Person{UserID: l.User, Email: student.Email(l.Email), FirstName: l.FirstName, LastName: l.LastName}, l.Date,
		clock.Stamp(l.FirstSeenAt, loc), clock.Stamp(l.LastSeenAt, loc), l.Visits, l.ActiveMinutes, l.PageViews, l.TestsStarted, l.TestsCompleted}
}

const (
	mostActivityDays = 366
	usualDays        = 30
)

// listActivity answers GET /activity/daily/.
func (s *Server) listActivity(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	yesterday := clock.DateIn(s.Clock(), activity.Zone).AddDays(-1)
	f := activity.Filter{Course: q.course(), Today: s.today()}
	f.From, f.To = q.days(yesterday, mostActivityDays)
	usual := q.Text("from") == ""
	var begin page.Position
	if usual { // the cursor of an empty first page, too, says from which day on
		begin = activity.Position{Date: f.From}.Numbers()
	}
	ctx, who := r.Context(), q.student()
	return edge.List[activity.Listed]{
		Cursors: s.Cursors, Reads: s.Reads, Organization: principal(ctx).Organization.ID, Name: "activity", Array: "days", Limit: q.Limit(1000, 500), Begin: begin,
		Read: func(db *pg.DB, after page.Position, limit int, each func(activity.Listed) error) error {
			n, err := s.narrow(ctx, db, f.Course, who)
			if err != nil {
				return err
			}
			f.User, f.Few = n.user, n.few
			if usual && len(after) > 0 {
				f.From = goesOn(f, activity.PositionAt(after.At(0), after.At(1)).Date)
			}
			found, err := activity.List(ctx, db, n.org, f, activity.PositionAt(after.At(0), after.At(1)), limit)
			return edge.Each(found, err, each)
		},
		Position: func(l activity.Listed) page.Position { return activity.Position{Date: l.Date, User: l.User}.Numbers() },
		Show:     func(l activity.Listed) any { return activityDayOf(l, q.zone) },
		Head: func(p edge.Page) any {
			return activityHead{p.Status, f.From, f.To, activity.Zone.String(), p.Count, p.HasMore, p.NextCursor}
		},
	}.Answer(w, r, q.Query)
}

// goesOn is the first day of a walk that has come to the day reached and whose from was
// not sent: the usual first day moves with the calendar, and would leave out the days that
// it has passed since, as far as one call may show them.
func goesOn(f activity.Filter, reached clock.Date) clock.Date {
	if earliest := f.To.AddDays(1 - mostActivityDays); reached.Before(earliest) {
		reached = earliest
	}
	if reached.Before(f.From) {
		return reached
	}
	return f.From
}

// days reads from and to, which are the last 30 days up to usualTo where they are not
// sent, and no more than most days together. Those that are sent choose rows.
func (q *query) days(usualTo clock.Date, most int) (from, to clock.Date) {
	from, to = q.Day("from"), q.Day("to")
	if !from.IsZero() {
		q.Filter("from", from.String())
	}
	if !to.IsZero() {
		q.Filter("to", to.String())
	} else if to = usualTo; from.After(to) {
		to = from
	}
	if from.IsZero() {
		from = to.AddDays(1 - usualDays)
	}
	switch {
	case from.After(to):
		q.Fault("from", "after_to", "it is after to; send a day that is not")
	case from.DaysUntil(to) >= most:
		q.Fault("from", "range_too_long", "send %d days at most, both included", most)
	}
	return from, to
}
