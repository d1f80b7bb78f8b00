package plan_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

var zones = []string{"UTC", "Asia/Kolkata", "America/Havana", "America/Santiago", "Africa/Cairo", "Pacific/Kiritimati", "Pacific/Apia"}

// life is a plan through whose days anything may happen.
type life struct {
	t       *rapid.T
	plan    plan.Plan
	tests   []plan.Test
	results []plan.Result
	papers  []plan.Paper
	now     time.Time
	drilled []int64
}

func newLife(t *rapid.T) *life {
	scale, target := ielts, decimal.Number(rapid.IntRange(8, 18).Draw(t, "half bands"))*decimal.One/2
	if rapid.Bool().Draw(t, "sat") {
		scale, target = sat, decimal.Whole(int64(rapid.IntRange(100, 160).Draw(t, "tens")*10))
	}
	zone, err := clock.Zone("zone", rapid.SampledFrom(zones).Draw(t, "zone"))
	if err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, now: noon, plan: plan.Plan{Status: plan.Active, Scale: scale, Target: target, Zone: zone,
		Pace: plan.Pace(rapid.SampledFrom(plan.Paces()).Draw(t, "pace")), CustomDays: rapid.IntRange(1, 14).Draw(t, "days"),
		Level: plan.Standard, Drills: rapid.Bool().Draw(t, "drills"), FirstDay: day(-3), LastDay: day(rapid.IntRange(7, 60).Draw(t, "last"))}}
	scopes := []string{plan.FullScope}
	for _, s := range scale.Sections {
		scopes = append(scopes, s.Name)
	}
	for i := range rapid.IntRange(0, 40).Draw(t, "papers") {
		l.papers = append(l.papers, plan.Paper{ID: int64(i + 1), Scope: rapid.SampledFrom(scopes).Draw(t, "scope"),
			Difficulty: scale.Max / decimal.Number(rapid.IntRange(1, 4).Draw(t, "difficulty")), HasDifficulty: rapid.Bool().Draw(t, "graded")})
	}
	return l
}

func (l *life) today() clock.Date { return clock.DateIn(l.now, l.plan.Zone) }

// decide decides, checks what must hold of every decision, and applies it.
func (l *life) decide() {
	p, tests := l.plan, slices.Clone(l.tests)
	actions := plan.Decide(p, tests, l.results, l.papers, l.now)
	if same := plan.Decide(p, slices.Clone(tests), slices.Clone(l.results), slices.Clone(l.papers), l.now); !reflect.DeepEqual(actions, same) {
		l.t.Fatalf("the same input gave %+v and %+v", actions, same)
	}
	if !reflect.DeepEqual(tests, l.tests) {
		l.t.Fatal("the tests given were changed")
	}
	l.plan, l.tests = plan.Apply(p, tests, actions)
	if again := plan.Decide(l.plan, l.tests, l.results, l.papers, l.now); len(again) > 0 {
		l.t.Fatalf("%+v was followed by %+v", actions, again)
	}
	for _, a := range actions {
		if a.Do == plan.Drill {
			l.drilled = append(l.drilled, a.Test.Paper)
			l.papers = slices.DeleteFunc(l.papers, func(p plan.Paper) bool { return p.ID == a.Test.Paper })
		}
	}
	l.checkPace(p)
	l.checkTests(tests)
	l.checkFilled()
}

// checkFilled holds that no test lacks a paper while there is an unseen one of any scope.
func (l *life) checkFilled() {
	if len(l.tests) == 0 || l.plan.Status != plan.Active || l.plan.Access != plan.Open || l.tests[len(l.tests)-1].State != plan.Unfilled {
		return
	}
	for _, p := range l.papers {
		used := slices.ContainsFunc(l.tests, func(t plan.Test) bool { return t.Paper == p.ID })
		check.True(check.Now(l.t), "used", used, "paper %+v is unseen beside an unfilled test: %+v", p, l.tests)
	}
}

func (l *life) checkPace(before plan.Plan) {
	levels := []plan.Pace{plan.Light, plan.Standard, plan.Intensive}
	steps := slices.Index(levels, l.plan.Level) - slices.Index(levels, before.Level)
	check.OneOf(check.Now(l.t), "steps of the pace", steps, []int{-1, 0, 1}, "it went from %s to %s", before.Level, l.plan.Level)
}

