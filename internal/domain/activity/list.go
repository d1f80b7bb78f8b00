package activity

import (
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Filter chooses rows of the register.
type Filter struct {
	From, To clock.Date // both inclusive
	User     id.User    // 0: everybody
	Course   id.Course  // enrolled in it, whatever the enrollment's status; 0: any
	Few      []id.User  // the people of Course, where they are few (course.Few); nil: they are not
	Today    clock.Date // the platform's day on which people have to be students
}

// Position is a position in a list. Lists are ordered by date and then user.
type Position struct {
	Date clock.Date
	User id.User
}

// Listed is a row of the register with its student.
type Listed struct {
	Day
	Email, FirstName, LastName string
}

// epoch is the day from which cursors count dates.
var epoch = clock.Date{Year: 1970, Month: 1, Day: 1}

// Numbers returns the position as a cursor carries it.
func (p Position) Numbers() []int64 { return []int64{int64(epoch.DaysUntil(p.Date)), int64(p.User)} }

// PositionAt returns the position that Numbers wrote.
func PositionAt(day, user int64) Position { return Position{epoch.AddDays(int(day)), id.User(user)} }
