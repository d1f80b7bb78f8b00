package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Mark is what a piece of work was scored: the overall score and, for tests, those of
// its sections.
type Mark struct {
	Score    *decimal.Number // nil: computed from the sections
	MaxScore *decimal.Number // nil: the item's
	Sections map[string]decimal.Number
}

// Scored is a Mark that is on its scale.
type Scored struct {
	Score    decimal.Number
	MaxScore decimal.Number
	Sections map[string]decimal.Number
}

// Percentage is score ÷ max_score × 100, two decimals, half up.
func (s Scored) Percentage() decimal.Number { return decimal.Percent(s.Score, s.MaxScore) }

// Check checks a mark of the item against its scale. section is the practised one, or "" for the
// whole item. Invalid names the score or section that is off the scale.
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
	for _, name := range slices.Sorted(maps.Keys(sections)) {
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
	for _, name := range slices.Sorted(maps.Keys(m.Sections)) {
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

func (s Scale) names() []string {
	names := make([]string, len(s.Sections))
	for i, x := range s.Sections {
		names[i] = x.Name
	}
	return names
}
