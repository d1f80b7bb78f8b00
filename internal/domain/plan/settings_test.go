package plan_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

func num(text string) decimal.Number {
	n, err := decimal.Parse(text)
	if err != nil {
		panic(err)
	}
	return n
}

func sections(low, high, step string, names ...string) []plan.Section {
	all := make([]plan.Section, len(names))
	for i, name := range names {
		all[i] = plan.Section{Name: name, Min: num(low), Max: num(high), Step: num(step)}
	}
	return all
}

var (
	ielts = plan.Scale{Exam: "ielts", Display: "IELTS Academic", Min: 0, Max: num("9"), Step: num("0.5"),
		Sections: sections("0", "9", "0.5", "listening", "reading", "writing", "speaking")}
	sat = plan.Scale{Exam: "sat", Display: "SAT", Min: num("400"), Max: num("1600"), Step: num("10"),
		Sections: sections("200", "800", "10", "reading_writing", "math")}
	toefl = plan.Scale{Exam: "toefl", Display: "TOEFL", Max: num("120"),
		Sections: sections("0", "30", "1", "reading", "listening", "speaking", "writing")}
)

// noon is a quiet moment of the day that the settings' tests are on.
var (
	noon  = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	today = clock.DateOf(2027, 3, 1)
)

func terms(scale plan.Scale) plan.Terms {
	return plan.Terms{Scale: scale, CourseName: "Morning batch", AccessStart: today.AddDays(-10), AccessEnd: today.AddDays(180),
		Staff: []string{"owner@school.in", "ada@school.in"}, DefaultStaff: []string{"owner@school.in"}, BrowserAvailable: true, Now: noon}
}

func start() plan.Request {
	return plan.Request{TargetScore: new(num("7")), TestPlan: new(true), TimeZone: new("UTC")}
}

// running is what a student has once start was called.
func running(t *testing.T) plan.Snapshot {
	t.Helper()
	c, err := plan.Set(plan.Snapshot{}, start(), terms(ielts))
	if err != nil {
		t.Fatal(err)
	}
	return c.After
}

