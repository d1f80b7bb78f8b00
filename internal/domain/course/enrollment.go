package course

import (
	"context"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// State is what a person decided about an enrollment; it is stored.
type State = scope.State

// The states.
const (
	Running   = scope.Running
	Suspended = scope.Suspended
	Dropped   = scope.Dropped
	Completed = scope.Completed
)

// EnrollmentStatus is derived from the state, the dates
// and today, and never stored.
type EnrollmentStatus string

// The standings (reference: courses#enrollment-status).
const (
	EnrollmentActive      EnrollmentStatus = "active"
	EnrollmentGracePeriod EnrollmentStatus = "grace_period"
	EnrollmentPending     EnrollmentStatus = "pending"
	EnrollmentExpired     EnrollmentStatus = "expired"
	EnrollmentSuspended   EnrollmentStatus = "suspended"
	EnrollmentDropped     EnrollmentStatus = "dropped"
	EnrollmentCompleted   EnrollmentStatus = "completed"
)

// Window is the days of access, all of them inclusive.
type Window struct {
	StartDate      clock.Date
	EndDate        clock.Date
	GracePeriodEnd clock.Date // EndDate and the organization's grace days
}

// Enrollment is a student's place in a course. There is one for a student and a course,
// and its id stays the same across renewals.
type Enrollment struct {
	ID     id.Enrollment
	User   id.User
	Course Course
	State  State
	Window
	Notified Notified
}

// OfStudent lists the user's enrollments in the organization by id.
func OfStudent(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Enrollment, error) {
	return selectOfStudent(ctx, q, org, user)
}

// OfStudents reads the enrollments of several people in the organization, each one's by id.
func OfStudents(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) (map[id.User][]Enrollment, error) {
	all, err := selectOfStudents(ctx, q, org, users)
	of := make(map[id.User][]Enrollment, len(users))
	for _, e := range all {
		of[e.User] = append(of[e.User], e)
	}
	return of, err
}

// EnrollmentStatus is the status on the day today.
func (e Enrollment) Status(today clock.Date) EnrollmentStatus {
	switch {
	case e.State != Running:
		return EnrollmentStatus(e.State)
	case today.Before(e.StartDate):
		return EnrollmentPending
	case !today.After(e.EndDate):
		return EnrollmentActive
	case !today.After(e.GracePeriodEnd):
		return EnrollmentGracePeriod
	}
	return EnrollmentExpired
}

// Access says whether the standing lets the student use the course.
func (s EnrollmentStatus) Access() bool { return s == EnrollmentActive || s == EnrollmentGracePeriod }

// Current says whether the standing makes its holder a student with access, now or later.
func (s EnrollmentStatus) Current() bool { return s.Access() || s == EnrollmentPending }

// Over says whether a move into the standing ends the enrollment (reference: webhooks#events).
func (s EnrollmentStatus) Over() bool { return !s.Current() }

// HasAccess says whether the student can use the course on the day today: from the start
// to the last grace day, unless the enrollment is suspended, dropped or completed.
func (e Enrollment) HasAccess(today clock.Date) bool { return e.Status(today).Access() }

// Current says whether the enrollment is active, in its grace period or scheduled: what
// makes its holder a student with access.
func (e Enrollment) Current(today clock.Date) bool { return e.Status(today).Current() }

// ended says whether the paid days are over. The grace period counts as over.
func (e Enrollment) ended(today clock.Date) bool { return today.After(e.EndDate) }

// Length is how long access lasts: whole months or whole weeks.
type Length struct{ Months, Weeks int }

// After is the day on which access that begins or goes on at d ends. A month later is the
// same day of that month, or its last day where it has no such day.
func (l Length) After(d clock.Date) clock.Date {
	if l.Weeks > 0 {
		return d.AddDays(7 * l.Weeks)
	}
	return d.AddMonths(l.Months)
}

// Terms are the organization's defaults for access.
type Terms struct {
	AccessMonths int // where neither the call nor the course nor the type says
	GraceDays    int
}

// length is the call's months, else the course's weeks, else its months, else the type's,
// else the organization's.
func (c Course) length(tenureMonths int, t Terms) Length {
	switch {
	case tenureMonths > 0:
		return Length{Months: tenureMonths}
	case c.DefaultAccessWeeks > 0:
		return Length{Weeks: c.DefaultAccessWeeks}
	case c.DefaultAccessMonths > 0:
		return Length{Months: c.DefaultAccessMonths}
	case c.TypeAccessMonths > 0:
		return Length{Months: c.TypeAccessMonths}
	}
	return Length{Months: t.AccessMonths}
}

func (t Terms) window(start, end clock.Date) Window {
	return Window{StartDate: start, EndDate: end, GracePeriodEnd: end.AddDays(t.GraceDays)}
}
