package rest

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

type activityBody struct {
	Status      string        `json:"status"`
	From        clock.Date    `json:"from"`
	To          clock.Date    `json:"to"`
	DayTimeZone string        `json:"day_timezone"`
	Count       int           `json:"count"`
	HasMore     bool          `json:"has_more"`
	NextCursor  string        `json:"next_cursor"`
	Days        []activityDay `json:"days"`
}

// activityDay is the contract's daily activity row.
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
	ctx, q := r.Context(), readQuery(r)
	yesterday := clock.DateIn(s.Clock(), activity.Zone).AddDays(-1)
	f := activity.Filter{Course: q.course(), Today: s.today()}
	f.From, f.To = q.days(yesterday, mostActivityDays)
	limit, who := q.limit(1000, 500), q.who()
	if err := q.err(); err != nil {
		return err
	}
	at, err := s.start(ctx, q, "activity")
	if err != nil {
		return err
	}
	o := principal(ctx).Organization.ID
	if err := s.checkCourse(ctx, o, f.Course); err != nil {
		return err
	}
	if !who.Anybody() {
		a, err := student.Resolve(ctx, s.DB, o, who)
		if err != nil {
			return err
		}
		f.User = a.ID
	}
	rows, err := activity.List(ctx, s.DB, o, f, activity.PlaceAt(at.At(0), at.At(1)), limit+1)
	if err != nil {
		return err
	}
	rows, more := cut(rows, limit)
	if len(rows) > 0 {
		last := rows[len(rows)-1]
		at = activity.Place{Date: last.Date, User: last.User}.Numbers()
	}
	page, err := s.pageOf(ctx, q, "activity", len(rows), more, at)
	if err != nil {
		return err
	}
	body := activityBody{"ok", f.From, f.To, activity.Zone.String(), page.Count, page.HasMore, page.NextCursor, make([]activityDay, len(rows))}
	for i, l := range rows {
		body.Days[i] = activityDayOf(l, q.zone)
	}
	return edge.JSON(w, http.StatusOK, body)
}

// days reads from and to, which are the last 30 days up to usualTo where they are not
// sent, and no more than most days together. Those that are sent choose rows.
func (q *query) days(usualTo clock.Date, most int) (from, to clock.Date) {
	from, to = q.day("from"), q.day("to")
	if !from.IsZero() {
		q.filter("from", from.String())
	}
	if !to.IsZero() {
		q.filter("to", to.String())
	} else if to = usualTo; from.After(to) {
		to = from
	}
	if from.IsZero() {
		from = to.AddDays(1 - usualDays)
	}
	switch {
	case from.After(to):
		q.bad("from", "after_to", "it is after to; send a day that is not")
	case from.DaysUntil(to) >= most:
		q.bad("from", "range_too_long", "send %d days at most, both included", most)
	}
	return from, to
}
