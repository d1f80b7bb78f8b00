// Package progress sums up final results by day, student, kind and type of work
// (reference: progress#progress-rows).
//
// Results are read in the order of their completion. A day is summed up and passed on before the next one is
// read, so that memory does not grow with the number of days or students.
package progress

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Result is one final result.
type Result struct {
	User     id.User
	Kind     string
	Type     string
	Score    decimal.Number
	MaxScore decimal.Number // above 0
}

// Row is the sum of a student's results of one day, kind and type.
type Row struct {
	Student  Student
	Date     clock.Date
	Kind     string
	Type     string
	Attempts int

	AveragePercentage decimal.Number // two decimals, half up
	BestPercentage    decimal.Number // likewise

	// Of the scores; nil where the day has results on different scales.
	AverageScore *decimal.Number // two decimals, half up
	BestScore    *decimal.Number
	MaxScore     *decimal.Number
}

// Student is the person of a row.
type Student struct {
	User                       id.User
	Email, FirstName, LastName string
}

// Sum returns the rows of one day's results, by user, kind and type. Of the Student only the User is set.
func Sum(day clock.Date, results []Result) []Row {
	results = slices.Clone(results)
	slices.SortStableFunc(results, compare)
	var rows []Row
	for len(results) > 0 {
		n := 1
		for n < len(results) && compare(results[0], results[n]) == 0 {
			n++
		}
		rows = append(rows, sumGroup(day, results[:n]))
		results = results[n:]
	}
	return rows
}

func compare(a, b Result) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Type, b.Type))
}

func sumGroup(day clock.Date, group []Result) Row {
	best, mixed := group[0], false
	for _, r := range group[1:] {
		mixed = mixed || r.MaxScore != group[0].MaxScore
		if int64(r.Score)*int64(best.MaxScore) > int64(best.Score)*int64(r.MaxScore) {
			best = r
		}
	}
	row := Row{Student: Student{User: best.User}, Date: day, Kind: best.Kind, Type: best.Type, Attempts: len(group),
		BestPercentage: decimal.Percent(best.Score, best.MaxScore)}
	if mixed {
		row.AveragePercentage = averagePercentage(group)
		return row
	}
	var sum decimal.Number
	for _, r := range group {
		sum += r.Score
	}
	count := decimal.Number(len(group))
	average := sum.RoundTo(hundredth*count) / count
	row.AveragePercentage = decimal.Percent(sum, best.MaxScore*count)
	row.AverageScore, row.BestScore, row.MaxScore = &average, &best.Score, &best.MaxScore
	return row
}

const hundredth = decimal.One / 100

// averagePercentage returns the exact mean of the fractions, rounded once.
func averagePercentage(group []Result) decimal.Number {
	sum := new(big.Rat)
	for _, r := range group {
		sum.Add(sum, big.NewRat(int64(r.Score), int64(r.MaxScore)))
	}
	// Rounded half up in hundredths of a percent: floor((2·10000·sum/n + 1) / 2).
	sum.Mul(sum, big.NewRat(2*10_000, int64(len(group)))).Add(sum, big.NewRat(1, 1))
	n := new(big.Int).Div(sum.Num(), new(big.Int).Mul(sum.Denom(), big.NewInt(2)))
	return decimal.Number(n.Int64()) * hundredth
}
