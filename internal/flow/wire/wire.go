// Package wire holds the contract's shapes that responses and webhook events share, so
// that a student or an enrolment looks the same wherever it is shown.
package wire

import (
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Person is the `student` of enrolment events, assignments and results.
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
	LastLogin      *clock.Timestamp `json:"last_login"`
}

// RosterStudent is an element of the list's `students`, and the data of student.joined
// and student.left.
type RosterStudent struct {
	Student
	JoinedAt    *clock.Timestamp `json:"joined_at"`  // null for who is enrolled and no member
	Membership  *Membership      `json:"membership"` // likewise
	Enrollments []Enrolment      `json:"enrollments"`
}

// Membership is the contract's `membership` where it has no created and reactivated.
type Membership struct {
	Role   org.Role         `json:"role"`
	Status org.MemberStatus `json:"status"`
}

// Enrolment is the contract's enrolment entry.
type Enrolment struct {
	CourseType        string `json:"course_type"`
	CourseTypeDisplay string `json:"course_type_display"`
	IsDefaultCourse   bool   `json:"is_default_course"`
	Place
}

// Place is what enrolment entries and enrolment events have in common.
type Place struct {
	EnrollmentID   id.Enrolment    `json:"enrollment_id"`
	CourseID       id.Course       `json:"course_id"`
	CourseName     string          `json:"course_name"`
	Status         course.Standing `json:"status"`
	StartDate      clock.Date      `json:"start_date"`
	EndDate        clock.Date      `json:"end_date"`
	GracePeriodEnd clock.Date      `json:"grace_period_end"`
	HasAccess      bool            `json:"has_access"`
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
// and its enrolments in one organization.
func NewRosterStudent(a student.Account, m org.Member, held []course.Enrolment, today clock.Date, loc *time.Location) RosterStudent {
	s := RosterStudent{Student: NewStudent(a, loc), JoinedAt: clock.Stamp(m.JoinedAt, loc), Enrollments: make([]Enrolment, len(held))}
	if m.Role != "" {
		s.Membership = &Membership{m.Role, m.Status}
	}
	for i, e := range held {
		s.Enrollments[i] = NewEnrolment(e, today)
	}
	return s
}

// NewEnrolment shows an enrolment as it stands on the day today.
func NewEnrolment(e course.Enrolment, today clock.Date) Enrolment {
	return Enrolment{CourseType: e.Course.Type, CourseTypeDisplay: e.Course.TypeDisplay, IsDefaultCourse: e.Course.IsDefault,
		Place: newPlace(e, today)}
}

func newPlace(e course.Enrolment, today clock.Date) Place {
	return Place{EnrollmentID: e.ID, CourseID: e.Course.ID, CourseName: e.Course.Name, Status: e.Standing(today),
		StartDate: e.StartDate, EndDate: e.EndDate, GracePeriodEnd: e.GracePeriodEnd, HasAccess: e.HasAccess(today)}
}
