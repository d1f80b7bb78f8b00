// Package notify decides what a change of a student means for those who follow it: which
// webhook events it makes, and whether the student's work has to be listed again.
//
// A flow reads a Snapshot before its change, makes another of what it leaves, and compares
// the two. What receivers were notified of last is kept with each enrollment (course.Notified).
package notify

import (
	"maps"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
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

// inScope says whether lists of results and assignments show the person's on the day. An enrollment that
// began counts once receivers were notified of it, as scope.Listed says.
func (s Snapshot) inScope(on clock.Date) bool {
	return s.includes(func(e course.Enrollment) bool {
		return e.HasAccess(on) && e.NotifiedStatus(on) != course.EnrollmentPending
	})
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
// transaction and is in it afterwards. The person's work then gets new positions, so that
// readers who follow a list see it (Relist). The calendar may take the person out of scope while
// the transaction runs, which is why commitDay (see CommitDay) counts as well as today. After
// the transaction, receivers were notified of all enrollments.
func Rejoins(before, after Snapshot, today, commitDay clock.Date) bool {
	access := func(e course.Enrollment) bool { return e.HasAccess(today) }
	return after.includes(access) && (!before.inScope(today) || !before.inScope(commitDay))
}

// Relist queues new positions, in their old order, for all work and final results of people who came
// back into the organization's scope, or may have. Nobody sees the work before its positions: both
// are committed at once. It has to come last, as it locks the organization's positions.
func Relist(b *pg.Batch, org id.Organization, users ...id.User) {
	RelistAll(b, map[id.Organization][]id.User{org: users})
}

// RelistAll is Relist for several organizations. It locks their positions in the order of all
// transactions: those of assignments first, and each by organization.
func RelistAll(b *pg.Batch, back map[id.Organization][]id.User) {
	maps.DeleteFunc(back, func(_ id.Organization, users []id.User) bool { return len(users) == 0 })
	orgs := slices.Sorted(maps.Keys(back))
	for _, org := range orgs {
		assignment.Relist(b, org, back[org])
	}
	for _, org := range orgs {
		result.Relist(b, org, back[org])
	}
}
