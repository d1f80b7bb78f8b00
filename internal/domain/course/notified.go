package course

import (
	"context"
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Notified is what the events so far say of an enrollment. A flow that changes an enrollment,
// or finds that its dates changed its status, sends what differs and saves the new Notified.
type Notified struct {
	Status   EnrollmentStatus // "": not known
	EndDates []clock.Date     // for which enrollment.expiring was sent
}

// warnDays is how many days before the end date enrollment.expiring is sent (reference:
// webhooks#events).
const warnDays = 7

// DaysLeft is the number of days until the end date, 1 to 7, when enrollment.expiring is due;
// 0 when it is not, or was already sent for this end date.
func (e Enrollment) DaysLeft(today clock.Date) int {
	left := today.DaysUntil(e.EndDate)
	if e.Status(today) != EnrollmentActive || left < 1 || left > warnDays || slices.Contains(e.Notified.EndDates, e.EndDate) {
		return 0
	}
	return left
}

// MarkNotified returns e with its status of the day today as notified.
func (e Enrollment) MarkNotified(today clock.Date) Enrollment {
	e.Notified.Status = e.Status(today)
	return e
}

// MarkExpiring returns e with its end date as notified.
func (e Enrollment) MarkExpiring() Enrollment {
	e.Notified.EndDates = append(slices.Clone(e.Notified.EndDates), e.EndDate)
	return e
}

// NotifiedStatus is the status that receivers know; today's when none is known.
func (e Enrollment) NotifiedStatus(today clock.Date) EnrollmentStatus {
	if e.Notified.Status == "" {
		return e.Status(today)
	}
	return e.Notified.Status
}

// Differs says whether the two have another id, state, PartnerSuspended, window or Notified.
func (e Enrollment) Differs(o Enrollment) bool {
	return e.ID != o.ID || e.State != o.State || e.PartnerSuspended != o.PartnerSuspended || e.Window != o.Window || e.Notified.Status != o.Notified.Status ||
		!slices.Equal(e.Notified.EndDates, o.Notified.EndDates)
}

// nextDay is the first day, from today on, on which the dates alone make an event due; zero
// for never.
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

// Change is an administrator's change of an enrollment; what is nil stays as it is.
type Change struct {
	State     *State
	StartDate *clock.Date
	EndDate   *clock.Date // moves the grace period with it
}

// Apply returns e with the change. Invalid when the end date is before the start date or too
// far away.
func (c Change) Apply(e Enrollment, t Terms) (Enrollment, error) {
	if c.State != nil { // a suspension is the administrator's from now on
		e.State, e.PartnerSuspended = *c.State, false
	}
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

// Holder reads whose enrollment it is. NotFound for one of another organization.
func Holder(ctx context.Context, q pg.Querier, org id.Organization, enrollment id.Enrollment) (id.User, error) {
	user, err := selectHolder(ctx, q, org, enrollment)
	if pg.None(err) {
		return 0, fault.New(fault.NotFound, "not_found", "the organization has no enrollment %d", enrollment)
	}
	return user, err
}

// Due is an enrollment of which the dates alone make an event due, and whose it is.
type Due struct {
	DuePosition
	User  id.User
	Email string // names the student's lock
}

// DuePosition is the place of an enrollment among those that are due; the zero DuePosition is before all.
type DuePosition struct {
	Day          clock.Date
	Organization id.Organization
	Enrollment   id.Enrollment
}
