package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// story is a plan whose days go by; day 0 is today.
type story struct {
	t       *testing.T
	plan    plan.Plan
	tests   []plan.Test
	results []plan.Result
	papers  []plan.Paper
	now     time.Time
}

func day(n int) clock.Date { return today.AddDays(n) }

func newStory(t *testing.T, scale plan.Scale, target string, last int) *story {
	t.Helper()
	s := &story{t: t, now: noon, plan: plan.Plan{Status: plan.Active, Scale: scale, Target: num(target), Zone: time.UTC, Pace: plan.Standard,
		Level: plan.StartLevel(today, day(last)), Drills: false, FirstDay: day(-10), LastDay: day(last)}}
	for i := range 40 {
		s.papers = append(s.papers, plan.Paper{ID: int64(1 + i), Scope: plan.FullScope})
	}
	for i, section := range scale.Sections {
		for j := range 20 {
			s.papers = append(s.papers, plan.Paper{ID: int64(100*(i+1) + j), Scope: section.Name})
		}
	}
	return s
}

// decide brings the plan to noon of a day, and checks that nothing is left to do then.
func (s *story) decide(n int) []plan.Action {
	s.t.Helper()
	s.now = clock.DayStart(day(n), s.plan.Zone).Add(12 * time.Hour)
	actions := plan.Decide(s.plan, s.tests, s.results, s.papers, s.now)
	s.plan, s.tests = plan.Apply(s.plan, s.tests, actions)
	if again := plan.Decide(s.plan, s.tests, s.results, s.papers, s.now); len(again) > 0 {
		s.t.Fatalf("day %d: %+v was followed by %+v", n, actions, again)
	}
	return actions
}

func (s *story) last() *plan.Test { return &s.tests[len(s.tests)-1] }

// finish lets the student finish the opened test on a day. scores are the overall one
// and the sections', or the checked section's alone.
func (s *story) finish(n int, scores ...string) {
	s.t.Helper()
	s.decide(n)
	test := s.last()
	if test.State != plan.Opened {
		s.t.Fatalf("day %d: %+v is not open", n, *test)
	}
	test.State, test.FinishedOn = plan.Finished, day(n)
	r := plan.Result{Slot: test.Slot, On: day(n), Score: num(scores[0]), Sections: map[string]decimal.Number{}}
	if test.Kind == plan.SkillsCheck {
		r.Sections[test.Section] = r.Score
	}
	for i, c := range s.plan.Scale.Sections {
		switch {
		case test.Kind == plan.SkillsCheck:
		case len(scores) > i+1:
			r.Sections[c.Name] = num(scores[i+1])
		case s.plan.Scale.Exam == "sat":
			r.Sections[c.Name] = r.Score / 2
		default:
			r.Sections[c.Name] = r.Score
		}
	}
	s.results = append(s.results, r)
	s.decide(n)
}

// show writes a test as "kind[:section] state opens-due", in days from today.
func show(t plan.Test) string {
	kind := string(t.Kind)
	if t.Section != "" {
		kind += ":" + t.Section
	}
	return fmt.Sprintf("%s %s %d-%d", kind, t.State, today.DaysUntil(t.OpensOn), today.DaysUntil(t.DueOn))
}

func (s *story) want(tests ...string) {
	s.t.Helper()
	got := make([]string, len(s.tests))
	for i, t := range s.tests {
		got[i] = show(t)
	}
	if !slices.Equal(got, tests) {
		s.t.Errorf("\ngot  %s\nwant %s", strings.Join(got, "; "), strings.Join(tests, "; "))
	}
}

func does(actions []plan.Action, what plan.Verb) bool {
	return slices.ContainsFunc(actions, func(a plan.Action) bool { return a.Do == what })
}

