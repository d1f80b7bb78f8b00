// Package plan holds students' target scores and the test plans that lead to them
// (reference: plans#rules).
//
// A plan is a row of tests, one a slot, of which only the last can be unfinished. What
// happens next is decided by Decide, a pure function of the plan, its tests, their
// results, the unseen papers and the time; whatever wakes a plan (its zone's day start, a
// result, a changed setting) only calls it. It may be called at any time and any number
// of times: once its actions are applied, it has none left until something changes.
//
// Dates are days in the plan's own zone. Scores are exact decimals.
package plan
