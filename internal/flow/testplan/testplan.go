// Package testplan runs students' test plans. It stores the settings of provisioning calls, carries
// out the decisions of plan.Decide (assignments, events, mails and history) and has the commands with
// which staff change a plan. Everything that happens to a plan happens under its row lock.
package testplan

import (
	"context"
	"log/slog"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service stores and runs plans.
type Service struct {
	DB               *pg.DB
	Mail             email.Service
	Clock            clock.Clock
	Log              *slog.Logger
	Zone             *time.Location // the platform's; decides whether a course gives access today
	PublicURL        string         // the base of every link, without a slash at its end
	BrowserAvailable bool           // whether the site has the secure exam browser
	InTurn           bool           // Sweep takes one batch after the other: the same plans always give the same events in the same order
}

// scaleOf returns an exam's scale as plans need it. The step of a target score is checked only for
// exams that have plans (reference: plans#settings).
func scaleOf(exam string) plan.Scale {
	found, _ := catalog.ScaleOf(exam)
	s := plan.Scale{Exam: exam, Display: found.Label, Min: found.Overall.Min, Max: found.Overall.Max}
	if plan.Available(exam) {
		s.Step = found.Overall.Step
	}
	for _, c := range found.Sections {
		s.Sections = append(s.Sections, plan.Section{Name: c.Name, Min: c.Min, Max: c.Max, Step: c.Step})
	}
	return s
}

// Blocks returns the student's target_score_plan of each of the enrollments, in UTC
// (reference: plans#plan-block).
func (o *Service) Blocks(ctx context.Context, q pg.Querier, org id.Organization, user id.User, held []course.Enrollment) ([]wire.PlanBlock, error) {
	ids := make([]id.Enrollment, len(held))
	for i, e := range held {
		ids[i] = e.ID
	}
	goals, err := plan.Goals(ctx, q, org, ids...)
	if err != nil {
		return nil, err
	}
	browser, err := plan.SafeExamBrowser(ctx, q, org, user)
	if err != nil {
		return nil, err
	}
	running, err := plan.OfStudent(ctx, q, org, user)
	if err != nil {
		return nil, err
	}
	slots, err := plan.Slots(ctx, q, idsOf(running)...)
	if err != nil {
		return nil, err
	}
	blocks := make([]wire.PlanBlock, len(held))
	for i, e := range held {
		blocks[i] = newBlock(e, goals[e.ID], browser)
		for _, s := range running {
			if s.Enrollment == e.ID {
				blocks[i] = withPlan(blocks[i], s, slots[s.ID])
			}
		}
	}
	return blocks, nil
}

func idsOf(plans []plan.Stored) []id.Plan {
	ids := make([]id.Plan, len(plans))
	for i, s := range plans {
		ids[i] = s.ID
	}
	return ids
}

func newBlock(e course.Enrollment, g plan.Goal, browser bool) wire.PlanBlock {
	b := wire.PlanBlock{CourseType: e.Course.Type, CourseID: e.Course.ID, EnrollmentID: e.ID, ExamDate: g.ExamDate,
		SafeExamBrowser: browser, TestPlanAvailable: plan.Available(e.Course.Type)}
	if g.HasTarget {
		b.TargetScore = &g.TargetScore
	}
	return b
}

// withPlan adds the plan that runs. Target score and exam date are then the plan's.
func withPlan(b wire.PlanBlock, s plan.Stored, slots []plan.Slot) wire.PlanBlock {
	target := s.TargetScore
	b.TargetScore, b.ExamDate = &target, s.ExamDate
	b.TestPlan = ShowPlan(s, slots)
	return b
}

// ShowPlan returns the test plan object of the APIs, in UTC (reference: plans#test-plan-object).
func ShowPlan(s plan.Stored, slots []plan.Slot) *wire.TestPlan {
	set := s.Settings
	p := &wire.TestPlan{Status: s.Status, Exam: s.Exam, Pace: set.Pace, CurrentPace: set.Pace, TimeZone: set.TimeZone,
		SectionMinimums: set.SectionMinimums, PracticeDrills: set.PracticeDrills, StaffRecipients: set.StaffRecipients,
		ExtraRecipients: set.ExtraRecipients, AtRisk: s.AtRisk, StartedAt: clock.Stamp(s.StartedAt, time.UTC)}
	if set.Pace == plan.Auto {
		p.CurrentPace = s.Level
	}
	if set.CustomIntervalDays > 0 {
		p.CustomIntervalDays = &set.CustomIntervalDays
	}
	if p.SectionMinimums == nil {
		p.SectionMinimums = map[string]decimal.Number{}
	}
	p.StaffRecipients, p.ExtraRecipients = notNil(p.StaffRecipients), notNil(p.ExtraRecipients)
	if n := len(slots); n > 0 && slots[n-1].Unfinished() {
		p.NextTest = newNextTest(slots[n-1].Test)
	}
	return p
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func newNextTest(t plan.Test) *wire.NextTest {
	n := &wire.NextTest{Kind: t.Kind, OpensOn: t.OpensOn, DueOn: t.DueOn, State: t.State}
	if t.Section != "" {
		n.Section = &t.Section
	}
	if t.State == plan.Opened {
		n.State = plan.Waiting // until it is started
	}
	return n
}