// Reference: plans#test-kinds.
func TestRule1Baseline(t *testing.T) {
	s := newStory(t, ielts, "7", 60)
	s.decide(0)
	s.want("baseline opened 0-2")
	s.decide(3)
	s.want("baseline missed 0-2", "baseline waiting 7-9")
	s.decide(7)
	s.decide(10)
	s.want("baseline missed 0-2", "baseline missed 7-9", "mock waiting 14-16")

	short := newStory(t, ielts, "7", 1)
	short.decide(0)
	short.want("baseline opened 0-1")

	for days := 1; days <= 3; days++ {
		fast := newStory(t, ielts, "7", 60)
		fast.plan.Pace, fast.plan.CustomDays = plan.Custom, days
		fast.decide(0)
		fast.want("baseline opened 0-2")
		fast.finish(0, "6.5")
		fast.want("baseline finished 0-2", fmt.Sprintf("mock waiting %d-%d", days, days+min(2, days-1)))
	}

	later := newStory(t, ielts, "7", 60)
	later.plan.FirstDay = day(5)
	later.decide(0)
	later.want("baseline waiting 5-7")
	later.decide(5)
	later.want("baseline opened 5-7")
}

// Access that begins in the middle of a day in the plan's zone is not waited for until the next day,
// and not anticipated.
func TestTheBaselineOpensWithTheFirstInstantOfAccess(t *testing.T) {
	s := newStory(t, ielts, "7", 60)
	s.plan.From, s.plan.FirstDay = noon.Add(time.Hour), day(0)
	s.decide(0)
	s.want("baseline waiting 0-2")
	if next := plan.NextWork(s.plan, s.tests, nil, noon); !next.Equal(s.plan.From) {
		t.Errorf("decided again at %v, want %v", next, s.plan.From)
	}
	actions := plan.Decide(s.plan, s.tests, nil, s.papers, s.plan.From)
	s.plan, s.tests = plan.Apply(s.plan, s.tests, actions)
	s.want("baseline opened 0-2")
}

func TestRule2Windows(t *testing.T) {
	t.Run("from the previous opening", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.finish(1, "6.5")
		s.want("baseline finished 1-3", "mock waiting 8-10")
	})
	t.Run("tomorrow at the earliest", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.plan.Pace, s.plan.CustomDays = plan.Custom, 1
		s.finish(2, "6.5")
		s.want("baseline finished 0-2", "mock waiting 3-3")
	})
	t.Run("every day, after a miss too", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.plan.Pace, s.plan.CustomDays = plan.Custom, 1
		s.decide(0)
		s.want("baseline opened 0-2") // rule 1's window, whatever the pace
		s.decide(3)
		s.want("baseline missed 0-2", "baseline opened 3-5")
		s.decide(6)
		s.want("baseline missed 0-2", "baseline missed 3-5", "mock opened 6-6")
		s.decide(7)
		s.want("baseline missed 0-2", "baseline missed 3-5", "mock missed 6-6", "mock opened 7-7")
	})
	t.Run("due on the last test day at the latest", func(t *testing.T) {
		s := newStory(t, ielts, "7", 8)
		s.finish(0, "6.5")
		s.want("baseline finished 0-2", "mock waiting 7-8")
	})
	t.Run("none after the last test day", func(t *testing.T) {
		s := newStory(t, ielts, "7", 6)
		s.finish(0, "6.5")
		s.want("baseline finished 0-2")
	})
	t.Run("a held result is waited for", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.last().State, s.last().FinishedOn = plan.Held, day(1)
		s.decide(1)
		s.want("baseline held 0-2", "mock waiting 7-9") // there is a next test all the while
	})
	t.Run("a held result is waited for beyond the interval", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.plan.Pace, s.plan.CustomDays = plan.Custom, 1
		s.decide(0)
		s.last().State, s.last().FinishedOn = plan.Held, day(1)
		s.decide(1)
		s.want("baseline held 0-2", "mock waiting 5-5")
		s.tests[0].State = plan.Finished
		s.results = []plan.Result{{Slot: 1, On: day(1), Score: num("6.5")}}
		s.decide(3)
		s.want("baseline finished 0-2", "mock waiting 4-4")
	})
	t.Run("a held result that does not come is not waited for", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.plan.Pace, s.plan.CustomDays = plan.Custom, 1
		s.decide(0)
		s.last().State, s.last().FinishedOn = plan.Held, day(1)
		s.decide(4)
		s.want("baseline held 0-2", "mock waiting 5-5")
		s.decide(5)
		s.want("baseline held 0-2", "mock opened 5-5")
	})
	t.Run("a test left lying is not waited for", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.last().State = plan.Started
		s.decide(5)
		s.want("baseline started 0-2")
		s.decide(6)
		s.want("baseline started 0-2", "mock waiting 7-9")
	})
	t.Run("opened late after a time without a worker", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.finish(0, "6.5")
		s.decide(20)
		s.want("baseline finished 0-2", "mock opened 20-22")
	})
	t.Run("missed and next due while no worker ran", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.decide(30)
		s.want("baseline missed 0-2", "baseline opened 30-32")
	})
}

