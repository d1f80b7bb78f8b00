package directory

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Which names a list of students.
type Which string

// The lists. The first four have a figure of Figures.
const (
	WithAccess    Which = "access"    // can use a course today; whose access ends first
	Expiring      Which = "expiring"  // a running enrollment ends within daysOfExpiring; whose ends first
	AtRisk        Which = "at_risk"   // an active plan is at risk; by account
	Joined        Which = "joined"    // members since daysOfJoined; who came last
	Pending       Which = "pending"   // an enrollment begins after today; whose begins first
	Expired       Which = "expired"   // the grace period of an enrollment is over; whose ended last
	Suspended     Which = "suspended" // an enrollment of this state, as the next two; by course and account
	Dropped       Which = "dropped"
	Completed     Which = "completed"
	NeverSignedIn Which = "never" // active members whose account the organization made and nobody has used; by account
)

// Whiches are all lists.
func Whiches() []Which {
	return []Which{WithAccess, Expiring, AtRisk, Joined, Pending, Expired, Suspended, Dropped, Completed, NeverSignedIn}
}

// OfCourse says whether the list can be one of a single course.
func (w Which) OfCourse() bool { return w != AtRisk && w != Joined && w != NeverSignedIn }

// Filter says who is in a list, and when.
type Filter struct {
	Which  Which     // "" with a Course: everybody who was ever enrolled in it
	Course id.Course // 0: any
	Today  clock.Date
	Now    time.Time
}

// What "soon" and "lately" are, in days.
const (
	daysOfExpiring = 7
	daysOfJoined   = 7
)

// Figures are how many students are in each list.
type Figures struct{ WithAccess, Expiring, AtRisk, Joined int }

// Count counts the organization's students on today, a day of the platform's zone. It takes longer the more there
// are: about 0.2 s for 300,000.
func Count(ctx context.Context, q pg.Querier, org id.Organization, today clock.Date, now time.Time) (Figures, error) {
	return selectFigures(ctx, q, org, today, now.AddDate(0, 0, -daysOfJoined))
}

// ListPosition is where a page of a list ended; the zero ListPosition is before all. It is the key of the last row in the
// list's own order.
type ListPosition struct {
	at     int64 // a day, or microseconds
	course int64
	last   id.User
}

// String is the place in an address; "" for none.
func (p ListPosition) String() string {
	if p.last == 0 {
		return ""
	}
	return strconv.FormatInt(p.at, 10) + "-" + strconv.FormatInt(p.course, 10) + "-" + strconv.FormatInt(int64(p.last), 10)
}

// What a position may hold that somebody made up: days and instants that PostgreSQL has.
const maxDay, maxInstant = 1 << 20, 1 << 52

// ParseListPosition reads what String wrote; anything else is the zero ListPosition.
func ParseListPosition(text string) ListPosition {
	parts := strings.Split(text, "-")
	if len(parts) != 3 {
		return ListPosition{}
	}
	var n [3]int64
	for i, part := range parts {
		var err error
		if n[i], err = strconv.ParseInt(part, 10, 64); err != nil || n[i] < 0 || i == 0 && n[i] > maxInstant {
			return ListPosition{}
		}
	}
	if n[2] == 0 {
		return ListPosition{}
	}
	return ListPosition{at: n[0], course: n[1], last: id.User(n[2])}
}

// List reads up to limit students of the list behind after, each once. next is where the next page begins, the zero
// ListPosition when there is none.
func List(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after ListPosition, limit int) (found []Person, next ListPosition, err error) {
	if f.Which != Joined && after.at > maxDay {
		after = ListPosition{}
	}
	rows, err := selectList(ctx, q, org, f, after, limit+1)
	if err != nil {
		return nil, ListPosition{}, err
	}
	for _, r := range rows[:min(limit, len(rows))] {
		found = append(found, r.Person)
		next = ListPosition{at: r.At, course: r.Course, last: r.ID}
	}
	if len(rows) <= limit {
		next = ListPosition{}
	}
	return found, next, nil
}

// Size is how many students the list has, and Most+1 for more than Most.
func Size(ctx context.Context, q pg.Querier, org id.Organization, f Filter) (int, error) {
	return countList(ctx, q, org, f, Most+1)
}
