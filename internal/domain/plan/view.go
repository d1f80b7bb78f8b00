package plan

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
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
	Last      Test       // the latest one; with no state when there is none
}

// ChooseAtRisk narrows Lines to active plans that are at risk.
const ChooseAtRisk = "at_risk"

// Lines lists the organization's plans, the latest first and below an id where one is
// given; user 0 is everyone, and which a status, ChooseAtRisk or "".
func Lines(ctx context.Context, q pg.Querier, org id.Organization, user id.User, which string, below id.Plan, limit int) ([]Line, error) {
	return selectLines(ctx, q, org, user, which, below, limit)
}

// Drilled is a section paper that was given after the test of a slot.
type Drilled struct {
	Slot    int
	Section string
	Title   string // "" when the paper is gone
	DueOn   clock.Date
	Status  string // of its assignment
}

// Drills lists the plan's drills in the order of the tests that they were given after.
func Drills(ctx context.Context, q pg.Querier, plan id.Plan) ([]Drilled, error) {
	return selectDrills(ctx, q, plan)
}
