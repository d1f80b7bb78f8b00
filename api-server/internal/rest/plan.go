package rest

import (
	"slices"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// readPlan reads the target_score_plan of a provisioning body; nil where there is none.
// Unlike elsewhere in a body, a field that it does not know is a fault.
func readPlan(b *edge.Body) *plan.Request {
	if b == nil {
		return nil
	}
	for _, name := range b.Names() {
		if !slices.Contains(plan.Fields, name) {
			b.Add(plan.UnknownField(name))
		}
	}
	r := &plan.Request{
		Course:             value(b.Label("course", 200)),
		TargetScore:        b.Number("target_score"),
		ExamDate:           b.Date("exam_date"),
		TestPlan:           b.Bool("test_plan"),
		TimeZone:           b.Text("timezone", 100),
		CustomIntervalDays: b.Int("custom_interval_days", 1, plan.MaxIntervalDays),
		SectionMinimums:    readMinimums(b, "section_minimums"),
		PracticeDrills:     b.Bool("practice_drills"),
		StaffRecipients:    readRecipients(b, "staff_recipients"),
		ExtraRecipients:    readRecipients(b, "extra_recipients"),
		SafeExamBrowser:    b.Bool("safe_exam_browser"),
	}
	if pace := b.Choice("pace", plan.Paces()...); pace != nil {
		r.Pace = new(plan.Pace(*pace))
	}
	return r
}

// readMinimums: an empty object removes the minimums, one whose values are all empty
// changes nothing.
func readMinimums(b *edge.Body, field string) map[string]decimal.Number {
	minimums := b.Numbers(field)
	if minimums != nil && len(minimums) == 0 && len(b.Object(field).Names()) > 0 {
		return nil
	}
	return minimums
}

// readRecipients: an empty list is one, an empty text is nothing sent.
func readRecipients(b *edge.Body, field string) []string {
	if !b.Has(field) {
		return nil
	}
	return b.List(field)
}
