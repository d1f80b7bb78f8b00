package wire

import (
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Assignment is an assignment on the wire (reference: assignments#assignment-fields): of POST and
// GET /assignments/, and the data of the assignment events.
type Assignment struct {
	ID          string            `json:"id" doc:"test-assignment:…, quiz-assignment:… or assessment-assignment:…"`
	Kind        catalog.Kind      `json:"kind"`
	Student     Person            `json:"student"`
	Item        AssignedItem      `json:"item"`
	Status      assignment.Status `json:"status" doc:"submitted was handed in and awaits marking; work expires 30 days after its due date, or when it is withdrawn"`
	Overdue     bool              `json:"overdue" doc:"Past due and neither handed in nor expired"`
	AssignedAt  clock.Timestamp   `json:"assigned_at"`
	DueDate     *clock.Timestamp  `json:"due_date" doc:"Null where the work is not due at any time"`
	CompletedAt *clock.Timestamp  `json:"completed_at" doc:"Null until the work is completed"`
	ResultID    *string           `json:"result_id" doc:"The result that completed it; a retake is a result of its own and does not change it. Null until there is one"`
}

// AssignedItem is the work of an assignment.
type AssignedItem struct {
	ID    id.Item `json:"id"`
	Title string  `json:"title"`
	Type  string  `json:"type"`
}

// NewAssignment shows an assignment as it is at now, with its timestamps in loc.
func NewAssignment(l assignment.Listed, now time.Time, loc *time.Location) Assignment {
	a := Assignment{ID: l.Ref(), Kind: catalog.Kind(l.Kind),
		Student: Person{UserID: l.User, Email: student.Email(l.Email), FirstName: l.FirstName, LastName: l.LastName},
		Item:    AssignedItem{l.Item, l.ItemTitle, l.ItemType}, Status: l.Status, Overdue: l.Overdue(now),
		AssignedAt: clock.Timestamp(l.AssignedAt.In(loc)), DueDate: clock.OptionalStamp(l.DueAt, loc), CompletedAt: clock.OptionalStamp(l.CompletedAt, loc)}
	if l.ResultRef != "" {
		a.ResultID = &l.ResultRef
	}
	return a
}

// In is the assignment with its timestamps in loc.
func (a Assignment) In(loc *time.Location) Assignment {
	a.AssignedAt = clock.Timestamp(time.Time(a.AssignedAt).In(loc))
	a.DueDate, a.CompletedAt = a.DueDate.In(loc), a.CompletedAt.In(loc)
	return a
}