func TestRule3Estimates(t *testing.T) {
	// The mock nearest to the estimate shows the estimate.
	s := newStory(t, ielts, "9", 200)
	s.papers = nil
	for i := range 19 {
		s.papers = append(s.papers, plan.Paper{ID: int64(i + 1), Scope: plan.FullScope, Difficulty: decimal.Number(i) * decimal.One / 2, HasDifficulty: true})
	}
	opened := func(n int) string {
		s.decide(n)
		return (decimal.Number(s.last().Paper-1) * decimal.One / 2).String()
	}
	s.decide(0)
	if s.last().Paper != 1 {
		t.Errorf("with nothing known the first paper is %d", s.last().Paper)
	}
	// Flat section scores keep skills checks away: the target asks for as much.
	s.plan.Target = num("6.5")
	s.finish(0, "6", "6", "6", "6", "6")
	if got := opened(7); got != "6" {
		t.Errorf("after one: %s", got)
	}
	s.finish(7, "5", "6", "6", "6", "6")
	if got := opened(14); got != "5" {
		t.Errorf("after two, the lower: %s", got)
	}
	s.finish(14, "7", "6", "6", "6", "6")
	if got := opened(21); got != "5.5" { // 6 is used: 5.5 and 6.5 are as near, the first by id
		t.Errorf("after three, the median of 6, 5, 7: %s", got)
	}
}

// Reference: plans#test-kinds.
func TestRule4Kind(t *testing.T) {
	t.Run("the last slot is a mock", func(t *testing.T) {
		s := newStory(t, ielts, "7", 13)
		s.finish(0, "4")
		s.want("baseline finished 0-2", "mock waiting 7-9")
	})
	t.Run("one day more leaves another", func(t *testing.T) {
		s := newStory(t, ielts, "7", 14)
		s.finish(0, "4")
		s.want("baseline finished 0-2", "skills_check:listening waiting 7-9")
	})
	t.Run("challenge after two that met everything", func(t *testing.T) {
		s := newStory(t, ielts, "6", 90)
		s.plan.Minimums = map[string]decimal.Number{"writing": num("6")}
		s.finish(0, "6.5", "7", "7", "6", "7")
		s.finish(7, "6.5", "7", "7", "6", "7")
		s.want("baseline finished 0-2", "mock finished 7-9", "challenge waiting 14-16")
	})
	t.Run("no challenge with a minimum missed", func(t *testing.T) {
		s := newStory(t, ielts, "6", 90)
		s.plan.Minimums = map[string]decimal.Number{"writing": num("6")}
		s.finish(0, "6.5", "7", "7", "5.5", "7")
		s.finish(7, "6.5", "7", "7", "6", "7")
		s.want("baseline finished 0-2", "mock finished 7-9", "mock waiting 14-16")
	})
	t.Run("skills check from two steps, the first of the weakest", func(t *testing.T) {
		s := newStory(t, ielts, "7", 90)
		s.finish(0, "6.5", "7", "6", "6", "7")
		s.want("baseline finished 0-2", "skills_check:reading waiting 7-9")
		s.finish(7, "5")
		s.want("baseline finished 0-2", "skills_check:reading finished 7-9", "mock waiting 14-16")
	})
	t.Run("one step is too little", func(t *testing.T) {
		s := newStory(t, ielts, "7", 90)
		s.finish(0, "6.5", "7", "6.5", "6.5", "7")
		s.want("baseline finished 0-2", "mock waiting 7-9")
	})
	t.Run("a minimum raises the need", func(t *testing.T) {
		s := newStory(t, ielts, "6", 90)
		s.plan.Minimums = map[string]decimal.Number{"speaking": num("8")}
		s.finish(0, "6.5", "7", "7", "7", "7")
		s.want("baseline finished 0-2", "skills_check:speaking waiting 7-9")
	})
	t.Run("SAT from 40 points of half the target", func(t *testing.T) {
		s := newStory(t, sat, "1410", 90) // 710 a section
		s.finish(0, "1380", "710", "670")
		s.want("baseline finished 0-2", "skills_check:math waiting 7-9")
		s = newStory(t, sat, "1410", 90)
		s.finish(0, "1390", "710", "680")
		s.want("baseline finished 0-2", "mock waiting 7-9")
	})
}

