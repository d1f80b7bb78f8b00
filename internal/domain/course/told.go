package course

import (
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Told is what the receivers of events were told of an enrolment last. Whoever changes an
// enrolment, or finds that the calendar did, tells what differs from it and remembers.
type Told struct {
	Standing Standing     // "": nothing is known to have been told
	Ends     []clock.Date // the end dates whose approach was told
}

// warnDays is how many days before the end date its approach is told (contract:
// enrollment.expiring).
const warnDays = 7

// DaysLeft is how many days before the end date the day today is, when the approach of
// the end is to be told: 1 to 7. 0: it is not, or was told.
func (e Enrolment) DaysLeft(today clock.Date) int {
	left := today.DaysUntil(e.EndDate)
	if e.Standing(today) != StandingActive || left < 1 || left > warnDays || slices.Contains(e.Told.Ends, e.EndDate) {
		return 0
	}
	return left
}

// Heard is e after its standing on the day today was told.
func (e Enrolment) Heard(today clock.Date) Enrolment {
	e.Told.Standing = e.Standing(today)
	return e
}

// Warned is e after the approach of its end was told.
func (e Enrolment) Warned() Enrolment {
	e.Told.Ends = append(slices.Clone(e.Told.Ends), e.EndDate)
	return e
}

// LastTold is the standing that receivers believe in.
func (e Enrolment) LastTold(today clock.Date) Standing {
	if e.Told.Standing == "" {
		return e.Standing(today)
	}
	return e.Told.Standing
}

// Differs says whether anything of the two is not the same.
func (e Enrolment) Differs(o Enrolment) bool {
	return e.ID != o.ID || e.State != o.State || e.Window != o.Window || e.Told.Standing != o.Told.Standing ||
		!slices.Equal(e.Told.Ends, o.Told.Ends)
}

// nextDay is the first day, today included, on which the calendar makes something of e
// that is to be told; zero for never.
func (e Enrolment) nextDay(today clock.Date) clock.Date {
	switch e.Standing(today) {
	case StandingPending:
		return e.StartDate
	case StandingActive:
		warn := e.EndDate.AddDays(-warnDays)
		switch {
		case today == e.EndDate || slices.Contains(e.Told.Ends, e.EndDate):
			return e.EndDate.AddDays(1)
		case warn.Before(today):
			return today
		}
		return warn
	case StandingGracePeriod:
		return e.GracePeriodEnd.AddDays(1)
	case StandingExpired, StandingSuspended, StandingDropped, StandingCompleted:
	}
	return clock.Date{}
}

// Change is what an administrator changes of an enrolment; nil stays.
type Change struct {
	State     *State
	StartDate *clock.Date
	EndDate   *clock.Date // moves the grace period with it
}

// Apply is e after the change. Invalid for dates in the wrong order.
func (c Change) Apply(e Enrolment, t Terms) (Enrolment, error) {
	set(&e.State, c.State)
	set(&e.StartDate, c.StartDate)
	if c.EndDate != nil && *c.EndDate != e.EndDate {
		e.Window = t.window(e.StartDate, *c.EndDate)
	}
	switch {
	case e.EndDate.Before(e.StartDate):
		return e, fault.Field("end_date", "invalid", "end_date: %v is before start_date %v", e.EndDate, e.StartDate)
	case e.GracePeriodEnd.Year > lastYear || e.StartDate.Year < 1:
		return e, fault.Field("end_date", "invalid", "end_date: send a year up to %d", lastYear)
	}
	return e, nil
}

// Save queues the writing of an enrolment's state, dates and what was told of it, as of
// the day today. The caller holds the student's lock.
func Save(b *pg.Batch, org id.Organization, e Enrolment, today clock.Date, now time.Time) {
	queueUpdateEnrolment(b, org, e, today, now)
}

// Holder reads whose enrolment it is. NotFound outside the organization.
func Holder(ctx context.Context, q pg.Querier, org id.Organization, enrolment id.Enrolment) (id.User, error) {
	user, err := selectHolder(ctx, q, org, enrolment)
	if pg.None(err) {
		return 0, fault.New(fault.NotFound, "not_found", "the organization has no enrolment %d", enrolment)
	}
	return user, err
}

// Due is a student of whom the calendar has something to tell.
type Due struct {
	Organization id.Organization
	User         id.User
	Email        string // names the student's lock
}

// DueOn lists up to limit students in organizations with enrolments whose next day has
// come, in the order in which they came due. Those in skip are left out.
func DueOn(ctx context.Context, q pg.Querier, today clock.Date, skip []id.User, limit int) ([]Due, error) {
	return selectDue(ctx, q, today, skip, limit)
}