// Reference: plans#refusals.
func TestRefusals(t *testing.T) {
	on := func(change func(*plan.Request)) plan.Request { r := start(); change(&r); return r }
	shut := terms(ielts)
	shut.BrowserAvailable = false
	elsewhere, ending, dropped := terms(ielts), terms(ielts), terms(ielts)
	elsewhere.Elsewhere, ending.AccessEnd, dropped.AccessOver = "Evening batch", today.AddDays(7), true
	for name, c := range map[string]struct {
		before plan.Snapshot
		r      plan.Request
		t      plan.Terms
		fields string // at fault
	}{
		"score outside the scale":            {r: plan.Request{TargetScore: new(num("9.5"))}, t: terms(ielts), fields: "target_score"},
		"score below the scale":              {r: plan.Request{TargetScore: new(num("390"))}, t: terms(sat), fields: "target_score"},
		"IELTS score outside the step":       {r: plan.Request{TargetScore: new(num("6.25"))}, t: terms(ielts), fields: "target_score"},
		"SAT score outside the step":         {r: plan.Request{TargetScore: new(num("1405"))}, t: terms(sat), fields: "target_score"},
		"score outside a range without step": {r: plan.Request{TargetScore: new(num("120.5"))}, t: terms(toefl), fields: "target_score"},
		"test plan on another course type":   {r: plan.Request{TestPlan: new(true)}, t: terms(toefl), fields: "test_plan"},
		"settings on another course type":    {r: plan.Request{Pace: new(plan.Light)}, t: terms(toefl), fields: "pace"},
		"no timezone":                        {r: on(func(r *plan.Request) { r.TimeZone = nil }), t: terms(ielts), fields: "timezone"},
		"no target score":                    {r: on(func(r *plan.Request) { r.TargetScore = nil }), t: terms(ielts), fields: "target_score"},
		"an unknown timezone":                {r: on(func(r *plan.Request) { r.TimeZone = new("Mars/Olympus") }), t: terms(ielts), fields: "timezone"},
		"the server's timezone":              {r: on(func(r *plan.Request) { r.TimeZone = new("Local") }), t: terms(ielts), fields: "timezone"},
		"plan settings with no plan running": {r: plan.Request{Pace: new(plan.Light), PracticeDrills: new(false)}, t: terms(ielts), fields: "practice_drills pace"},
		"an empty list with no plan running": {r: plan.Request{StaffRecipients: []string{}}, t: terms(ielts), fields: "staff_recipients"},
		"turned off with settings":           {before: running(t), r: plan.Request{TestPlan: new(false), Pace: new(plan.Light)}, t: terms(ielts), fields: "pace"},
		"exam in nine days":                  {r: on(func(r *plan.Request) { r.ExamDate = new(today.AddDays(9)) }), t: terms(ielts), fields: "exam_date"},
		"access for seven days":              {r: start(), t: ending, fields: "test_plan"},
		"exam moved before today":            {before: running(t), r: plan.Request{ExamDate: new(today.AddDays(2))}, t: terms(ielts), fields: "exam_date"},
		"a second plan for the exam":         {r: start(), t: elsewhere, fields: "test_plan"},
		"a plan without access":              {r: start(), t: dropped, fields: "test_plan"},
		"an unknown pace":                    {r: on(func(r *plan.Request) { r.Pace = new(plan.Pace("brisk")) }), t: terms(ielts), fields: "pace"},
		"custom without days":                {r: on(func(r *plan.Request) { r.Pace = new(plan.Custom) }), t: terms(ielts), fields: "custom_interval_days"},
		"days without custom":                {r: on(func(r *plan.Request) { r.CustomIntervalDays = new(3) }), t: terms(ielts), fields: "custom_interval_days"},
		"too many days": {r: on(func(r *plan.Request) { r.Pace, r.CustomIntervalDays = new(plan.Custom), new(15) }), t: terms(ielts),
			fields: "custom_interval_days"},
		"a foreign recipient": {r: on(func(r *plan.Request) { r.StaffRecipients = []string{"ada@school.in", "eve@else.where"} }), t: terms(ielts),
			fields: "staff_recipients"},
		"six extra recipients": {r: on(func(r *plan.Request) { r.ExtraRecipients = make([]string, 6) }), t: terms(ielts), fields: "extra_recipients"},
		"an unknown section": {r: on(func(r *plan.Request) { r.SectionMinimums = map[string]decimal.Number{"math": num("6")} }), t: terms(ielts),
			fields: "section_minimums"},
		"a minimum outside the step": {r: on(func(r *plan.Request) { r.SectionMinimums = map[string]decimal.Number{"reading": num("6.2")} }), t: terms(ielts),
			fields: "section_minimums"},
		"secure exam browser not on the site": {r: plan.Request{SafeExamBrowser: new(true)}, t: shut, fields: "safe_exam_browser"},
		"several at once": {r: plan.Request{TargetScore: new(num("99")), TestPlan: new(true), ExtraRecipients: make([]string, 6)}, t: terms(ielts),
			fields: "target_score extra_recipients timezone"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := plan.Set(c.before, c.r, c.t)
			if fault.KindOf(err) != fault.Invalid {
				t.Fatalf("%+v, %v; want a refusal", got, err)
			}
			var fields, want []string
			for _, f := range err.(*fault.Error).All() { //nolint:errorlint // KindOf has seen it
				fields = append(fields, strings.TrimPrefix(f.Field, "target_score_plan."))
				if !strings.HasPrefix(f.Message, f.Field+": ") {
					t.Errorf("%q does not begin with the field", f.Message)
				}
			}
			want = strings.Fields(c.fields)
			slices.Sort(fields)
			slices.Sort(want)
			if !slices.Equal(fields, want) {
				t.Errorf("at fault: %v, want %v: %v", fields, want, err)
			}
		})
	}
}

