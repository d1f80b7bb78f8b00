package catalog_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

func number(t *testing.T, text string) decimal.Number {
	t.Helper()
	n, err := decimal.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// mark pairs the type's sections with scores, in the scale's order.
func mark(t *testing.T, typ string, scores ...string) catalog.Mark {
	t.Helper()
	s, ok := catalog.ScaleOf(typ)
	if !ok {
		t.Fatalf("no scale %s", typ)
	}
	sections := map[string]decimal.Number{}
	for i, text := range scores {
		sections[s.Sections[i].Name] = number(t, text)
	}
	return catalog.Mark{Sections: sections}
}

func test(typ string) catalog.Item {
	return catalog.Item{Kind: catalog.Test, Type: typ, Scope: catalog.ScopeFull, MaxScore: decimal.Whole(100)}
}

// Reference: catalog#score-scales.
func TestOverallFromSections(t *testing.T) {
	for _, c := range []struct {
		typ                     string
		sections                []string
		score, percentage, name string
	}{
		{"ielts", []string{"6.5", "6.5", "5", "7"}, "6.5", "72.22", "Band 6.5"}, // 6.25 goes up
		{"ielts", []string{"6.5", "6.5", "5.5", "7.5"}, "6.5", "72.22", "Band 6.5"},
		{"ielts", []string{"4", "3.5", "4", "4"}, "4", "44.44", "Band 4.0"}, // 3.875
		{"ielts_general", []string{"6.5", "6.5", "6.5", "7.5"}, "7", "77.78", "Band 7.0"},
		{"toefl", []string{"30", "22", "18", "25"}, "95", "79.17", "95/120"},
		{"pte_academic", []string{"60", "61", "62", "63"}, "62", "68.89", "62/90"},
		{"pte_core", []string{"10", "10", "10", "10"}, "10", "11.11", "10/90"},
		{"oet", []string{"350", "350", "340", "350"}, "350", "70", "B"},
		{"oet", []string{"450", "450", "450", "450"}, "450", "90", "A"},
		{"oet", []string{"300", "310", "290", "300"}, "300", "60", "C+"},
		{"oet", []string{"90", "90", "90", "90"}, "90", "18", "E"},
		{"gre", []string{"160", "165", "4.5"}, "325", "95.59", "325/340"},
		{"gmat", []string{"60", "60", "60"}, "205", "25.47", "205/805"},
		{"gmat", []string{"90", "90", "90"}, "805", "100", "805/805"},
		{"gmat", []string{"75", "76", "77"}, "525", "65.22", "525/805"}, // 525 exactly
		{"gmat", []string{"60", "60", "61"}, "215", "26.71", "215/805"}, // 211.7
		{"sat", []string{"650", "710"}, "1360", "85", "1360/1600"},
		{"duolingo", []string{"110", "115", "120", "120"}, "115", "71.88", "115/160"}, // 116.25
		{"celpip", []string{"8", "9", "8", "9"}, "9", "75", "CLB 9"},
		{"dmat", []string{"120", "99"}, "219", "54.75", "219/400"},
		{"adaptive_language", []string{"50", "51", "50", "51"}, "51", "51", "51/100"},
	} {
		got, err := test(c.typ).Check("", mark(t, c.typ, c.sections...))
		if check.NoError(t, err, "%s %v: %v of %v, %v %% (%v); want %s, %s %%", c.typ, c.sections, got.Score, got.MaxScore, got.Percentage(), err, c.score, c.percentage) &&
			check.Equal(t, "got.Score", got.Score, number(t, c.score), "%s %v: %v of %v, %v %% (%v); want %s, %s %%", c.typ, c.sections, got.Score, got.MaxScore, got.Percentage(), err, c.score, c.percentage) {
			check.Equal(t, "percentage", got.Percentage(), number(t, c.percentage), "%s %v: %v of %v, %v %% (%v); want %s, %s %%", c.typ, c.sections, got.Score, got.MaxScore, got.Percentage(), err, c.score, c.percentage)
		}
		if name := catalog.Label(c.typ, got.Score, got.MaxScore); name != c.name {
			t.Errorf("%s %v is called %q, want %q", c.typ, c.score, name, c.name)
		}
	}
}

// The total of all lowest and of all highest sections is on the scale of every type.
func TestTotalsStayOnTheScale(t *testing.T) {
	for _, name := range catalog.TestTypes() {
		s, _ := catalog.ScaleOf(name)
		low, high := map[string]decimal.Number{}, map[string]decimal.Number{}
		for _, x := range s.Sections {
			low[x.Name], high[x.Name] = x.Min, x.Max
		}
		least, ok := s.Total(low)
		check.Equal(t, "there is a total", ok, s.Type != catalog.TypeCustom, "%s", s.Type)
		if !ok {
			continue
		}
		check.Equal(t, "the least total", least, s.Overall.Min, "%s", s.Type)
		check.True(t, "the least total is on the scale", s.Overall.Holds(least), "%s: %v", s.Type, least)
		most, ok := s.Total(high)
		check.True(t, "there is a highest total", ok, "%s", s.Type)
		check.Equal(t, "the highest total", most, s.Overall.Max, "%s", s.Type)
		check.True(t, "the highest total is on the scale", s.Overall.Holds(most), "%s: %v", s.Type, most)
	}
}

// Reference: catalog#score-scales.
func TestScoresOffTheScale(t *testing.T) {
	score := func(text string) catalog.Mark { return catalog.Mark{Score: new(number(t, text))} }
	rubric := catalog.Item{Kind: catalog.Assessment, Type: catalog.TypeAssessment, Scope: catalog.ScopeFull, MaxScore: decimal.Whole(20)}
	quiz := catalog.Item{Kind: catalog.Quiz, Type: catalog.TypeQuiz, Scope: catalog.ScopeFull, MaxScore: decimal.Whole(100)}
	listening := test("ielts")
	listening.Scope = "listening"
	for name, c := range map[string]struct {
		item    catalog.Item
		section string
		mark    catalog.Mark
		want    string // the field at fault; "" for none
	}{
		"IELTS half":         {test("ielts"), "", score("6.5"), ""},
		"IELTS quarter":      {test("ielts"), "", score("6.25"), "score"},
		"IELTS over":         {test("ielts"), "", score("9.5"), "score"},
		"IELTS nothing":      {test("ielts"), "", catalog.Mark{}, "score"},
		"IELTS lacks one":    {test("ielts"), "", mark(t, "ielts", "6", "6", "6"), "score"},
		"IELTS section off":  {test("ielts"), "", mark(t, "ielts", "6", "6", "6", "6.1"), "sections.speaking"},
		"IELTS other max":    {test("ielts"), "", catalog.Mark{Score: new(number(t, "6")), MaxScore: new(number(t, "10"))}, "max_score"},
		"IELTS no section":   {test("ielts"), "", catalog.Mark{Score: new(number(t, "6")), Sections: map[string]decimal.Number{"math": 1}}, "sections"},
		"SAT step":           {test("sat"), "", score("1365"), "score"},
		"SAT section":        {test("sat"), "math", score("710"), ""},
		"SAT section over":   {test("sat"), "math", score("1360"), "score"},
		"SAT unknown part":   {test("sat"), "listening", score("710"), "section"},
		"SAT section itself": {test("sat"), "math", mark(t, "sat", "500", "600"), ""},
		"GRE without verbal": {test("gre"), "", catalog.Mark{Sections: map[string]decimal.Number{"writing": one}}, "score"},
		"item's section":     {listening, "", score("7.5"), ""},
		"custom":             {test("custom"), "", score("83.33"), ""},
		"custom over":        {test("custom"), "", score("100.01"), "score"},
		"custom sections":    {test("custom"), "", catalog.Mark{Sections: map[string]decimal.Number{"any": one, "other": 2 * one}}, ""},
		"custom section off": {test("custom"), "", catalog.Mark{Score: new(one), Sections: map[string]decimal.Number{"any": -1}}, "sections.any"},
		"quiz":               {quiz, "", catalog.Mark{Score: new(number(t, "17")), MaxScore: new(number(t, "20"))}, ""},
		"quiz over":          {quiz, "", catalog.Mark{Score: new(number(t, "21")), MaxScore: new(number(t, "20"))}, "score"},
		"quiz of nothing":    {quiz, "", catalog.Mark{Score: new(number(t, "0")), MaxScore: new(number(t, "0"))}, "max_score"},
		"quiz with sections": {quiz, "", catalog.Mark{Score: new(one), Sections: map[string]decimal.Number{"any": one}}, "sections"},
		"rubric":             {rubric, "", score("17.25"), ""},
		"rubric over":        {rubric, "", score("21"), "score"},
		"rubric below":       {rubric, "", score("-1"), "score"},
	} {
		_, err := c.item.Check(c.section, c.mark)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var f *fault.Error
		if check.True(t, "the error is a fault", asFault(err, &f), "%s: %v, want a fault of %s", name, err, c.want) &&
			check.Equal(t, "f.Field", f.Field, c.want, "%s: %v, want a fault of %s", name, err, c.want) {
			check.Equal(t, "f.Kind", f.Kind, fault.Invalid, "%s: %v, want a fault of %s", name, err, c.want)
		}
	}
	got, err := quiz.Check("", catalog.Mark{Score: new(number(t, "1")), MaxScore: new(number(t, "3"))})
	if check.NoError(t, err, "a quiz is a percentage: %+v, %v", got, err) &&
		check.Equal(t, "got.Score", got.Score, number(t, "33.33"), "a quiz is a percentage: %+v, %v", got, err) &&
		check.Equal(t, "got.MaxScore", got.MaxScore, decimal.Whole(100), "a quiz is a percentage: %+v, %v", got, err) {
		check.Equal(t, "label", catalog.Label("quiz", got.Score, got.MaxScore), "33.33%", "a quiz is a percentage: %+v, %v", got, err)
	}
}

const one = decimal.One

func TestTypesOf(t *testing.T) {
	t.Parallel()
	quizzes := []catalog.Kind{catalog.Quiz}
	for _, c := range []struct {
		name     string
		kinds    []catalog.Kind
		testType string
		want     []string
	}{
		{"anything", nil, "", nil},
		{"a type", nil, "sat", []string{"sat"}},
		{"a type of tests", []catalog.Kind{catalog.Quiz, catalog.Test}, "sat", []string{"sat"}},
		{"a type without tests", quizzes, "sat", []string{}},
		{"quizzes", quizzes, "", []string{"quiz"}},
		{"tests and assessments", []catalog.Kind{catalog.Test, catalog.Assessment}, "", append(catalog.TestTypes(), "assessment")},
	} {
		got := catalog.TypesOf(c.kinds, c.testType)
		check.Slices(t, "types", got, c.want, "%s", c.name)
		check.Equal(t, "any type will do", got == nil, c.want == nil, "%s", c.name)
	}
}
