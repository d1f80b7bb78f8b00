package wire

import (
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// EnrolmentEvent is the data of the enrollment events; each carries one of the optional
// fields at most.
type EnrolmentEvent struct {
	Student        Person          `json:"student"`
	Enrollment     EventEnrolment  `json:"enrollment"`
	Previous       *Previous       `json:"previous,omitempty"`        // enrollment.updated
	PreviousStatus course.Standing `json:"previous_status,omitempty"` // enrollment.ended
	DaysLeft       int             `json:"days_left,omitempty"`       // enrollment.expiring: 1 to 7
}

// EventEnrolment is the enrolment of an event.
type EventEnrolment struct {
	Place
	CourseType string `json:"course_type"`
}

// Previous holds the old values of the fields that changed, and no others.
type Previous struct {
	Status         *course.Standing `json:"status,omitempty"`
	StartDate      *clock.Date      `json:"start_date,omitempty"`
	EndDate        *clock.Date      `json:"end_date,omitempty"`
	GracePeriodEnd *clock.Date      `json:"grace_period_end,omitempty"`
	HasAccess      *bool            `json:"has_access,omitempty"`
}

// newEnrolmentEvent shows an enrolment and its student.
func newEnrolmentEvent(a student.Account, e course.Enrolment, today clock.Date) EnrolmentEvent {
	return EnrolmentEvent{Student: NewPerson(a),
		Enrollment: EventEnrolment{Place: newPlace(e, today), CourseType: e.Course.Type}}
}

// NewPrevious compares two looks of one enrolment.
func NewPrevious(before, after Place) *Previous {
	return &Previous{
		Status:         changed(before.Status, after.Status),
		StartDate:      changed(before.StartDate, after.StartDate),
		EndDate:        changed(before.EndDate, after.EndDate),
		GracePeriodEnd: changed(before.GracePeriodEnd, after.GracePeriodEnd),
		HasAccess:      changed(before.HasAccess, after.HasAccess),
	}
}

func changed[T comparable](before, after T) *T {
	if before == after {
		return nil
	}
	return &before
}
