package wire_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// day is when the events happen, at 20:00 UTC.
var day = clock.Date{Year: 2026, Month: 11, Day: 20}

// events are one of each event as it comes about, with every field that it can have filled.
func events() map[webhook.Type]any {
	at := func(hour int) *clock.Timestamp {
		return clock.Stamp(time.Date(day.Year, day.Month, day.Day, hour, 30, 0, 0, time.UTC), time.UTC)
	}
	asha := wire.Person{UserID: 4711, Email: "asha@north-institute.org", FirstName: "Asha <3", LastName: "2026-11-20T10:00:00+00:00"}
	place := wire.EnrollmentState{EnrollmentID: 12, CourseID: 3, CourseName: "IELTS Academic", Status: "active", HasAccess: true, StartDate: clock.Date{Year: 2026, Month: 8, Day: 20},
		EndDate: clock.Date{Year: 2026, Month: 11, Day: 27}, GracePeriodEnd: clock.Date{Year: 2026, Month: 12, Day: 4}}
	fresh := place // begins today
	fresh.StartDate, fresh.EndDate, fresh.GracePeriodEnd = day, clock.Date{Year: 2027, Month: 2, Day: 20}, clock.Date{Year: 2027, Month: 2, Day: 27}
	over := place // its days of grace ended the day before
	over.Status, over.HasAccess, over.EndDate, over.GracePeriodEnd = "expired", false, clock.Date{Year: 2026, Month: 11, Day: 12}, day.AddDays(-1)
	in := func(p wire.EnrollmentState) []wire.Enrollment {
		return []wire.Enrollment{{CourseType: "ielts", CourseTypeDisplay: "IELTS Academic", IsDefaultCourse: true, EnrollmentState: p}}
	}
	student := wire.RosterStudent{Student: wire.Student{Person: asha, HasSetPassword: true, LastLogin: at(18)}, JoinedAt: at(8),
		Membership:  &wire.Membership{Role: "member", Status: "active"},
		Enrollments: in(fresh)}
	left := student
	left.JoinedAt = clock.Stamp(time.Date(2026, 8, 20, 8, 30, 0, 0, time.UTC), time.UTC)
	left.Membership, left.Enrollments = &wire.Membership{Role: "member", Status: "inactive"}, in(over)
	enrollment := func(change func(*wire.EnrollmentEvent)) wire.EnrollmentEvent {
		e := wire.EnrollmentEvent{Student: asha, Enrollment: wire.EventEnrollment{EnrollmentState: place, CourseType: "ielts"}}
		change(&e)
		return e
	}
	band := decimal.Whole(15) / 2
	assignment := wire.Assignment{ID: "test-assignment:5", Kind: "test", Student: asha, Item: wire.AssignedItem{ID: 99, Title: "Mock 12", Type: "ielts"},
		Status: "pending", AssignedAt: *at(19), DueDate: at(23)}
	overdue := assignment
	overdue.Status, overdue.Overdue, overdue.AssignedAt, overdue.DueDate = "in_progress", true, *at(2), at(19)
	ping := webhook.PingData{Message: "This is a test event of Registrar."}
	ping.Endpoint.ID, ping.Endpoint.URL = 3, "https://hooks.north-institute.org/"
	return map[webhook.Type]any{
		webhook.ResultFinal: wire.FinalResult{ID: "test:88", Kind: "test", Student: asha, Item: wire.ResultItem{ID: 99, Title: "Mock 12", Type: "ielts", TypeLabel: "IELTS Academic"},
			Attempt: "assigned", StartedAt: at(9), CompletedAt: at(12), ReleasedAt: at(19), Score: band, MaxScore: decimal.Whole(9), Percentage: decimal.Percent(band, decimal.Whole(9)), ScoreLabel: "7.5",
			Sections:  json.RawMessage(`{"listening":8,"reading":7.5,"writing":7,"speaking":7.5}`),
			ResultURL: "https://registrar.example/results/test:88"},
		webhook.StudentJoined:     student,
		webhook.StudentLeft:       left,
		webhook.EnrollmentCreated: enrollment(func(e *wire.EnrollmentEvent) { e.Enrollment.EnrollmentState = fresh }),
		webhook.EnrollmentUpdated: enrollment(func(e *wire.EnrollmentEvent) {
			e.Enrollment.EnrollmentState, e.Previous = fresh, wire.NewPrevious(over, fresh)
		}),
		webhook.EnrollmentExpiring: enrollment(func(e *wire.EnrollmentEvent) { e.DaysLeft = 7 }),
		webhook.EnrollmentEnded:    enrollment(func(e *wire.EnrollmentEvent) { e.Enrollment.EnrollmentState, e.PreviousStatus = over, "grace_period" }),
		webhook.AssignmentCreated:  assignment,
		webhook.AssignmentOverdue:  overdue,
		webhook.Ping:               ping,
	}
}

// Reference: webhooks#events.
func TestEveryEventIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Events")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, kind := range append(webhook.Types(), webhook.Ping) {
		if !strings.Contains(table, "`"+string(kind)+"`") {
			t.Errorf("docs/reference/webhooks.md does not list %s", kind)
		}
	}
}

// Reference: webhooks#events.
func TestTheBodyOfEveryEvent(t *testing.T) {
	t.Parallel()
	zone, err := clock.Zone("tz", "Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	all := events()
	for _, kind := range append(webhook.Types(), webhook.Ping) {
		data, err := json.Marshal(all[kind])
		if err != nil {
			t.Fatal(err)
		}
		body, err := webhook.Envelope(webhook.Stored{ID: id.Event{1}, Type: kind, CreatedAt: time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC), Data: data},
			webhook.Sender{ID: 7, Slug: "north", Name: "North Institute"}, zone)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Indent(&got, body, "", "  "); err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, body)
		}
		got.WriteByte('\n')
		file := filepath.Join("testdata", string(kind)+".json")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if check.NoError(t, err, "%s is not as in %s (go test -update accepts it; %v):\n%s", kind, file, err, got.Bytes()) {
			check.True(t, "the payload is as documented", bytes.Equal(got.Bytes(), want), "%s is not as in %s (go test -update accepts it; %v):\n%s", kind, file, err, got.Bytes())
		}
	}
}