// Reference: plans#plan-moves.
func TestWhatACallDoes(t *testing.T) {
	with := func(s plan.Snapshot, change func(*plan.Snapshot)) plan.Snapshot { change(&s); return s }
	custom := start()
	custom.Pace, custom.CustomIntervalDays = new(plan.Custom), new(3)
	suspended, closing, dated := terms(ielts), terms(ielts), start()
	suspended.Suspended, closing.AccessEnd = true, today.AddDays(8)
	dated.ExamDate = new(today.AddDays(10))
	paused := with(running(t), func(s *plan.Snapshot) { s.Status = plan.Paused })
	for name, c := range map[string]struct {
		before   plan.Snapshot
		r        plan.Request
		t        plan.Terms
		action   plan.BlockAction
		changes  string
		warnings int
	}{
		"an empty block":                  {t: terms(toefl), action: plan.Unchanged},
		"a target alone":                  {r: plan.Request{TargetScore: new(num("100.25"))}, t: terms(toefl), action: plan.Updated, changes: "target_score"},
		"a past exam without a plan":      {r: plan.Request{ExamDate: new(today.AddDays(-1))}, t: terms(ielts), action: plan.Updated, changes: "exam_date"},
		"the secure exam browser":         {r: plan.Request{SafeExamBrowser: new(true)}, t: terms(toefl), action: plan.Updated, changes: "safe_exam_browser"},
		"a plan":                          {r: start(), t: terms(ielts), action: plan.Created, changes: "target_score test_plan timezone"},
		"a plan with an exam in ten days": {r: dated, t: terms(ielts), action: plan.Created, changes: "target_score exam_date test_plan timezone"},
		"a plan in eight days of access":  {r: start(), t: closing, action: plan.Created, changes: "target_score test_plan timezone"},
		"a plan with a custom pace":       {r: custom, t: terms(ielts), action: plan.Created, changes: "target_score test_plan timezone pace custom_interval_days"},
		"the same call again":             {before: running(t), r: start(), t: terms(ielts), action: plan.Unchanged},
		"the target held already":         {before: plan.Snapshot{Goal: plan.Goal{TargetScore: num("6"), HasTarget: true}}, r: plan.Request{TestPlan: new(true), TimeZone: new("UTC")}, t: terms(ielts), action: plan.Created, changes: "test_plan timezone"},
		"settings of a running plan":      {before: running(t), r: plan.Request{Pace: new(plan.Light), PracticeDrills: new(true)}, t: terms(ielts), action: plan.Updated, changes: "pace"},
		"settings of a paused plan":       {before: paused, r: plan.Request{Pace: new(plan.Light)}, t: terms(ielts), action: plan.Updated, changes: "pace"},
		"test_plan true does not resume":  {before: paused, r: plan.Request{TestPlan: new(true)}, t: terms(ielts), action: plan.Unchanged, warnings: 1},
		"turned off":                      {before: running(t), r: plan.Request{TestPlan: new(false)}, t: terms(ielts), action: plan.Ended, changes: "test_plan"},
		"turned off with none running":    {r: plan.Request{TestPlan: new(false)}, t: terms(ielts), action: plan.Unchanged},
		"an exam in three days":           {before: running(t), r: plan.Request{ExamDate: new(today.AddDays(3))}, t: terms(ielts), action: plan.Updated, changes: "exam_date"},
		"a suspended course":              {r: start(), t: suspended, action: plan.Left, warnings: 1},
		"the staff who are the default":   {before: running(t), r: plan.Request{StaffRecipients: []string{}}, t: terms(ielts), action: plan.Unchanged},
		"other staff":                     {before: running(t), r: plan.Request{StaffRecipients: []string{"ada@school.in"}}, t: terms(ielts), action: plan.Updated, changes: "staff_recipients"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := plan.Set(c.before, c.r, c.t)
			if err != nil {
				t.Fatal(err)
			}
			if check.Equal(t, "got.Action", got.Action, c.action, "%s, changes %v, warnings %q", got.Action, got.Names, got.Warnings) &&
				check.Equal(t, "names", strings.Join(got.Names, " "), c.changes, "%s, changes %v, warnings %q", got.Action, got.Names, got.Warnings) {
				check.Equal(t, "number of warnings", len(got.Warnings), c.warnings, "%s, changes %v, warnings %q", got.Action, got.Names, got.Warnings)
			}
			if again, err := plan.Set(got.After, c.r, c.t); c.action != plan.Left &&
				(err != nil || again.Action != plan.Unchanged || len(again.Names) != 0 || !reflect.DeepEqual(again.After, got.After)) {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

// Reference: plans#settings.
func TestAPlanBeginsWithDefaults(t *testing.T) {
	got := running(t).Settings
	want := plan.Settings{TimeZone: "UTC", Pace: plan.Auto, PracticeDrills: true, StaffRecipients: []string{"owner@school.in"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// Reference: plans#settings.
func TestMinimumsAreReplacedAndRemoved(t *testing.T) {
	s := running(t)
	for _, minimums := range []map[string]decimal.Number{
		{"reading": num("6"), "writing": num("6.5")}, {"reading": num("7")}, {},
	} {
		c, err := plan.Set(s, plan.Request{SectionMinimums: minimums}, terms(ielts))
		check.NoError(check.Now(t), err, "%+v, %v; want %v", c, err, minimums)
		check.True(check.Now(t), "the minimums are as wanted", reflect.DeepEqual(c.After.Settings.SectionMinimums, minimums), "%+v, %v; want %v", c, err, minimums)
		check.Equal(check.Now(t), "c.Action", c.Action, plan.Updated, "%+v, %v; want %v", c, err, minimums)
		s = c.After
	}
}

func TestAnUnknownFieldListsTheValidOnes(t *testing.T) {
	err := plan.UnknownField("pase")
	for _, name := range append([]string{`"pase"`}, plan.Fields...) {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %s", err, name)
		}
	}
}
