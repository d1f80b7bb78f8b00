package plan

import (
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// Scale describes an exam's scores. Flows fill it from the catalog.
type Scale struct {
	Exam     string // the course type
	Display  string
	Min, Max decimal.Number // of a target score
	Step     decimal.Number // of a target score; 0: any number in the range
	Sections []Section      // in the scale's order
}

// Section is one section's own scale.
type Section struct {
	Name           string
	Min, Max, Step decimal.Number
}

// exam holds the amounts that the rules use for one kind of scale.
type exam struct {
	checkFrom decimal.Number // a deficit of at least this leads to a skills check
	wideGap   decimal.Number // a larger gap between estimate and target leads to the intensive pace
	maxGain   decimal.Number // the largest gain that is assumed for slopeDays
	// sectionTarget returns the score that each section needs for the target.
	sectionTarget func(target decimal.Number) decimal.Number
}

const slopeDays = 14

var ielts = exam{
	checkFrom: decimal.One, wideGap: decimal.One, maxGain: decimal.One / 2,
	sectionTarget: func(target decimal.Number) decimal.Number { return target },
}

// exams are the course types that accept a test plan.
var exams = map[string]exam{
	"ielts":         ielts,
	"ielts_general": ielts,
	"sat": {
		checkFrom: decimal.Whole(40), wideGap: decimal.Whole(100), maxGain: decimal.Whole(40),
		sectionTarget: func(target decimal.Number) decimal.Number {
			ten := decimal.Whole(10)
			return (target/2 + ten - 1) / ten * ten
		},
	},
}

// Available says whether a course type accepts a test plan.
func Available(courseType string) bool {
	_, ok := exams[courseType]
	return ok
}

func (s Scale) section(name string) (Section, bool) {
	i := slices.IndexFunc(s.Sections, func(c Section) bool { return c.Name == name })
	if i < 0 {
		return Section{}, false
	}
	return s.Sections[i], true
}

func (s Scale) sectionNames() []string {
	names := make([]string, len(s.Sections))
	for i, c := range s.Sections {
		names[i] = c.Name
	}
	return names
}
