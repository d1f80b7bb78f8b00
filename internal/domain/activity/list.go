package activity

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Filter chooses rows of the register.
type Filter struct {
	From, To clock.Date // both inclusive
	User     id.User    // 0: everybody
	Course   id.Course  // enrolled in it, whatever the enrollment's status; 0: any
	Few      []id.User  // the people of Course, where they are few (course.Few); nil: they are not
	Today    clock.Date // the platform's: decides who is a student
}

// Position is where a row stands in a list: lists are ordered by date and then user.
type Position struct {
	Date clock.Date
	User id.User
}

// Listed is a row of the register with the student's particulars.
type Listed struct {
	Day
	Email, FirstName, LastName string
}

// List reads up to limit rows after the place, of the organization's active members in
// the student role and of those who are enrolled with access, without staff.
func List(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after Position, limit int) ([]Listed, error) {
	return selectListed(ctx, q, org, f, after, limit)
}

// epoch is what dates are counted from in a cursor.
var epoch = clock.Date{Year: 1970, Month: 1, Day: 1}

// Numbers is the place as a cursor carries it.
func (p Position) Numbers() []int64 { return []int64{int64(epoch.DaysUntil(p.Date)), int64(p.User)} }

// PositionAt is the place that Numbers wrote; the zero Position for none.
func PositionAt(day, user int64) Position { return Position{epoch.AddDays(int(day)), id.User(user)} }
