package wire

import (
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Snapshot is a person as one organization sees them at a moment.
type Snapshot struct {
	Account     student.Account
	Member      org.Member          // zero: none
	Enrollments []course.Enrollment // all of them, by id
}

// IsStudent says whether the membership or a current enrollment makes the person a student
// of the organization. Staff are none, whatever they are enrolled in.
func (l Snapshot) IsStudent(today clock.Date) bool {
	return l.isStudent(func(e course.Enrollment) course.EnrollmentStatus { return e.Status(today) })
}

func (l Snapshot) isStudent(status func(course.Enrollment) course.EnrollmentStatus) bool {
	if l.Member.Role.Staff() {
		return false
	}
	return l.Member.Status == org.MemberActive ||
		slices.ContainsFunc(l.Enrollments, func(e course.Enrollment) bool { return status(e).Current() })
}

// inScope says whether lists of work show the person's on the day: that of active members
// and of who has access, but not of staff.
func (l Snapshot) inScope(on clock.Date) bool {
	return !l.Member.Role.Staff() && (l.Member.Status == org.MemberActive ||
		slices.ContainsFunc(l.Enrollments, func(e course.Enrollment) bool { return e.HasAccess(on) }))
}

// SettledBy is the day by when a transaction that goes on now is over: in a minute.
func SettledBy(now time.Time, zone *time.Location) clock.Date {
	return clock.DateIn(now.Add(time.Minute), zone)
}

// ComesBack says whether the person's work may have been out of the scope of lists before
// the transaction, and is in it after: then it is owed to readers (result.QueueRejoin). The
// calendar may have taken the person out and in again unnoticed, or do so while the
// transaction goes on: soon is SettledBy.
func ComesBack(before, after Snapshot, today, soon clock.Date) bool {
	began := func(e course.Enrollment) bool { return e.HasAccess(today) && !e.NotifiedStatus(today).Access() }
	return after.inScope(soon) && (!before.inScope(today) || !before.inScope(soon) ||
		before.Member.Status != org.MemberActive && slices.ContainsFunc(before.Enrollments, began))
}

// Changes lists the events that lead receivers from what they were told last to the
// person after. before is what a transaction found, after what it leaves. What the
// calendar did since something was told comes first, so that nobody hears of a renewal
// who did not hear of the end. The caller remembers what was told (course.Notified).
func Changes(before, after Snapshot, today clock.Date) []webhook.Event {
	if after.Member.Role.Staff() {
		return nil
	}
	n := notifications{today: today}
	n.byCalendar(before)
	was, is := before.IsStudent(today), after.IsStudent(today)
	if !was && is {
		n.add(webhook.StudentJoined, after.Account, NewRosterStudent(after.Account, after.Member, after.Enrollments, today, time.UTC))
	}
	for _, e := range after.Enrollments {
		i := slices.IndexFunc(before.Enrollments, func(b course.Enrollment) bool { return b.ID == e.ID })
		if i < 0 {
			n.add(webhook.EnrollmentCreated, after.Account, newEnrollmentEvent(after.Account, e, today))
			continue
		}
		n.change(after.Account, newEnrollmentState(before.Enrollments[i], today), e)
	}
	if was && !is {
		n.add(webhook.StudentLeft, after.Account, NewRosterStudent(after.Account, after.Member, after.Enrollments, today, time.UTC))
	}
	return n.events
}

// Expiring lists the events of enrollments whose end comes near and of which that was not
// told; the caller remembers it (course.Enrollment.MarkExpiring).
func Expiring(l Snapshot, today clock.Date) []webhook.Event {
	n := notifications{today: today}
	for _, e := range l.Enrollments {
		if left := e.DaysLeft(today); left > 0 && !l.Member.Role.Staff() {
			data := newEnrollmentEvent(l.Account, e, today)
			data.DaysLeft = left
			n.add(webhook.EnrollmentExpiring, l.Account, data)
		}
	}
	return n.events
}

type notifications struct {
	today  clock.Date
	events []webhook.Event
}

func (n *notifications) add(t webhook.Type, a student.Account, data any) {
	n.events = append(n.events, webhook.Event{Type: t, User: a.ID, Data: data})
}

// byCalendar adds what differs between what was told and today.
func (n *notifications) byCalendar(l Snapshot) {
	notified := func(e course.Enrollment) course.EnrollmentStatus { return e.NotifiedStatus(n.today) }
	for _, e := range l.Enrollments {
		then := newEnrollmentState(e, n.today)
		then.Status, then.HasAccess = notified(e), notified(e).Access()
		n.change(l.Account, then, e)
	}
	if l.isStudent(notified) && !l.IsStudent(n.today) {
		n.add(webhook.StudentLeft, l.Account, NewRosterStudent(l.Account, l.Member, l.Enrollments, n.today, time.UTC))
	}
}

// change adds the one event of an enrollment that was as then says: a move into an ended
// standing is enrollment.ended alone, whatever else changed with it.
func (n *notifications) change(a student.Account, then EnrollmentState, e course.Enrollment) {
	data := newEnrollmentEvent(a, e, n.today)
	now := data.Enrollment.EnrollmentState
	switch {
	case now == then:
	case now.Status != then.Status && now.Status.Over():
		data.PreviousStatus = then.Status
		n.add(webhook.EnrollmentEnded, a, data)
	default:
		data.Previous = NewPrevious(then, now)
		n.add(webhook.EnrollmentUpdated, a, data)
	}
}
