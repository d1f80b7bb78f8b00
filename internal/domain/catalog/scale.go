package catalog

import (
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
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

// Scale is how tests of one type are scored (contract: Result, score and sections).
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

// Scales lists the scales in the order of the contract's course types.
func Scales() []Scale { return slices.Clone(scales) }

// ScaleOf finds the scale of a test type.
func ScaleOf(name string) (Scale, bool) {
	i := slices.IndexFunc(scales, func(s Scale) bool { return s.Type == name })
	if i < 0 {
		return Scale{}, false
	}
	return scales[i], true
}

// TestTypes lists the types of tests.
func TestTypes() []string {
	names := make([]string, len(scales))
	for i, s := range scales {
		names[i] = s.Type
	}
	return names
}

// TypeLabel is the contract's type_label of a test type, quiz or assessment.
func TypeLabel(name string) string {
	switch name {
	case TypeQuiz:
		return "Quiz"
	case TypeAssessment:
		return "Assessment"
	}
	if s, ok := ScaleOf(name); ok {
		return s.Label
	}
	return name
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

// Mark is what a piece of work was scored: the overall score and, for tests, those of
// its sections.
type Mark struct {
	Score    *decimal.Number // nil: to be had from the sections
	MaxScore *decimal.Number // nil: the item's
	Sections map[string]decimal.Number
}

// Scored is a Mark that was found to be on its scale.
type Scored struct {
	Score    decimal.Number
	MaxScore decimal.Number
	Sections map[string]decimal.Number
}

// Percentage is score ÷ max_score × 100, two decimals, half up.
func (s Scored) Percentage() decimal.Number { return decimal.Percent(s.Score, s.MaxScore) }

// Check holds a mark of the item against its scale; section is the one that was practised
// or "" for all of the item. Invalid names the score or section that is off the scale.
func (i Item) Check(section string, m Mark) (Scored, error) {
	switch i.Kind {
	case Quiz:
		return checkQuiz(m)
	case Assessment:
		return checkPoints(i.MaxScore, m)
	case Test:
	}
	if section == "" && i.Scope != ScopeFull {
		section = i.Scope
	}
	scale, _ := ScaleOf(i.Type) // an item's type is one of them
	if i.Type == TypeCustom {
		return checkCustom(i.MaxScore, m)
	}
	if section != "" {
		return scale.checkSection(section, m)
	}
	return scale.check(m)
}

// HasSection says whether the item's tests have the section. Custom ones name their own.
func (i Item) HasSection(name string) bool {
	if i.Kind != Test || i.Scope != ScopeFull && i.Scope != name {
		return false
	}
	scale, _ := ScaleOf(i.Type)
	_, ok := scale.section(name)
	return ok || i.Type == TypeCustom
}

func (s Scale) check(m Mark) (Scored, error) {
	if err := s.checkSections(m.Sections); err != nil {
		return Scored{}, err
	}
	score := m.Score
	if score == nil {
		total, ok := s.Total(m.Sections)
		if !ok {
			return Scored{}, fault.Field("score", "missing", "score: required, unless sections holds all of %s", strings.Join(s.names(), ", "))
		}
		score = &total
	}
	if !s.Overall.Holds(*score) {
		return Scored{}, offScale("score", *score, s.Overall)
	}
	if m.MaxScore != nil && *m.MaxScore != s.Overall.Max {
		return Scored{}, fault.Field("max_score", "off_scale", "max_score: %s is out of %v; leave it out", s.Label, s.Overall.Max)
	}
	return Scored{*score, s.Overall.Max, m.Sections}, nil
}

func (s Scale) checkSections(sections map[string]decimal.Number) error {
	for _, name := range sorted(sections) {
		section, ok := s.section(name)
		if !ok {
			return fault.Field("sections", "unknown_section", "sections: %s has no section %q; send %s", s.Label, name, strings.Join(s.names(), ", "))
		}
		if !section.Holds(sections[name]) {
			return offScale("sections."+name, sections[name], section.Range)
		}
	}
	return nil
}

// checkSection is for work on one section, whose score is that of the section.
func (s Scale) checkSection(name string, m Mark) (Scored, error) {
	section, ok := s.section(name)
	if !ok {
		return Scored{}, fault.Field("section", "unknown_section", "section: %s has no section %q; send one of %s", s.Label, name, strings.Join(s.names(), ", "))
	}
	if err := s.checkSections(m.Sections); err != nil {
		return Scored{}, err
	}
	score, given := m.Sections[name]
	if m.Score != nil {
		score, given = *m.Score, true
	}
	if !given {
		return Scored{}, fault.Field("score", "missing", "score: required")
	}
	if !section.Holds(score) {
		return Scored{}, offScale("score", score, section.Range)
	}
	if len(m.Sections) == 0 {
		m.Sections = map[string]decimal.Number{name: score}
	}
	return Scored{score, section.Max, m.Sections}, nil
}

// checkQuiz makes a percentage of the points.
func checkQuiz(m Mark) (Scored, error) {
	hundred := decimal.Whole(100)
	s, err := checkPoints(hundred, m)
	if err != nil || s.MaxScore == hundred {
		return s, err
	}
	return Scored{Score: s.Percentage(), MaxScore: hundred}, nil
}

func checkPoints(highest decimal.Number, m Mark) (Scored, error) {
	if m.MaxScore != nil {
		highest = *m.MaxScore
	}
	if highest <= 0 {
		return Scored{}, fault.Field("max_score", "off_scale", "max_score: send a number above 0")
	}
	if len(m.Sections) > 0 {
		return Scored{}, fault.Field("sections", "unknown_section", "sections: only language tests have sections; leave it out")
	}
	if m.Score == nil {
		return Scored{}, fault.Field("score", "missing", "score: required")
	}
	if *m.Score < 0 || *m.Score > highest {
		return Scored{}, offScale("score", *m.Score, fine(highest))
	}
	return Scored{Score: *m.Score, MaxScore: highest}, nil
}

// checkCustom lets the test name its own sections, each out of the same maximum. Without
// an overall score the sections' mean is the score.
func checkCustom(highest decimal.Number, m Mark) (Scored, error) {
	of := make([]decimal.Number, 0, len(m.Sections))
	for _, name := range sorted(m.Sections) {
		if n := m.Sections[name]; n < 0 || n > highest {
			return Scored{}, offScale("sections."+name, n, fine(highest))
		}
		of = append(of, m.Sections[name])
	}
	if m.Score == nil && len(of) > 0 {
		m.Score = new(decimal.MeanTo(one/100, of...))
	}
	s, err := checkPoints(highest, Mark{Score: m.Score, MaxScore: m.MaxScore})
	s.Sections = m.Sections
	return s, err
}

func offScale(field string, n decimal.Number, r Range) error {
	return fault.Field(field, "off_scale", "%s: %v is off the scale; send %v to %v in steps of %v", field, n, r.Min, r.Max, r.Step)
}

func sorted(sections map[string]decimal.Number) []string {
	names := make([]string, 0, len(sections))
	for name := range sections {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s Scale) names() []string {
	names := make([]string, len(s.Sections))
	for i, x := range s.Sections {
		names[i] = x.Name
	}
	return names
}

// Label is the contract's score_label: the exam's own word for a score where it has one,
// else a percentage for quizzes and custom tests and "score/max" for all others.
func Label(typ string, score, highest decimal.Number) string {
	switch s, _ := ScaleOf(typ); {
	case s.label != nil:
		return s.label(score)
	case typ == TypeQuiz, typ == TypeCustom:
		return decimal.Percent(score, highest).String() + "%"
	}
	return score.String() + "/" + highest.String()
}

// SectionNames lists the names of sections in the order of the type's scale, with the
// custom ones after them by name.
func SectionNames(typ string, sections map[string]decimal.Number) []string {
	s, _ := ScaleOf(typ)
	var names []string
	for _, x := range s.Sections {
		if _, ok := sections[x.Name]; ok {
			names = append(names, x.Name)
		}
	}
	for _, name := range sorted(sections) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
