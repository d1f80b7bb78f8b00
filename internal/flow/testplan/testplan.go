// Package testplan runs students' test plans: it keeps what a provisioning call sets,
// carries out what plan.Decide decides — assignments, events, mails, history — and lets
// staff steer a plan. Everything about one plan happens under its row lock.
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

// Service is where plans are kept and carried out.
type Service struct {
	DB               *pg.DB
	Mail             email.Service
	Clock            clock.Clock
	Log              *slog.Logger
	Zone             *time.Location // the platform's: decides whether a course gives access today
	PublicURL        string         // the base of every link, without a slash at its end
	BrowserAvailable bool           // the site's option: the secure exam browser
}

// scaleOf is what plans need of an exam's scale. A step is checked on the exams that have
// plans alone (reference: plans#settings).
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

// Blocks shows what the student has set in each of the enrollments, in UTC (reference: plans#plan-block).
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

// withPlan shows the plan that is on: target and exam date live on it.
func withPlan(b wire.PlanBlock, s plan.Stored, slots []plan.Slot) wire.PlanBlock {
	target := s.Goal.TargetScore
	b.TargetScore, b.ExamDate = &target, s.Goal.ExamDate
	b.TestPlan = ShowPlan(s, slots)
	return b
}

// ShowPlan is the test plan object (reference: plans#test-plan-object), in UTC.
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