// Reference: plans#pace.
func TestRule5Pace(t *testing.T) {
	for pace, want := range map[plan.Pace]string{plan.Intensive: "4-6", plan.Standard: "7-9", plan.Light: "10-12"} {
		s := newStory(t, ielts, "7", 90)
		s.plan.Pace = pace
		s.finish(0, "6.5")
		s.want("baseline finished 0-2", "mock waiting "+want)
	}
	for last, want := range map[int]plan.Pace{20: plan.Intensive, 21: plan.Standard} {
		if got := plan.StartLevel(today, day(last)); got != want {
			t.Errorf("%d days: %s", last, got)
		}
	}
	for name, c := range map[string]struct {
		last  int
		score string
		want  plan.Pace
	}{
		"target met":           {last: 90, score: "7", want: plan.Light},
		"on the way":           {last: 90, score: "6", want: plan.Standard},
		"wide gap":             {last: 300, score: "5.5", want: plan.Intensive},
		"at risk":              {last: 40, score: "6", want: plan.Intensive},
		"little time":          {last: 27, score: "6.5", want: plan.Intensive},
		"just enough time":     {last: 28, score: "6.5", want: plan.Standard},
		"met with little time": {last: 27, score: "7", want: plan.Light},
	} {
		s := newStory(t, ielts, "7", c.last)
		s.plan.Pace, s.plan.Level = plan.Auto, plan.Standard
		s.finish(0, c.score)
		if s.plan.Level != c.want {
			t.Errorf("%s: %s, want %s", name, s.plan.Level, c.want)
		}
	}
	t.Run("one level a step", func(t *testing.T) {
		s := newStory(t, ielts, "7", 200)
		s.plan.Pace, s.plan.Level = plan.Auto, plan.Light
		s.finish(0, "4")
		if s.plan.Level != plan.Standard {
			t.Errorf("%s after one", s.plan.Level)
		}
		s.finish(7, "4")
		if s.plan.Level != plan.Intensive {
			t.Errorf("%s after two", s.plan.Level)
		}
	})
}

func TestRule6Papers(t *testing.T) {
	hard := func(id int64, difficulty string) plan.Paper {
		return plan.Paper{ID: id, Scope: plan.FullScope, Difficulty: num(difficulty), HasDifficulty: true}
	}
	t.Run("the hardest for a challenge", func(t *testing.T) {
		s := newStory(t, ielts, "6", 90)
		s.papers = []plan.Paper{{ID: 1, Scope: plan.FullScope}, hard(2, "6"), hard(3, "8"), hard(4, "8"), hard(5, "6.5")}
		s.finish(0, "6.5")
		s.finish(7, "6.5")
		s.decide(14)
		if got := s.last(); check.Equal(t, "got.Kind", got.Kind, plan.Challenge, "%+v", s.tests) &&
			check.Equal(t, "got.Paper", got.Paper, 3, "%+v", s.tests) {
			check.Equal(t, "the second test's paper", s.tests[1].Paper, 5, "%+v", s.tests)
		}
	})
	t.Run("none left", func(t *testing.T) {
		s := newStory(t, ielts, "7", 30)
		s.papers = s.papers[:1]
		s.finish(0, "6.5")
		if a := s.decide(7); !does(a, plan.Unfill) {
			t.Errorf("%+v", a)
		}
		if a := s.decide(8); does(a, plan.Unfill) {
			t.Errorf("reported twice: %+v", a)
		}
		s.want("baseline finished 0-2", "mock unfilled 7-9")
		s.papers = append(s.papers, plan.Paper{ID: 50, Scope: plan.FullScope})
		s.decide(12)
		s.want("baseline finished 0-2", "mock opened 12-14")
	})
	t.Run("none until the last test day", func(t *testing.T) {
		s := newStory(t, ielts, "7", 30)
		s.papers = nil
		s.decide(0)
		s.want("baseline unfilled 0-2")
		s.decide(31)
		s.want()
	})
}

