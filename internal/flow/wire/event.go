package wire

import (
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// EnrollmentEvent is the data of the enrollment events; each carries one of the optional
// fields at most (shapes says which).
type EnrollmentEvent struct {
	Student        Person                  `json:"student"`
	Enrollment     EventEnrollment         `json:"enrollment"`
	Previous       *Previous               `json:"previous,omitempty" doc:"The fields that changed, with their old values"`
	PreviousStatus course.EnrollmentStatus `json:"previous_status,omitempty"`
	DaysLeft       int                     `json:"days_left,omitempty" doc:"1 to 7"`
}

// EventEnrollment is the enrollment of an event.
type EventEnrollment struct {
	EnrollmentState
	CourseType string `json:"course_type"`
}

// Previous holds the old values of the fields that changed, and no others.
type Previous struct {
	Status         *course.EnrollmentStatus `json:"status,omitempty"`
	StartDate      *clock.Date              `json:"start_date,omitempty"`
	EndDate        *clock.Date              `json:"end_date,omitempty"`
	GracePeriodEnd *clock.Date              `json:"grace_period_end,omitempty"`
	HasAccess      *bool                    `json:"has_access,omitempty"`
}

// NewEnrollmentEvent shows an enrollment and its student.
func NewEnrollmentEvent(a student.Account, e course.Enrollment, today clock.Date) EnrollmentEvent {
	return EnrollmentEvent{Student: NewPerson(a),
		Enrollment: EventEnrollment{EnrollmentState: NewEnrollmentState(e, today), CourseType: e.Course.Type}}
}

// NewPrevious compares two states of one enrollment.
func NewPrevious(before, after EnrollmentState) *Previous {
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
