package course

import (
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// State is what somebody decided about an enrollment. Status adds what the dates say.
type State = scope.State

// The states.
const (
	Running   = scope.Running
	Suspended = scope.Suspended
	Dropped   = scope.Dropped
	Completed = scope.Completed
)

// EnrollmentStatus follows from the state, the dates and today. It is not stored, but for what
// receivers of events were last sent (Notified).
type EnrollmentStatus string

// The statuses of an enrollment (reference: courses#enrollment-status).
const (
	EnrollmentActive      EnrollmentStatus = "active"
	EnrollmentGracePeriod EnrollmentStatus = "grace_period"
	EnrollmentPending     EnrollmentStatus = "pending"
	EnrollmentExpired     EnrollmentStatus = "expired"
	EnrollmentSuspended   EnrollmentStatus = "suspended"
	EnrollmentDropped     EnrollmentStatus = "dropped"
	EnrollmentCompleted   EnrollmentStatus = "completed"
)

// Window is the days of an enrollment; the first and the last belong to it.
type Window struct {
	StartDate      clock.Date
	EndDate        clock.Date
	GracePeriodEnd clock.Date // EndDate and the organization's grace days
}

// Enrollment is a student's place in a course. A student has at most one in each course,
// which keeps its id when it is renewed.
type Enrollment struct {
	ID     id.Enrollment
	User   id.User
	Course Course
	State  State
	// PartnerSuspended says of a suspended one that the organization's own key suspended it, and may lift
	// that.
	PartnerSuspended bool
	Source           string // of the last call that gave, renewed or extended access with one; else ""
	Window
	Notified Notified
}

// Grant is when an enrollment was made, or given or extended with a reference.
type Grant struct {
	Enrollment
	At  time.Time
	Ref string // "": the enrollment was made
}

// OfStudents reads the enrollments of several people in the organization, each list by id.
func OfStudents(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) (map[id.User][]Enrollment, error) {
	all, err := EnrollmentsOf(ctx, q, slices.Repeat([]id.Organization{org}, len(users)), users)
	of := make(map[id.User][]Enrollment, len(users))
	for i, held := range all {
		if len(held) > 0 {
			of[users[i]] = held
		}
	}
	return of, err
}

// Status is the enrollment's status on the day today.
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

// Access says whether the student can use the course.
func (s EnrollmentStatus) Access() bool { return s == EnrollmentActive || s == EnrollmentGracePeriod }

// Current says whether the student has access now or will have it without a renewal.
func (s EnrollmentStatus) Current() bool { return s.Access() || s == EnrollmentPending }

// Over says whether a change to the status is sent as enrollment.ended (reference:
// webhooks#events).
func (s EnrollmentStatus) Over() bool { return !s.Current() }

// HasAccess says whether the student can use the course on the day today: from the start
// to the last grace day, unless the enrollment is suspended, dropped or completed.
func (e Enrollment) HasAccess(today clock.Date) bool { return e.Status(today).Access() }

// Current says whether the enrollment is active, in its grace period or pending.
func (e Enrollment) Current(today clock.Date) bool { return e.Status(today).Current() }

// ended says whether the end date is over. The grace period may still go on.
func (e Enrollment) ended(today clock.Date) bool { return today.After(e.EndDate) }

// Length is how long access lasts: whole months or whole weeks.
type Length struct{ Months, Weeks int }

// After is the end date of access that begins on d, or that ended on d and is extended. A
// month later is the same day of that month, or its last day if it has no such day.
func (l Length) After(d clock.Date) clock.Date {
	if l.Weeks > 0 {
		return d.AddDays(7 * l.Weeks)
	}
	return d.AddMonths(l.Months)
}

// Terms are the organization's defaults for access.
type Terms struct {
	AccessMonths int // unless the call, the course or the type has a length
	GraceDays    int
}

// Length is how long access to the course lasts: the call's months (0: not sent), or else the course's
// weeks, its months, the type's months or the organization's, in this order (reference:
// courses#access-length).
func (c Course) Length(tenureMonths int, t Terms) Length {
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