// Reference: plans#test-kinds.
func TestRule6AKindWithoutAPaperFallsBack(t *testing.T) {
	only := func(scopes ...string) []plan.Paper {
		var papers []plan.Paper
		for i, scope := range scopes {
			papers = append(papers, plan.Paper{ID: int64(i + 1), Scope: scope})
		}
		return papers
	}
	mocks := only(slices.Repeat([]string{plan.FullScope}, 15)...)
	t.Run("a skills check to a mock", func(t *testing.T) {
		s := newStory(t, ielts, "7", 90)
		s.papers = mocks
		s.finish(0, "5")
		s.want("baseline finished 0-2", "skills_check:listening waiting 7-9")
		s.decide(7)
		s.want("baseline finished 0-2", "mock opened 7-9")
	})
	t.Run("a skills check to the next weakest section", func(t *testing.T) {
		s := newStory(t, ielts, "7", 90)
		s.papers = append(only(plan.FullScope, plan.FullScope), plan.Paper{ID: 30, Scope: "speaking"}, plan.Paper{ID: 31, Scope: "writing"})
		s.finish(0, "6", "5", "7", "6.5", "6")
		s.decide(7)
		s.want("baseline finished 0-2", "skills_check:speaking opened 7-9")
	})
	t.Run("a skills check to a mock before a section that is good enough", func(t *testing.T) {
		s := newStory(t, ielts, "7", 90)
		s.papers = append(only(plan.FullScope, plan.FullScope), plan.Paper{ID: 30, Scope: "reading"})
		s.finish(0, "6", "5", "7", "7", "7")
		s.decide(7)
		s.want("baseline finished 0-2", "mock opened 7-9")
	})
	t.Run("a mock to a skills check", func(t *testing.T) {
		s := newStory(t, ielts, "7", 90)
		s.papers = append(only(plan.FullScope), plan.Paper{ID: 30, Scope: "reading"}, plan.Paper{ID: 31, Scope: "speaking"})
		s.finish(0, "6.5", "7", "7", "6.5", "6.5")
		s.decide(7)
		s.want("baseline finished 0-2", "skills_check:speaking opened 7-9")
	})
	t.Run("a challenge to a skills check, as there is no mock either", func(t *testing.T) {
		s := newStory(t, ielts, "6", 90)
		s.papers = append(only(plan.FullScope, plan.FullScope), plan.Paper{ID: 30, Scope: "writing"})
		s.finish(0, "6.5")
		s.finish(7, "6.5")
		s.decide(14)
		s.want("baseline finished 0-2", "mock finished 7-9", "skills_check:writing opened 14-16")
	})
	t.Run("a baseline to a skills check, until there is a whole test", func(t *testing.T) {
		s := newStory(t, ielts, "7", 90)
		s.papers = only("reading", "writing")
		s.finish(0, "6")
		s.papers = append(s.papers, plan.Paper{ID: 9, Scope: plan.FullScope})
		s.decide(7)
		s.want("skills_check:reading finished 0-2", "baseline opened 7-9")
	})
}

// Drills leave the last two papers of a section to skills checks.
func TestRule6DrillsLeavePapers(t *testing.T) {
	for last, want := range map[int]int{60: 1, 5: 2} { // after the fifth day there is no other test
		s := newStory(t, ielts, "7", last)
		s.plan.Drills = true
		s.papers = nil
		for i, scope := range []string{plan.FullScope, plan.FullScope, "listening", "listening", "listening", "reading", "reading"} {
			s.papers = append(s.papers, plan.Paper{ID: int64(i + 1), Scope: scope})
		}
		s.decide(0)
		s.last().State, s.last().FinishedOn = plan.Finished, day(0)
		s.results = []plan.Result{{Slot: 1, On: day(0), Score: num("5"), Sections: map[string]decimal.Number{"listening": num("5"), "reading": num("5")}}}
		drills := 0
		for _, a := range s.decide(0) {
			if a.Do == plan.Drill {
				drills++
			}
		}
		if drills != want {
			t.Errorf("%d days left: %d drills, want %d", last, drills, want)
		}
	}
}

