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

// Notified is what the receivers of events were told of an enrollment last. Whoever changes an
// enrollment, or finds that the calendar did, tells what differs from it and remembers.
type Notified struct {
	Status   EnrollmentStatus // "": nothing is known to have been told
	EndDates []clock.Date     // the end dates whose approach was told
}

// warnDays is how many days before the end date its approach is told (reference: webhooks#events).
const warnDays = 7

// DaysLeft is how many days before the end date the day today is, when the approach of
// the end is to be told: 1 to 7. 0: it is not, or was told.
func (e Enrollment) DaysLeft(today clock.Date) int {
	left := today.DaysUntil(e.EndDate)
	if e.Status(today) != EnrollmentActive || left < 1 || left > warnDays || slices.Contains(e.Notified.EndDates, e.EndDate) {
		return 0
	}
	return left
}

// MarkNotified is e after its standing on the day today was told.
func (e Enrollment) MarkNotified(today clock.Date) Enrollment {
	e.Notified.Status = e.Status(today)
	return e
}

// MarkExpiring is e after the approach of its end was told.
func (e Enrollment) MarkExpiring() Enrollment {
	e.Notified.EndDates = append(slices.Clone(e.Notified.EndDates), e.EndDate)
	return e
}

// NotifiedStatus is the standing that receivers believe in.
func (e Enrollment) NotifiedStatus(today clock.Date) EnrollmentStatus {
	if e.Notified.Status == "" {
		return e.Status(today)
	}
	return e.Notified.Status
}

// Differs says whether anything of the two is not the same.
func (e Enrollment) Differs(o Enrollment) bool {
	return e.ID != o.ID || e.State != o.State || e.Window != o.Window || e.Notified.Status != o.Notified.Status ||
		!slices.Equal(e.Notified.EndDates, o.Notified.EndDates)
}

// nextDay is the first day, today included, on which the calendar makes something of e
// that is to be told; zero for never.
func (e Enrollment) nextDay(today clock.Date) clock.Date {
	switch e.Status(today) {
	case EnrollmentPending:
		return e.StartDate
	case EnrollmentActive:
		warn := e.EndDate.AddDays(-warnDays)
		switch {
		case today == e.EndDate || slices.Contains(e.Notified.EndDates, e.EndDate):
			return e.EndDate.AddDays(1)
		case warn.Before(today):
			return today
		}
		return warn
	case EnrollmentGracePeriod:
		return e.GracePeriodEnd.AddDays(1)
	case EnrollmentExpired, EnrollmentSuspended, EnrollmentDropped, EnrollmentCompleted:
	}
	return clock.Date{}
}

// Change is what an administrator changes of an enrollment; nil stays.
type Change struct {
	State     *State
	StartDate *clock.Date
	EndDate   *clock.Date // moves the grace period with it
}

// Apply is e after the change. Invalid for dates in the wrong order.
func (c Change) Apply(e Enrollment, t Terms) (Enrollment, error) {
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

// Save queues the writing of an enrollment's state, dates and what was told of it, as of
// the day today. The caller holds the student's lock.
func Save(b *pg.Batch, org id.Organization, e Enrollment, today clock.Date, now time.Time) {
	queueUpdateEnrollment(b, org, e, today, now)
}

// Holder reads whose enrollment it is. NotFound outside the organization.
func Holder(ctx context.Context, q pg.Querier, org id.Organization, enrollment id.Enrollment) (id.User, error) {
	user, err := selectHolder(ctx, q, org, enrollment)
	if pg.None(err) {
		return 0, fault.New(fault.NotFound, "not_found", "the organization has no enrollment %d", enrollment)
	}
	return user, err
}

// Due is a student of whom the calendar has something to tell.
type Due struct {
	Organization id.Organization
	User         id.User
	Email        string // names the student's lock
}

// DueOn lists up to limit students in organizations with enrollments whose next day has
// come, in the order in which they came due. Those in skip are left out.
func DueOn(ctx context.Context, q pg.Querier, today clock.Date, skip []id.User, limit int) ([]Due, error) {
	return selectDue(ctx, q, today, skip, limit)
}
