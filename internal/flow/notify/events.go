package notify

import (
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Changes lists the events that lead receivers from their last notification to the person as
// in after (reference: webhooks#events). before is what the transaction read, after what it
// leaves. What the calendar did since the last notification comes first: receivers see an
// enrollment end before they see it renewed. The caller stores what receivers know now
// (course.Enrollment.MarkNotified).
func Changes(before, after Snapshot, today clock.Date) []webhook.Event {
	if after.Member.Role.Staff() {
		return nil
	}
	events := byCalendar(before, today)
	was, is := before.IsStudent(today), after.IsStudent(today)
	if !was && is {
		events = append(events, Joined(after, today))
	}
	for _, e := range after.Enrollments {
		i := slices.IndexFunc(before.Enrollments, func(b course.Enrollment) bool { return b.ID == e.ID })
		if i < 0 {
			events = append(events, event(webhook.EnrollmentCreated, after.Account, wire.NewEnrollmentEvent(after.Account, e, today)))
			continue
		}
		events = append(events, enrollmentChange(after.Account, wire.NewEnrollmentState(before.Enrollments[i], today), e, today)...)
	}
	if was && !is {
		events = append(events, left(after, today))
	}
	return events
}

// Expiring lists the events of enrollments whose end comes near and whose receivers were not
// notified of that. The caller stores that they are now (course.Enrollment.MarkExpiring).
func Expiring(s Snapshot, today clock.Date) (events []webhook.Event) {
	for _, e := range s.Enrollments {
		if days := e.DaysLeft(today); days > 0 && !s.Member.Role.Staff() {
			data := wire.NewEnrollmentEvent(s.Account, e, today)
			data.DaysLeft = days
			events = append(events, event(webhook.EnrollmentExpiring, s.Account, data))
		}
	}
	return events
}

// Joined is the event of a person who has become a student.
func Joined(s Snapshot, today clock.Date) webhook.Event {
	return event(webhook.StudentJoined, s.Account, wire.NewRosterStudent(s.Account, s.Member, s.Enrollments, today, time.UTC))
}

func left(s Snapshot, today clock.Date) webhook.Event {
	return event(webhook.StudentLeft, s.Account, wire.NewRosterStudent(s.Account, s.Member, s.Enrollments, today, time.UTC))
}

// Assigned shows work that was just assigned, with its timestamps in UTC, and the event of it.
func Assigned(made assignment.Assignment, who student.Account, item catalog.Item, now time.Time) (wire.Assignment, webhook.Event) {
	a := wire.NewAssignment(assignment.Listed{
		Assignment: made,
		Email:      string(who.Email),
		FirstName:  who.FirstName,
		LastName:   who.LastName,
		ItemTitle:  item.Title,
		ItemType:   item.Type,
	}, now, time.UTC)
	return a, event(webhook.AssignmentCreated, who, a)
}

func event(t webhook.Type, about student.Account, data any) webhook.Event {
	return webhook.Event{Type: t, User: about.ID, Data: data}
}

// byCalendar lists the events of what the calendar did since the last notification.
func byCalendar(s Snapshot, today clock.Date) (events []webhook.Event) {
	notified := func(e course.Enrollment) course.EnrollmentStatus { return e.NotifiedStatus(today) }
	for _, e := range s.Enrollments {
		before := wire.NewEnrollmentState(e, today)
		before.Status, before.HasAccess = notified(e), notified(e).Access()
		events = append(events, enrollmentChange(s.Account, before, e, today)...)
	}
	if s.isStudent(notified) && !s.IsStudent(today) {
		events = append(events, left(s, today))
	}
	return events
}

// enrollmentChange is the one event of an enrollment whose state differs from before, or none.
// A change to a status that is over makes enrollment.ended alone, whatever else changed with it.
func enrollmentChange(about student.Account, before wire.EnrollmentState, e course.Enrollment, today clock.Date) []webhook.Event {
	data := wire.NewEnrollmentEvent(about, e, today)
	after := data.Enrollment.EnrollmentState
	switch {
	case after == before:
		return nil
	case after.Status != before.Status && after.Status.Over():
		data.PreviousStatus = before.Status
		return []webhook.Event{event(webhook.EnrollmentEnded, about, data)}
	default:
		data.Previous = wire.NewPrevious(before, after)
		return []webhook.Event{event(webhook.EnrollmentUpdated, about, data)}
	}
}