// Reference: plans#at-risk.
func TestRule7AtRisk(t *testing.T) {
	for name, c := range map[string]struct {
		target string
		last   int
		scores []string
		want   bool
	}{
		"nothing known":                    {target: "9", last: 20},
		"one test, half the cap":           {target: "6.5", last: 28, scores: []string{"6"}},
		"one test, a day short":            {target: "6.5", last: 27, scores: []string{"6"}, want: true},
		"flat":                             {target: "6.5", last: 120, scores: []string{"6", "6", "6"}, want: true},
		"falling counts as flat":           {target: "5.5", last: 120, scores: []string{"7", "6.5", "6"}},
		"growing as fast as is thought":    {target: "7", last: 42, scores: []string{"5", "6", "7"}},
		"growing as fast, too little time": {target: "7", last: 41, scores: []string{"5", "6", "7"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, ielts, c.target, c.last)
			s.decide(0)
			for i, score := range c.scores {
				s.plan.Target = num("1") // one that asks for no skills check
				s.finish(7*i, score)
			}
			s.plan.Target = num(c.target)
			s.decide(max(7*(len(c.scores)-1), 0))
			if s.plan.AtRisk != c.want {
				t.Errorf("at risk: %v", s.plan.AtRisk)
			}
		})
	}
	t.Run("a minimum unmet with two slots left", func(t *testing.T) {
		for last, want := range map[int]bool{20: true, 21: false} {
			s := newStory(t, ielts, "6", last)
			s.plan.Minimums = map[string]decimal.Number{"writing": num("6")}
			s.finish(0, "6.5", "7", "7", "5.5", "7")
			if s.plan.AtRisk != want {
				t.Errorf("%d days: %v", last, s.plan.AtRisk)
			}
		}
	})
	t.Run("two misses in a row", func(t *testing.T) {
		s := newStory(t, ielts, "7", 200)
		s.decide(3)
		s.decide(6)
		if s.plan.AtRisk {
			t.Error("after one miss")
		}
		s.decide(10)
		if a := s.decide(12); check.False(t, "s.plan.AtRisk", s.plan.AtRisk, "before the second was over") {
			check.False(t, "the plan is at risk", does(a, plan.Risk), "before the second was over")
		}
		if a := s.decide(13); check.True(t, "s.plan.AtRisk", s.plan.AtRisk, "after two: %v %v", s.tests, a) {
			check.True(t, "the plan is at risk", does(a, plan.Risk), "after two: %v %v", s.tests, a)
		}
		if a := s.decide(14); does(a, plan.Risk) {
			t.Error("reported twice")
		}
	})
	t.Run("SAT gains 40 points in 14 days at most", func(t *testing.T) {
		for target, want := range map[string]bool{"1240": false, "1250": true} {
			s := newStory(t, sat, "400", 35)
			s.finish(0, "1000")
			s.finish(7, "1200")
			s.plan.Target = num(target)
			s.tests = s.tests[:2]
			s.results[0].Score, s.results[1].Score = num("1000"), num("1200")
			s.plan.LastDay = day(7 + 84)
			s.decide(7)
			if s.plan.AtRisk != want {
				t.Errorf("%s: %v", target, s.plan.AtRisk)
			}
		}
	})
}

