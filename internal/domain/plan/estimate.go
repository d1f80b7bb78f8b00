package plan

import (
	"cmp"
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// record holds the results of a plan's finished tests, in the order in which they were finished.
type record struct {
	plan    Plan
	exam    exam
	full    []Result            // of full papers
	section map[string][]Result // of papers with the section
	slots   []int               // of all of them
}

func newRecord(p Plan, tests []Test, results []Result) record {
	r := record{plan: p, exam: exams[p.Scale.Exam], section: map[string][]Result{}}
	inOrder := slices.Clone(results)
	slices.SortFunc(inOrder, func(a, b Result) int { return cmp.Or(a.On.Compare(b.On), cmp.Compare(a.Slot, b.Slot)) })
	for _, res := range inOrder {
		i := slices.IndexFunc(tests, func(t Test) bool { return t.Slot == res.Slot })
		if i < 0 || tests[i].State != Finished {
			continue
		}
		r.slots = append(r.slots, res.Slot)
		if tests[i].full() {
			r.full = append(r.full, res)
		}
		for _, s := range p.Scale.Sections {
			if _, ok := res.Sections[s.Name]; ok && (tests[i].full() || tests[i].Section == s.Name) {
				r.section[s.Name] = append(r.section[s.Name], res)
			}
		}
	}
	return r
}

// Estimate returns the score that the student would reach today, by the latest full tests, and false
// while there is none.
func Estimate(p Plan, tests []Test, results []Result) (e decimal.Number, ok bool) {
	return newRecord(p, tests, results).estimate()
}

// estimate returns the median of the last three full scores, or the lower one of two, and false while
// there is none. The reference calls it E.
func (r record) estimate() (e decimal.Number, ok bool) {
	last := tail(r.full, 3)
	scores := make([]decimal.Number, len(last))
	for i, res := range last {
		scores[i] = res.Score
	}
	slices.Sort(scores)
	if len(scores) == 0 {
		return 0, false
	}
	return scores[(len(scores)-1)/2], true
}

// sectionEstimate returns the lower of the section's last two scores, and false while there is none.
func (r record) sectionEstimate(name string) (decimal.Number, bool) {
	last := tail(r.section[name], 2)
	if len(last) == 0 {
		return 0, false
	}
	lowest := last[0].Sections[name]
	for _, res := range last {
		lowest = min(lowest, res.Sections[name])
	}
	return lowest, true
}

// deficit is how far a section's estimate is below what it needs.
type deficit struct {
	section string
	missing decimal.Number
}

// needs returns what each section lacks to what it needs, the most first and equal ones in the scale's
// order. Sections that have more than they need are last, and those without a score just before them.
func (r record) needs() []deficit {
	var all []deficit
	for _, s := range r.plan.Scale.Sections {
		need := max(r.plan.Minimums[s.Name], r.exam.sectionTarget(r.plan.Target))
		have, ok := r.sectionEstimate(s.Name)
		if !ok {
			have = need
		}
		all = append(all, deficit{s.Name, need - have})
	}
	slices.SortStableFunc(all, func(a, b deficit) int { return cmp.Compare(b.missing, a.missing) })
	return all
}

// deficits returns the sections whose estimate is below what they need, the largest deficit first.
func (r record) deficits() []deficit {
	return slices.DeleteFunc(r.needs(), func(d deficit) bool { return d.missing <= 0 })
}

// weakestFirst returns all sections.
func (r record) weakestFirst() []string {
	var names []string
	for _, d := range r.needs() {
		names = append(names, d.section)
	}
	return names
}

// minimumUnmet says whether a section's estimate is known and below its minimum.
func (r record) minimumUnmet() bool {
	for name, lowest := range r.plan.Minimums {
		if have, ok := r.sectionEstimate(name); ok && have < lowest {
			return true
		}
	}
	return false
}

// targetMet says whether the estimate reaches the target and every known section its
// minimum.
func (r record) targetMet() bool {
	e, ok := r.estimate()
	return ok && e >= r.plan.Target && !r.minimumUnmet()
}

// proven says whether the target is met and the two latest full tests met every minimum.
func (r record) proven() bool {
	e, ok := r.estimate()
	if !ok || e < r.plan.Target || len(r.full) < 2 {
		return false
	}
	for _, res := range tail(r.full, 2) {
		for name, lowest := range r.plan.Minimums {
			if res.Sections[name] < lowest {
				return false
			}
		}
	}
	return true
}

// fallsShort says whether the estimate will be below the target on the last test day, if it grows as
// fast as in the last four full tests. The growth is between nothing and maxGain in slopeDays; after
// a single test it is half of that.
func (r record) fallsShort(today clock.Date) bool {
	e, ok := r.estimate()
	if !ok {
		return false
	}
	days := int64(max(today.DaysUntil(r.plan.LastDay), 0))
	gain, per := r.slope()
	return int64(e)*per+gain*days < int64(r.plan.Target)*per
}

// slope returns the growth of a day as gain ÷ per. They are whole numbers, so that equal inputs give
// equal answers on every machine.
func (r record) slope() (gain, per int64) {
	last := tail(r.full, 4)
	if len(last) < 2 {
		return int64(r.exam.maxGain), 2 * slopeDays
	}
	var n, sx, sy, sxx, sxy int64
	for _, res := range last {
		x, y := int64(last[0].On.DaysUntil(res.On)), int64(res.Score)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	gain, per = n*sxy-sx*sy, n*sxx-sx*sx
	switch {
	case per <= 0 || gain <= 0: // all on one day, or none better than the others
		return 0, 1
	case gain*slopeDays > int64(r.exam.maxGain)*per:
		return int64(r.exam.maxGain), slopeDays
	}
	return gain, per
}

// tail returns the last n of all, or fewer.
func tail[T any](all []T, n int) []T { return all[max(len(all)-n, 0):] }
