package course

import (
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// What an organization's own key may do to an enrollment (reference: courses#end-suspend-resume). Each
// rule is pure: it returns e as it is afterwards, and e itself where there is nothing to do. Conflict
// (suspended_by_platform) protects the suspensions of administrators, and (enrollment_over) says that
// there is no access to change.

// End ends access today: the enrollment is dropped, and today is its end date if it was a later one. From
// tomorrow on a provisioning call renews it, and a call that is repeated today does not.
func End(e Enrollment, t Terms, today clock.Date) (Enrollment, error) {
	switch {
	case e.State == Suspended && !e.PartnerSuspended:
		return e, errPlatformSuspended
	case e.over(today):
		return e, nil
	}
	if last := clock.Later(today, e.StartDate); last.Before(e.EndDate) {
		e.Window = t.window(e.StartDate, last)
	}
	e.State, e.PartnerSuspended = Dropped, false
	return e, nil
}

// Shorten moves the end date to an earlier day, today or later, and the grace period with it. Invalid for
// any other day.
func Shorten(end clock.Date) func(Enrollment, Terms, clock.Date) (Enrollment, error) {
	return func(e Enrollment, t Terms, today clock.Date) (Enrollment, error) {
		switch {
		case e.State == Suspended && !e.PartnerSuspended:
			return e, errPlatformSuspended
		case e.over(today):
			return e, errOver
		case end == e.EndDate:
			return e, nil
		case end.After(e.EndDate):
			return e, fault.Field("end_date", "after_the_end",
				"end_date: access ends on %v already; to extend it, send extend_access to POST /provision/student/", e.EndDate)
		case end.Before(today), end.Before(e.StartDate):
			return e, fault.Field("end_date", "in_the_past",
				"end_date: send a day from %v on, or leave it out to end access now", clock.Later(today, e.StartDate))
		}
		e.Window = t.window(e.StartDate, end)
		return e, nil
	}
}

// Suspend takes access away until Resume.
func Suspend(e Enrollment, _ Terms, today clock.Date) (Enrollment, error) {
	switch {
	case e.State == Suspended:
		return e, nil
	case e.over(today):
		return e, errOver
	}
	e.State, e.PartnerSuspended = Suspended, true
	return e, nil
}

// Resume lifts a suspension by Suspend. The dates stay, and may be over by now.
func Resume(e Enrollment, _ Terms, _ clock.Date) (Enrollment, error) {
	switch {
	case e.State == Running:
		return e, nil
	case e.State != Suspended:
		return e, errOver
	case !e.PartnerSuspended:
		return e, errPlatformSuspended
	}
	e.State, e.PartnerSuspended = Running, false
	return e, nil
}

// over says whether there is no access and will be none without a renewal or Resume.
func (e Enrollment) over(today clock.Date) bool {
	return e.State != Suspended && !e.Current(today)
}

var (
	errPlatformSuspended = fault.New(fault.Conflict, "suspended_by_platform",
		"the platform's administrator has suspended the enrollment; ask there to change it")
	errOver = fault.New(fault.Conflict, "enrollment_over",
		"the enrollment is over, so there is no access to change; POST /provision/student/ renews it")
)
