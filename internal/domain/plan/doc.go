// Package plan holds students' target scores and the test plans that lead to them
// (reference: plans#rules).
//
// A plan is a list of tests, one for each slot. Only the last test can be unfinished. Decide says
// what happens next. It is a pure function of the plan, its tests, their results, the unseen papers
// and the time. It is called when a day starts in the plan's zone, when a result arrives and when a
// setting changes. It may be called at any time and any number of times: once its actions are
// applied, it returns none until something changes.
//
// Dates are days in the plan's own zone. Scores are exact decimals.
package plan