func (l *life) checkTests(before []plan.Test) {
	seen := map[int64]bool{}
	for _, id := range l.drilled {
		if seen[id] {
			l.t.Fatalf("drill %d was given twice", id)
		}
		seen[id] = true
	}
	for i, t := range l.tests {
		if t.Paper != 0 {
			check.False(check.Now(l.t), "the paper was given before", seen[t.Paper], "paper %d: %+v", t.Paper, l.tests)
		}
		seen[t.Paper] = t.Paper != 0
		if i == len(l.tests)-1 {
			break
		}
		check.True(check.Now(l.t), "the test is open no more", t.State != plan.Opened, "test %d has a next one: %+v", t.Slot, l.tests)
		check.True(check.Now(l.t), "the test waits no more", t.State != plan.Waiting, "test %d has a next one: %+v", t.Slot, l.tests)
		check.True(check.Now(l.t), "the test lacks a paper no more", t.State != plan.Unfilled, "test %d has a next one: %+v", t.Slot, l.tests)
		next := l.tests[i+1]
		check.True(check.Now(l.t), "the next test has a higher slot", next.Slot > t.Slot, "%d, then %d: %+v", t.Slot, next.Slot, l.tests)
		check.True(check.Now(l.t), "the next test opens later", next.OpensOn.After(t.OpensOn), "%s, then %s: %+v", t.OpensOn, next.OpensOn, l.tests)
		if t.State == plan.Finished && !t.Late {
			check.False(check.Now(l.t), "the next test opens before this one was finished", next.OpensOn.Before(t.FinishedOn), "%s, finished %s: %+v", next.OpensOn, t.FinishedOn, l.tests)
		}
	}
	for _, t := range l.tests {
		old := slices.IndexFunc(before, func(b plan.Test) bool { return b.Slot == t.Slot })
		started := old >= 0 && before[old].State == plan.Started
		switch {
		case started && !reflect.DeepEqual(before[old], t):
			l.t.Fatalf("a started test was touched: %+v", t)
		case t.DueOn.Before(t.OpensOn):
			l.t.Fatalf("due before it opens: %+v", t)
		case t.State != plan.Opened && t.State != plan.Waiting && t.State != plan.Unfilled:
		case t.DueOn.After(l.plan.LastDay) && l.plan.Status == plan.Active && l.plan.Access == plan.Open:
			l.t.Fatalf("due after the last test day %v: %+v", l.plan.LastDay, t)
		}
	}
}

func (l *life) score(test plan.Test) plan.Result {
	r := plan.Result{Slot: test.Slot, On: l.today(), Sections: map[string]decimal.Number{}}
	c := l.plan.Scale
	draw := func(low, high, step decimal.Number) decimal.Number {
		return low + step*decimal.Number(rapid.Int64Range(0, int64((high-low)/step)).Draw(l.t, "score"))
	}
	for _, s := range c.Sections {
		if test.Kind != plan.SkillsCheck || test.Section == s.Name {
			r.Sections[s.Name] = draw(s.Min, s.Max, s.Step)
		}
	}
	r.Score = draw(c.Min, c.Max, c.Step)
	return r
}

func TestEveryLifeKeepsTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		l.decide()
		last := func(states ...plan.State) *plan.Test {
			if len(l.tests) == 0 || !slices.Contains(states, l.tests[len(l.tests)-1].State) {
				t.Skip()
			}
			return &l.tests[len(l.tests)-1]
		}
		t.Repeat(map[string]func(*rapid.T){
			"a time goes by":     func(t *rapid.T) { l.now = l.now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "hours")) * time.Hour) },
			"weeks go by":        func(t *rapid.T) { l.now = l.now.AddDate(0, 0, rapid.IntRange(5, 20).Draw(t, "days")) },
			"the student starts": func(*rapid.T) { last(plan.Opened).State = plan.Started },
			"the student finishes": func(*rapid.T) {
				test := last(plan.Opened, plan.Started)
				test.State, test.FinishedOn = plan.Finished, l.today()
				l.results = append(l.results, l.score(*test))
			},
			"a missed test is finished late": func(t *rapid.T) {
				i := slices.IndexFunc(l.tests, func(t plan.Test) bool { return t.State == plan.Missed })
				if i < 0 {
					t.Skip()
				}
				l.tests[i].State, l.tests[i].FinishedOn, l.tests[i].Late = plan.Finished, l.today(), true
				l.results = append(l.results, l.score(l.tests[i]))
			},
			"a missed test was finished in time": func(t *rapid.T) {
				i := slices.IndexFunc(l.tests, func(t plan.Test) bool { return t.State == plan.Missed })
				if i < 0 {
					t.Skip()
				}
				l.tests[i].State, l.tests[i].FinishedOn = plan.Finished, l.tests[i].DueOn
				l.results = append(l.results, l.score(l.tests[i]))
			},
			"a result is held": func(*rapid.T) {
				test := last(plan.Opened, plan.Started)
				test.State, test.FinishedOn = plan.Held, l.today()
			},
			"held results are released": func(*rapid.T) {
				for i := range l.tests {
					if l.tests[i].State == plan.Held {
						l.tests[i].State = plan.Finished
						l.results = append(l.results, l.score(l.tests[i]))
					}
				}
			},
			"a result is marked again": func(t *rapid.T) {
				if len(l.results) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(l.results)-1).Draw(t, "which")
				for _, test := range l.tests {
					if test.Slot == l.results[i].Slot {
						l.results[i] = l.score(test)
					}
				}
			},
			"the exam moves": func(t *rapid.T) {
				l.plan.LastDay = l.today().AddDays(rapid.IntRange(0, 60).Draw(t, "last"))
				l.plan.ExamDate = l.plan.LastDay.AddDays(3)
			},
			"the pace is set": func(t *rapid.T) {
				l.plan.Pace, l.plan.CustomDays = plan.Pace(rapid.SampledFrom(plan.Paces()).Draw(t, "pace")), rapid.IntRange(1, 14).Draw(t, "days")
			},
			"paused or resumed": func(t *rapid.T) {
				l.plan.Status = rapid.SampledFrom([]plan.Status{plan.Active, plan.Paused}).Draw(t, "status")
			},
			"suspended or not": func(t *rapid.T) {
				l.plan.Access = rapid.SampledFrom([]plan.Access{plan.Open, plan.Idle}).Draw(t, "access")
			},
			"skipped by staff": func(*rapid.T) { last(plan.Opened, plan.Waiting, plan.Unfilled).State = plan.Skipped },
			"papers run out":   func(*rapid.T) { l.papers = l.papers[:len(l.papers)/2] },
			"":                 func(*rapid.T) { l.decide() },
		})
	})
}
