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

// Look is a person as one organization sees them at a moment.
type Look struct {
	Account student.Account
	Member  org.Member         // zero: none
	Held    []course.Enrolment // all of them, by id
}

// IsStudent says whether the membership or a current enrolment makes the person a student
// of the organization. Staff are none, whatever they are enrolled in.
func (l Look) IsStudent(today clock.Date) bool {
	return l.isStudent(func(e course.Enrolment) course.Standing { return e.Standing(today) })
}

func (l Look) isStudent(standing func(course.Enrolment) course.Standing) bool {
	if l.Member.Role.Staff() {
		return false
	}
	return l.Member.Status == org.MemberActive ||
		slices.ContainsFunc(l.Held, func(e course.Enrolment) bool { return standing(e).Current() })
}

// inScope says whether lists of work show the person's on the day: that of active members
// and of who has access, but not of staff.
func (l Look) inScope(on clock.Date) bool {
	return !l.Member.Role.Staff() && (l.Member.Status == org.MemberActive ||
		slices.ContainsFunc(l.Held, func(e course.Enrolment) bool { return e.HasAccess(on) }))
}

// Soon is the day by when a transaction that goes on now is over: in a minute.
func Soon(now time.Time, zone *time.Location) clock.Date {
	return clock.DateIn(now.Add(time.Minute), zone)
}

// ComesBack says whether the person's work may have been out of the scope of lists before
// the transaction, and is in it after: then it is owed to readers (result.OweRejoin). The
// calendar may have taken the person out and in again unnoticed, or do so while the
// transaction goes on: soon is Soon.
func ComesBack(before, after Look, today, soon clock.Date) bool {
	began := func(e course.Enrolment) bool { return e.HasAccess(today) && !e.LastTold(today).Access() }
	return after.inScope(soon) && (!before.inScope(today) || !before.inScope(soon) ||
		before.Member.Status != org.MemberActive && slices.ContainsFunc(before.Held, began))
}

// Changes lists the events that lead receivers from what they were told last to the
// person after. before is what a transaction found, after what it leaves. What the
// calendar did since something was told comes first, so that nobody hears of a renewal
// who did not hear of the end. The caller remembers what was told (course.Told).
func Changes(before, after Look, today clock.Date) []webhook.Event {
	if after.Member.Role.Staff() {
		return nil
	}
	n := news{today: today}
	n.byCalendar(before)
	was, is := before.IsStudent(today), after.IsStudent(today)
	if !was && is {
		n.add(webhook.StudentJoined, after.Account, NewRosterStudent(after.Account, after.Member, after.Held, today, time.UTC))
	}
	for _, e := range after.Held {
		i := slices.IndexFunc(before.Held, func(b course.Enrolment) bool { return b.ID == e.ID })
		if i < 0 {
			n.add(webhook.EnrollmentCreated, after.Account, newEnrolmentEvent(after.Account, e, today))
			continue
		}
		n.change(after.Account, newPlace(before.Held[i], today), e)
	}
	if was && !is {
		n.add(webhook.StudentLeft, after.Account, NewRosterStudent(after.Account, after.Member, after.Held, today, time.UTC))
	}
	return n.events
}

// Expiring lists the events of enrolments whose end comes near and of which that was not
// told; the caller remembers it (course.Enrolment.Warned).
func Expiring(l Look, today clock.Date) []webhook.Event {
	n := news{today: today}
	for _, e := range l.Held {
		if left := e.DaysLeft(today); left > 0 && !l.Member.Role.Staff() {
			data := newEnrolmentEvent(l.Account, e, today)
			data.DaysLeft = left
			n.add(webhook.EnrollmentExpiring, l.Account, data)
		}
	}
	return n.events
}

type news struct {
	today  clock.Date
	events []webhook.Event
}

func (n *news) add(t webhook.Type, a student.Account, data any) {
	n.events = append(n.events, webhook.Event{Type: t, User: a.ID, Data: data})
}

// byCalendar adds what differs between what was told and today.
func (n *news) byCalendar(l Look) {
	told := func(e course.Enrolment) course.Standing { return e.LastTold(n.today) }
	for _, e := range l.Held {
		then := newPlace(e, n.today)
		then.Status, then.HasAccess = told(e), told(e).Access()
		n.change(l.Account, then, e)
	}
	if l.isStudent(told) && !l.IsStudent(n.today) {
		n.add(webhook.StudentLeft, l.Account, NewRosterStudent(l.Account, l.Member, l.Held, n.today, time.UTC))
	}
}

// change adds the one event of an enrolment that was as then says: a move into an ended
// standing is enrollment.ended alone, whatever else changed with it.
func (n *news) change(a student.Account, then Place, e course.Enrolment) {
	data := newEnrolmentEvent(a, e, n.today)
	now := data.Enrollment.Place
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