// Reference: plans#test-kinds.
func TestRule8Drills(t *testing.T) {
	drills := func(actions []plan.Action) []string {
		var all []string
		for _, a := range actions {
			if a.Do == plan.Drill {
				all = append(all, fmt.Sprintf("%s %d-%d", a.Test.Section, today.DaysUntil(a.Test.OpensOn), today.DaysUntil(a.Test.DueOn)))
			}
		}
		return all
	}
	after := func(on bool, scores ...string) []string {
		s := newStory(t, ielts, "7", 60)
		s.plan.Drills = on
		s.decide(0)
		s.last().State, s.last().FinishedOn = plan.Finished, day(1)
		r := plan.Result{Slot: 1, On: day(1), Score: num(scores[0]), Sections: map[string]decimal.Number{}}
		for i, c := range ielts.Sections {
			r.Sections[c.Name] = num(scores[i+1])
		}
		s.results = []plan.Result{r}
		return drills(s.decide(1))
	}
	for name, c := range map[string]struct{ got, want []string }{
		"the two largest":      {after(true, "6", "6.5", "6", "5", "6"), []string{"reading 1-6", "writing 1-6"}},
		"one alone":            {after(true, "7", "7", "7", "6.5", "7"), []string{"writing 1-6"}},
		"none without deficit": {after(true, "7", "7", "7", "7", "7"), nil},
		"none when off":        {after(false, "5", "5", "5", "5", "5"), nil},
	} {
		slices.Sort(c.got)
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestRule9Changes(t *testing.T) {
	t.Run("a waiting test is decided again from the previous opening", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.finish(0, "6.5")
		s.plan.Pace = plan.Intensive
		s.decide(2)
		s.want("baseline finished 0-2", "mock waiting 4-6")
		s.plan.Pace = plan.Light
		s.decide(2)
		s.want("baseline finished 0-2", "mock waiting 10-12")
		s.plan.Pace = plan.Intensive
		s.decide(6)
		s.want("baseline finished 0-2", "mock waiting 7-9")
	})
	t.Run("the last day moved before a waiting test removes it", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.finish(0, "6.5")
		s.plan.LastDay = day(6)
		s.decide(1)
		s.want("baseline finished 0-2")
		s.plan.LastDay = day(60)
		s.decide(2)
		s.want("baseline finished 0-2", "mock waiting 7-9")
	})
	t.Run("the last day moved inside an opened window shrinks its due date", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.plan.LastDay = day(1)
		s.decide(0)
		s.want("baseline opened 0-1")
		s.plan.LastDay = day(60)
		s.decide(1)
		s.want("baseline opened 0-1")
	})
	t.Run("a started one is never touched", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.last().State = plan.Started
		s.plan.LastDay, s.plan.Pace = day(1), plan.Light
		s.decide(0)
		s.want("baseline started 0-2")
		s.plan.Status = plan.Closed
		s.decide(0)
		s.want("baseline started 0-2")
	})
	t.Run("closing withdraws", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.plan.Status = plan.Closed
		s.decide(0)
		s.want("baseline withdrawn 0-2")
		s = newStory(t, ielts, "7", 60)
		s.finish(0, "6.5")
		s.plan.Status = plan.Closed
		s.decide(0)
		s.want("baseline finished 0-2")
	})
	t.Run("access over closes", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.plan.Access = plan.Over
		if a := s.decide(1); check.True(t, "the plan is closed", does(a, plan.Close), "%+v", a) {
			check.Equal(t, "s.plan.Status", s.plan.Status, plan.Closed, "%+v", a)
		}
		s.want("baseline withdrawn 0-2")
	})
	t.Run("suspended in mid-plan", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.finish(0, "6.5")
		s.plan.Access = plan.Idle
		s.decide(12)
		s.want("baseline finished 0-2", "mock waiting 7-9")
		s.plan.Access = plan.Open
		s.decide(13)
		s.want("baseline finished 0-2", "mock opened 13-15")
		s.plan.Access = plan.Idle
		s.decide(20)
		s.want("baseline finished 0-2", "mock withdrawn 13-15")
		s.plan.Access = plan.Open
		s.decide(21)
		s.want("baseline finished 0-2", "mock withdrawn 13-15", "mock waiting 22-24")
	})
	t.Run("paused", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.plan.Status = plan.Paused
		s.decide(3)
		s.want("baseline withdrawn 0-2")
		s.plan.Status = plan.Active
		s.decide(5)
		s.want("baseline withdrawn 0-2", "baseline waiting 7-9")
	})
	t.Run("extended, and a test that staff fixed", func(t *testing.T) {
		s := newStory(t, ielts, "7", 6)
		s.finish(0, "6.5")
		s.want("baseline finished 0-2")
		s.plan.LastDay = day(90)
		s.decide(1)
		s.want("baseline finished 0-2", "mock waiting 7-9")
		s.last().Fixed, s.last().OpensOn = true, day(1)
		s.decide(1)
		s.want("baseline finished 0-2", "mock opened 1-9")
	})
}

