// Package wire holds the shapes that responses and webhook events share, so
// that a student or an enrollment looks the same wherever it is shown.
package wire

import (
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Person is the `student` of enrollment events, assignments and results.
type Person struct {
	UserID    id.User       `json:"user_id"`
	Email     student.Email `json:"email"`
	FirstName string        `json:"first_name"`
	LastName  string        `json:"last_name"`
}

// Student is the `student` of the lookup.
type Student struct {
	Person
	HasSetPassword bool             `json:"has_set_password"`
	LastLogin      *clock.Timestamp `json:"last_login" doc:"Null before the first sign-in"`
}

// RosterStudent is an element of the list's `students`, and the data of student.joined
// and student.left.
type RosterStudent struct {
	Student
	JoinedAt    *clock.Timestamp `json:"joined_at" doc:"When the person became a member; null for a person who is enrolled and no member"`
	Membership  *Membership      `json:"membership" doc:"Null for a person who is enrolled and no member"`
	Enrollments []Enrollment     `json:"enrollments"`
}

// Membership is a `membership` without created and reactivated (reference: students#membership).
type Membership struct {
	Role   org.Role         `json:"role"`
	Status org.MemberStatus `json:"status"`
}

// Enrollment is one entry of `enrollments` (reference: courses#enrollment-fields).
type Enrollment struct {
	CourseType        string `json:"course_type"`
	CourseTypeDisplay string `json:"course_type_display"`
	IsDefaultCourse   bool   `json:"is_default_course"`
	EnrollmentState
}

// EnrollmentState is what enrollment entries and enrollment events have in common.
type EnrollmentState struct {
	EnrollmentID   id.Enrollment           `json:"enrollment_id" doc:"Stays the same across renewals"`
	CourseID       id.Course               `json:"course_id"`
	CourseName     string                  `json:"course_name"`
	Status         course.EnrollmentStatus `json:"status"`
	StartDate      clock.Date              `json:"start_date"`
	EndDate        clock.Date              `json:"end_date"`
	GracePeriodEnd clock.Date              `json:"grace_period_end"`
	HasAccess      bool                    `json:"has_access" doc:"Whether the course can be used today, the grace period included"`
}

// NewPerson shows an account.
func NewPerson(a student.Account) Person {
	return Person{UserID: a.ID, Email: a.Email, FirstName: a.FirstName, LastName: a.LastName}
}

// NewStudent shows an account, with its timestamps in loc.
func NewStudent(a student.Account, loc *time.Location) Student {
	return Student{Person: NewPerson(a), HasSetPassword: a.HasSetPassword(), LastLogin: clock.Stamp(a.LastLogin, loc)}
}

// NewRosterStudent shows an account with its membership, which may be the zero Member,
// and its enrollments in one organization.
func NewRosterStudent(a student.Account, m org.Member, held []course.Enrollment, today clock.Date, loc *time.Location) RosterStudent {
	s := RosterStudent{Student: NewStudent(a, loc), JoinedAt: clock.Stamp(m.JoinedAt, loc), Enrollments: make([]Enrollment, len(held))}
	if m.Role != "" {
		s.Membership = &Membership{m.Role, m.Status}
	}
	for i, e := range held {
		s.Enrollments[i] = NewEnrollment(e, today)
	}
	return s
}

// NewEnrollment shows an enrollment as it stands on the day today.
func NewEnrollment(e course.Enrollment, today clock.Date) Enrollment {
	return Enrollment{CourseType: e.Course.Type, CourseTypeDisplay: e.Course.TypeDisplay, IsDefaultCourse: e.Course.IsDefault,
		EnrollmentState: NewEnrollmentState(e, today)}
}

// NewEnrollmentState shows an enrollment as it is today.
func NewEnrollmentState(e course.Enrollment, today clock.Date) EnrollmentState {
	return EnrollmentState{EnrollmentID: e.ID, CourseID: e.Course.ID, CourseName: e.Course.Name, Status: e.Status(today),
		StartDate: e.StartDate, EndDate: e.EndDate, GracePeriodEnd: e.GracePeriodEnd, HasAccess: e.HasAccess(today)}
}
