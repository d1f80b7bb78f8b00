package catalog

import (
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// Range is the scores of a scale: Min, Min + Step, … up to Max.
type Range struct{ Min, Max, Step decimal.Number }

// Holds says whether n is one of the range's scores.
func (r Range) Holds(n decimal.Number) bool {
	return n >= r.Min && n <= r.Max && (n-r.Min)%r.Step == 0
}

// Section is a part of a test that has a score of its own.
type Section struct {
	Name string
	Range
}

// Scale is how tests of one type are scored (reference: catalog#score-scales).
type Scale struct {
	Type     string // the course type of the same name
	Label    string
	Overall  Range
	Sections []Section // in the order in which the exam shows them
	total    func(s Scale, sections []decimal.Number) decimal.Number
	label    func(decimal.Number) string // nil: "score/max"
}

// Types that are no tests, and what stands for a whole test as a scope.
const (
	TypeQuiz       = "quiz"
	TypeAssessment = "assessment"
	TypeCustom     = "custom"
	ScopeFull      = "full"
)

var (
	one  = decimal.One
	half = decimal.One / 2
)

func whole(low, high, step int64) Range {
	return Range{decimal.Whole(low), decimal.Whole(high), decimal.Whole(step)}
}

func bands(high int64) Range {
	return Range{decimal.Whole(0), decimal.Whole(high), half}
}

func each(r Range, names ...string) []Section {
	sections := make([]Section, len(names))
	for i, n := range names {
		sections[i] = Section{n, r}
	}
	return sections
}

var ielts = each(bands(9), "listening", "reading", "writing", "speaking")

// scales are public facts of the exams, but for what is marked as assumed. Sources:
//
//   - IELTS: ielts.org, "IELTS scoring in detail": the mean of four bands to the nearest
//     half band, .25 and .75 upwards.
//   - TOEFL: ets.org, "Understanding your TOEFL iBT scores": four sections of 0–30, summed.
//   - PTE: pearsonpte.com, "Scoring": 10–90; that the overall is the sections' rounded
//     mean is assumed, as Pearson does not publish its weights.
//   - OET: oet.com, "Understanding your results": 0–500 in steps of 10 for each skill, and
//     the grades; OET gives no overall score, so the mean to a step of 10 is assumed.
//   - GRE: ets.org, "GRE General Test scores": two sections of 130–170, and writing of 0–6.
//   - GMAT: mba.com, "GMAT exam scoring": 205–805 in steps of 10 from three sections of
//     60–90; the linear way from one to the other is assumed.
//   - SAT: collegeboard.org, "Understanding SAT scores": two sections of 200–800, summed.
//   - Duolingo: englishtest.duolingo.com, "Scores": 10–160 in steps of 5, the mean of the
//     four individual scores.
//   - CELPIP: celpip.ca, "Test scoring": levels 1–12 that equal the CLB ones; the rounded
//     mean as an overall level is assumed.
//   - dMAT: g.a.s.t., "dMAT results": a core and a subject module.
//   - Adaptive Language Proficiency: the platform's own 0–100, assumed.
var scales = []Scale{
	{Type: "ielts", Label: "IELTS Academic", Overall: bands(9), Sections: ielts, total: mean, label: band},
	{Type: "ielts_general", Label: "IELTS General Training", Overall: bands(9), Sections: ielts, total: mean, label: band},
	{Type: "toefl", Label: "TOEFL", Overall: whole(0, 120, 1), total: sum,
		Sections: each(whole(0, 30, 1), "reading", "listening", "speaking", "writing")},
	{Type: "pte_academic", Label: "PTE Academic", Overall: whole(10, 90, 1), total: mean,
		Sections: each(whole(10, 90, 1), "listening", "reading", "speaking", "writing")},
	{Type: "pte_core", Label: "PTE Core", Overall: whole(10, 90, 1), total: mean,
		Sections: each(whole(10, 90, 1), "listening", "reading", "speaking", "writing")},
	{Type: "oet", Label: "OET", Overall: whole(0, 500, 10), total: mean, label: grade,
		Sections: each(whole(0, 500, 10), "listening", "reading", "speaking", "writing")},
	{Type: "gre", Label: "GRE", Overall: whole(260, 340, 1), total: firstTwo,
		Sections: append(each(whole(130, 170, 1), "verbal", "quantitative"), Section{"writing", bands(6)})},
	{Type: "gmat", Label: "GMAT", Overall: whole(205, 805, 10), total: gmat,
		Sections: each(whole(60, 90, 1), "quantitative", "verbal", "data_insights")},
	{Type: "sat", Label: "SAT", Overall: whole(400, 1600, 10), total: sum,
		Sections: each(whole(200, 800, 10), "reading_writing", "math")},
	{Type: "duolingo", Label: "Duolingo English Test", Overall: whole(10, 160, 5), total: mean,
		Sections: each(whole(10, 160, 5), "speaking", "writing", "reading", "listening")},
	{Type: "celpip", Label: "CELPIP", Overall: whole(1, 12, 1), total: mean, label: clb,
		Sections: each(whole(1, 12, 1), "listening", "reading", "writing", "speaking")},
	{Type: "adaptive_language", Label: "Adaptive Language Proficiency", Overall: whole(0, 100, 1), total: mean,
		Sections: each(whole(0, 100, 1), "listening", "reading", "writing", "speaking")},
	{Type: "dmat", Label: "dMAT", Overall: whole(0, 400, 1), total: sum, Sections: each(whole(0, 200, 1), "core", "subject")},
	{Type: TypeCustom, Label: "Custom Language Test", Overall: fine(decimal.Whole(100)), label: nil},
}

// fine is the scale of what is counted in points: any two decimals from 0 to a maximum.
func fine(highest decimal.Number) Range { return Range{0, highest, one / 100} }

func sum(_ Scale, of []decimal.Number) decimal.Number { return decimal.Sum(of...) }

func mean(s Scale, of []decimal.Number) decimal.Number { return decimal.MeanTo(s.Overall.Step, of...) }

func firstTwo(_ Scale, of []decimal.Number) decimal.Number { return of[0] + of[1] }

// gmat is 205 + (sum − 180) × 20/3, to the nearest value that ends in 5.
func gmat(s Scale, of []decimal.Number) decimal.Number {
	above := (decimal.Sum(of...) - decimal.Whole(180)) * 20
	return s.Overall.Min + above.RoundTo(3*s.Overall.Step)/3
}

func band(n decimal.Number) string {
	text := n.String()
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return "Band " + text
}

func clb(n decimal.Number) string { return "CLB " + n.String() }

func grade(n decimal.Number) string {
	for _, g := range []struct {
		from int64
		name string
	}{{450, "A"}, {350, "B"}, {300, "C+"}, {200, "C"}, {100, "D"}} {
		if n >= decimal.Whole(g.from) {
			return g.name
		}
	}
	return "E"
}

// ScaleOf finds the scale of a test type.
func ScaleOf(name string) (Scale, bool) {
	i := slices.IndexFunc(scales, func(s Scale) bool { return s.Type == name })
	if i < 0 {
		return Scale{}, false
	}
	return scales[i], true
}

// TestTypes lists the types of tests, in the order of the course types.
func TestTypes() []string {
	names := make([]string, len(scales))
	for i, s := range scales {
		names[i] = s.Type
	}
	return names
}

// TypesOf lists the types that a filter by kinds and by a type of tests chooses, all of them
// when it is nil. No kinds and "" stand for any.
func TypesOf(kinds []Kind, testType string) []string {
	switch {
	case testType != "" && kinds != nil && !slices.Contains(kinds, Test):
		return []string{}
	case testType != "":
		return []string{testType}
	}
	var types []string
	for _, k := range kinds {
		if k == Test {
			types = append(types, TestTypes()...)
		} else {
			types = append(types, string(k)) // quizzes and assessments have no other type
		}
	}
	return types
}

// section finds a section by its name.
func (s Scale) section(name string) (Section, bool) {
	i := slices.IndexFunc(s.Sections, func(x Section) bool { return x.Name == name })
	if i < 0 {
		return Section{}, false
	}
	return s.Sections[i], true
}

// Total is the overall score that the sections make. ok is false when a section that
// counts is missing, or when the type has no such rule.
func (s Scale) Total(sections map[string]decimal.Number) (total decimal.Number, ok bool) {
	if s.total == nil {
		return 0, false
	}
	counted := s.Sections
	if s.Type == "gre" {
		counted = counted[:2] // writing is reported beside the score
	}
	of := make([]decimal.Number, len(counted))
	for i, c := range counted {
		n, given := sections[c.Name]
		if !given {
			return 0, false
		}
		of[i] = n
	}
	return s.total(s, of), true
}