// A test that was handed in late, or in time and reported late, counts, and what took its place is
// taken back unless it was begun.
// Reference: plans#late-tests.
func TestRule10LateTests(t *testing.T) {
	// late makes a missed test of a slot one that was finished on a day.
	late := func(s *story, slot, n int) {
		test := &s.tests[slot-1]
		test.State, test.FinishedOn, test.Late = plan.Finished, day(n), day(n).After(test.DueOn)
		s.results = append(s.results, plan.Result{Slot: slot, On: day(n), Score: num("6.5")})
	}
	t.Run("in time, reported before the next opens", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.decide(3)
		s.want("baseline missed 0-2", "baseline waiting 7-9")
		late(s, 1, 2)
		s.decide(3)
		s.want("baseline finished 0-2", "mock waiting 7-9")
	})
	t.Run("in time, reported while a second baseline is open", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.decide(7)
		late(s, 1, 2)
		s.decide(8)
		s.want("baseline finished 0-2", "baseline withdrawn 7-9", "mock waiting 14-16")
	})
	t.Run("late, while the next is open", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.finish(0, "6.5")
		s.decide(7)
		s.decide(14)
		s.want("baseline finished 0-2", "mock missed 7-9", "mock opened 14-16")
		late(s, 2, 15)
		s.decide(15)
		s.want("baseline finished 0-2", "mock finished 7-9", "mock withdrawn 14-16", "mock waiting 21-23")
	})
	t.Run("in time, the next one is on its own day", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.finish(0, "6.5")
		s.decide(7)
		s.decide(14)
		late(s, 2, 9)
		s.decide(14)
		s.want("baseline finished 0-2", "mock finished 7-9", "mock opened 14-16")
	})
	t.Run("late, while the next is begun", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.decide(7)
		s.last().State = plan.Started
		late(s, 1, 8)
		s.decide(8)
		s.want("baseline finished 0-2", "baseline started 7-9")
	})
	t.Run("late, while one is open that staff chose", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.decide(7)
		s.last().Fixed = true
		late(s, 1, 8)
		s.decide(8)
		s.want("baseline finished 0-2", "baseline opened 7-9")
	})
	t.Run("late, after two that were missed", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.decide(7)
		s.decide(14)
		s.want("baseline missed 0-2", "baseline missed 7-9", "mock opened 14-16")
		late(s, 1, 14)
		s.decide(14)
		s.want("baseline finished 0-2", "baseline missed 7-9", "mock withdrawn 14-16", "mock waiting 21-23")
	})
	t.Run("the estimate goes by when tests were finished", func(t *testing.T) {
		s := newStory(t, ielts, "7", 60)
		s.decide(0)
		s.decide(7)
		s.finish(7, "5")
		s.results = append(s.results, plan.Result{Slot: 1, On: day(8), Score: num("6")})
		s.tests[0].State, s.tests[0].FinishedOn = plan.Finished, day(8)
		s.results = append(s.results, plan.Result{Slot: 9, On: day(1), Score: num("9")}) // of no test
		if e, known := plan.Estimate(s.plan, s.tests, s.results); e != num("5") {
			t.Errorf("%v %v", e, known)
		}
	})
}

// Reference: plans#plan-end.
func TestRule11TheEnd(t *testing.T) {
	t.Run("the day after the exam", func(t *testing.T) {
		s := newStory(t, ielts, "7", 20)
		s.plan.ExamDate = day(23)
		s.finish(0, "5")
		s.decide(23)
		if s.plan.Status != plan.Active {
			t.Fatalf("on the day of the exam: %s", s.plan.Status)
		}
		actions := s.decide(24)
		if s.plan.Status != plan.Closed {
			t.Errorf("on the day after: %s, %+v", s.plan.Status, actions)
		}
		if last := actions[len(actions)-1]; last.Reason != plan.ExamOver {
			t.Errorf("the reason is %q", last.Reason)
		}
	})
	t.Run("also of a plan that is paused, and of a suspended course", func(t *testing.T) {
		s := newStory(t, ielts, "7", 20)
		s.plan.ExamDate, s.plan.Status, s.plan.Access = day(23), plan.Paused, plan.Idle
		s.decide(24)
		if s.plan.Status != plan.Closed {
			t.Errorf("%s", s.plan.Status)
		}
	})
	t.Run("not at risk after the last test day", func(t *testing.T) {
		s := newStory(t, ielts, "9", 20)
		s.finish(0, "4")
		s.decide(20)
		if !s.plan.AtRisk {
			t.Fatal("not at risk before")
		}
		s.decide(21)
		if s.plan.AtRisk {
			t.Error("at risk when nothing can be done any more")
		}
		s.plan.Target = num("8.5")
		if a := s.decide(22); does(a, plan.Risk) {
			t.Errorf("found at risk later: %+v", a)
		}
	})
}
