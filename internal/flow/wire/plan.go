package wire

import (
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// PlanBlock is target_score_plan of a lookup's enrollment (reference: plans#plan-block).
type PlanBlock struct {
	CourseType        string          `json:"course_type"`
	CourseID          id.Course       `json:"course_id"`
	EnrollmentID      id.Enrollment   `json:"enrollment_id"`
	TargetScore       *decimal.Number `json:"target_score"`
	ExamDate          clock.Date      `json:"exam_date"` // null when not set
	SafeExamBrowser   bool            `json:"safe_exam_browser"`
	TestPlanAvailable bool            `json:"test_plan_available"`
	TestPlan          *TestPlan       `json:"test_plan"` // null: no plan runs
}

// In is the block with its timestamps in loc.
func (b PlanBlock) In(loc *time.Location) PlanBlock {
	if b.TestPlan != nil {
		in := *b.TestPlan
		in.StartedAt = in.StartedAt.In(loc)
		b.TestPlan = &in
	}
	return b
}

// PlanAnswer is the block of a provisioning answer.
type PlanAnswer struct {
	PlanBlock
	Action  plan.BlockAction `json:"action"`
	Changes []string         `json:"changes"`
}

// Changed says whether the call changed anything of the plan; a nil block did not.
func (a *PlanAnswer) Changed() bool { return a != nil && len(a.Changes) > 0 }

// TestPlan is test_plan of a block (reference: plans#test-plan-object).
type TestPlan struct {
	Status             plan.Status               `json:"status"`
	Exam               string                    `json:"exam"`
	Pace               plan.Pace                 `json:"pace"`
	CustomIntervalDays *int                      `json:"custom_interval_days"`
	CurrentPace        plan.Pace                 `json:"current_pace"`
	TimeZone           string                    `json:"timezone"`
	SectionMinimums    map[string]decimal.Number `json:"section_minimums"`
	PracticeDrills     bool                      `json:"practice_drills"`
	StaffRecipients    []string                  `json:"staff_recipients"`
	ExtraRecipients    []string                  `json:"extra_recipients"`
	AtRisk             bool                      `json:"at_risk"`
	StartedAt          *clock.Timestamp          `json:"started_at"`
	NextTest           *NextTest                 `json:"next_test"` // null when none is planned
}

// NextTest is the test that waits, is open or was started.
type NextTest struct {
	Kind    plan.Kind  `json:"kind"`
	Section *string    `json:"section"` // of a skills check alone
	OpensOn clock.Date `json:"opens_on"`
	DueOn   clock.Date `json:"due_on"`
	State   plan.State `json:"state"` // waiting, started or unfilled
}
