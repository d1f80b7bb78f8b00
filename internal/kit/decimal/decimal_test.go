package decimal_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

func TestParseAndString(t *testing.T) {
	for text, want := range map[string]string{
		"6.5": "6.5", "120": "120", "0": "0", "0.0": "0", "-0.25": "-0.25", "1.2e2": "120", "83.3333": "83.3333", "7.50000": "7.5",
		"5E-1": "0.5", "1000000": "1000000",
	} {
		n, err := decimal.Parse(text)
		if check.NoError(t, err, "%s reads as %v (%v), want %s", text, n, err, want) {
			check.Equal(t, "the number", n.String(), want, "%s reads as %v (%v), want %s", text, n, err, want)
		}
	}
	for _, text := range []string{"", "x", "6,5", "0.00001", "1000000.1", "1e40", "1e", "--1", "1.2.3", "NaN", "+"} {
		if n, err := decimal.Parse(text); err == nil {
			t.Errorf("%q reads as %v", text, n)
		}
	}
}

func TestPercentIsHalfUp(t *testing.T) {
	for _, c := range []struct{ part, whole, want string }{
		{"6.5", "9", "72.22"}, {"1", "8", "12.5"}, {"1", "3", "33.33"}, {"2", "3", "66.67"}, {"0.005", "100", "0.01"},
		{"0.0049", "100", "0"}, {"9", "9", "100"}, {"1600", "1600", "100"}, {"1", "0", "0"},
	} {
		part, _ := decimal.Parse(c.part)
		whole, _ := decimal.Parse(c.whole)
		if got := decimal.Percent(part, whole).String(); got != c.want {
			t.Errorf("%s of %s is %s %%, want %s", c.part, c.whole, got, c.want)
		}
	}
}

func TestRoundingProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := decimal.Number(rapid.Int64Range(0, int64(decimal.Max)).Draw(rt, "n"))
		step := decimal.Number(rapid.Int64Range(1, 200_000).Draw(rt, "step"))
		got := n.RoundTo(step)
		check.Equal(check.Now(rt), "got%step", got%step, 0, "%d to %d is %d", n, step, got)
		check.True(check.Now(rt), "it is rounded up by half a step at most", 2*(got-n) <= step, "%d to %d is %d", n, step, got)
		check.True(check.Now(rt), "it is rounded down by less than half a step", 2*(n-got) < step, "%d to %d is %d", n, step, got)
		text, _ := json.Marshal(n)
		var back decimal.Number
		if err := json.Unmarshal(text, &back); check.NoError(check.Now(rt), err, "%d → %s → %d", n, text, back) {
			check.Equal(check.Now(rt), "back", back, n, "%d → %s → %d", n, text, back)
		}
		exact, _ := new(big.Rat).SetString(n.String())
		if exact.Cmp(big.NewRat(int64(n), int64(decimal.One))) != 0 {
			rt.Fatalf("%d is written %v", n, n)
		}
	})
}

func TestMean(t *testing.T) {
	half := decimal.One / 2
	for _, c := range []struct {
		want decimal.Number
		of   []decimal.Number
	}{
		{65_000, []decimal.Number{60_000, 65_000, 60_000, 65_000}}, // 6.25 goes up
		{60_000, []decimal.Number{60_000, 65_000, 60_000, 60_000}}, // 6.125 goes down
		{70_000, []decimal.Number{65_000, 70_000, 65_000, 70_000}}, // 6.75 goes up
		{0, nil},
	} {
		if got := decimal.MeanTo(half, c.of...); got != c.want {
			t.Errorf("the mean of %v is %v, want %v", c.of, got, c.want)
		}
	}
}
