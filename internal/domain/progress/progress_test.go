package progress_test

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/registrar-dev/registrar/internal/domain/progress"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

var day = clock.DateOf(2026, 11, 20)

func num(t testing.TB, text string) decimal.Number {
	t.Helper()
	n, err := decimal.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func show(r progress.Row) string {
	text := fmt.Sprintf("%d %s %s n=%d avg=%v%% best=%v%%", r.Student.User, r.Kind, r.Type, r.Attempts, r.AveragePercentage, r.BestPercentage)
	if r.AverageScore != nil {
		text += fmt.Sprintf(" avg=%v best=%v max=%v", *r.AverageScore, *r.BestScore, *r.MaxScore)
	}
	return text
}

// Reference: progress#progress-rows.
func TestSum(t *testing.T) {
	t.Parallel()
	result := func(user id.User, kind, typ, score, most string) progress.Result {
		return progress.Result{User: user, Kind: kind, Type: typ, Score: num(t, score), MaxScore: num(t, most)}
	}
	for name, c := range map[string]struct {
		results []progress.Result
		want    []string
	}{
		"nothing": {nil, nil},
		"one":     {[]progress.Result{result(1, "test", "ielts", "6.5", "9")}, []string{"1 test ielts n=1 avg=72.22% best=72.22% avg=6.5 best=6.5 max=9"}},
		"the mean is of the scores, rounded half up": {
			[]progress.Result{result(1, "test", "ielts", "6.5", "9"), result(1, "test", "ielts", "6", "9"), result(1, "test", "ielts", "6", "9")},
			[]string{"1 test ielts n=3 avg=68.52% best=72.22% avg=6.17 best=6.5 max=9"}},
		"different scales": {
			[]progress.Result{result(1, "test", "sat", "400", "800"), result(1, "test", "sat", "1600", "1600"), result(1, "test", "sat", "200", "800")},
			[]string{"1 test sat n=3 avg=58.33% best=100%"}},
		"by user, kind and type": {
			[]progress.Result{result(2, "quiz", "quiz", "80", "100"), result(1, "test", "toefl", "60", "120"), result(1, "test", "ielts", "9", "9"),
				result(1, "assessment", "assessment", "0", "20")},
			[]string{"1 assessment assessment n=1 avg=0% best=0% avg=0 best=0 max=20", "1 test ielts n=1 avg=100% best=100% avg=9 best=9 max=9",
				"1 test toefl n=1 avg=50% best=50% avg=60 best=60 max=120", "2 quiz quiz n=1 avg=80% best=80% avg=80 best=80 max=100"}},
	} {
		rows := progress.Sum(day, c.results)
		var got []string
		for _, r := range rows {
			if r.Date != day {
				t.Errorf("%s: date %v", name, r.Date)
			}
			got = append(got, show(r))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

// Whatever the scales, the average is the exact mean of the fractions, rounded half up.
func TestTheAverageIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "n")
		sum := new(big.Rat)
		results := make([]progress.Result, n)
		for i := range results {
			most := rapid.SampledFrom([]int64{9, 120, 800, 1600, 7}).Draw(rt, "max")
			score := rapid.Int64Range(0, most*10_000).Draw(rt, "score")
			results[i] = progress.Result{User: 1, Kind: "test", Type: "x", Score: decimal.Number(score), MaxScore: decimal.Whole(most)}
			sum.Add(sum, big.NewRat(score, most*10_000))
		}
		sum.Mul(sum, big.NewRat(100, int64(n)))
		want := sum.FloatString(2) // rounds half away from zero, which is up here
		row := progress.Sum(day, results)[0]
		if got := fmt.Sprintf("%.2f", float64(row.AveragePercentage)/10_000); got != want {
			rt.Fatalf("average %s, want %s", got, want)
		}
	})
}
