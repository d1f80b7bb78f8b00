package plan

import (
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Line is a plan in the list of an organization's plans.
type Line struct {
	ID        id.Plan
	Email     string
	FirstName string
	LastName  string
	Exam      string
	Status    Status
	AtRisk    bool
	Target    decimal.Number
	ExamDate  clock.Date // zero: none
	Last      Test       `db:"-"` // the latest one; with no state when there is none
}

// ChooseAtRisk makes Lines return active plans at risk only.
const ChooseAtRisk = "at_risk"

// Drilled is a drill that was given after the test of a slot.
type Drilled struct {
	Plan       id.Plan
	Slot       int
	Section    string
	Title      string // "" when the paper is gone
	DueOn      clock.Date
	Assignment id.Assignment // 0 when it is gone
	Status     string        // of the assignment
}
