// Package notify decides what a change of a student means for those who follow it: which
// webhook events it makes, and whether the student's results have to be listed again.
//
// A flow reads a Snapshot before its change, makes another of what it leaves, and compares
// the two. What receivers were notified of last is kept with each enrollment (course.Notified).
package notify

import (
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Snapshot is what an organization has of a person at a moment.
type Snapshot struct {
	Account     student.Account
	Member      org.Member          // zero: no membership
	Enrollments []course.Enrollment // all of them, by id
}

// IsStudent says whether an active membership or a current enrollment makes the person a
// student of the organization. Staff are never students, whatever they are enrolled in.
func (s Snapshot) IsStudent(today clock.Date) bool {
	return s.isStudent(func(e course.Enrollment) course.EnrollmentStatus { return e.Status(today) })
}

func (s Snapshot) isStudent(status func(course.Enrollment) course.EnrollmentStatus) bool {
	return s.includes(func(e course.Enrollment) bool { return status(e).Current() })
}

// inScope says whether lists of results and assignments show the person's on the day.
func (s Snapshot) inScope(on clock.Date) bool {
	return s.includes(func(e course.Enrollment) bool { return e.HasAccess(on) })
}

// includes is scope.Includes for the enrollments that count.
func (s Snapshot) includes(counts func(course.Enrollment) bool) bool {
	return scope.Includes(s.Member.Role.Staff(), s.Member.Status == org.MemberActive, slices.ContainsFunc(s.Enrollments, counts))
}

// CommitDay is the last day on which a transaction that runs now may be committed: it has a
// minute.
func CommitDay(now time.Time, zone *time.Location) clock.Date {
	return clock.DateIn(now.Add(time.Minute), zone)
}

// Rejoins says whether the person may have been out of the scope of lists before the
// transaction and is in it afterwards. The person's results then get new positions, so that
// readers who follow the list see them (result.QueueRejoin). The calendar may have taken the
// person out of scope and back unnoticed, or may do so while the transaction runs, which is
// why commitDay (see CommitDay) counts as well as today.
func Rejoins(before, after Snapshot, today, commitDay clock.Date) bool {
	began := func(e course.Enrollment) bool { return e.HasAccess(today) && !e.NotifiedStatus(today).Access() }
	return after.inScope(commitDay) && (!before.inScope(today) || !before.inScope(commitDay) ||
		before.Member.Status != org.MemberActive && slices.ContainsFunc(before.Enrollments, began))
}
