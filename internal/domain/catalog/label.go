package catalog

import (
	"maps"
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// TypeLabel is type_label (reference: catalog#catalog-items) of a test type, quiz or assessment.
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

// Label is score_label (reference: catalog#score-scales): the exam's own word for a score where it has one,
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
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
