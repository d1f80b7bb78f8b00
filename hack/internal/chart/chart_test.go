package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestAPageIsWellFormedAndHoldsEverySeries(t *testing.T) {
	t.Parallel()
	page, err := chart.Page(
		chart.Chart{Title: "Tests <a day>", Bars: []chart.Bars{{Name: "given", Color: chart.Blue, Y: []float64{1, 2, 0}}, {Name: "missed", Color: chart.Red, Y: []float64{1, 0, 3}}}},
		chart.Chart{Title: "Scores", Bands: []chart.Band{{Name: "half", Color: chart.Blue, Low: []float64{1, 2}, High: []float64{3, 4}}},
			Lines: []chart.Line{{Name: "median", Color: chart.Blue, Y: []float64{math.NaN(), 2}}, {Name: "target", Color: chart.Green, Dashed: true, Y: []float64{3, 3}}}},
		chart.Chart{Title: "Nothing yet"},
		chart.Rows{Title: "Rates", Unit: "/s", Rows: []chart.Row{{Name: "parts", Parts: []chart.Part{{Name: "first", Color: chart.Blue, Value: 1200}, {Name: "second", Color: chart.Amber, Value: 34.5}}, Bound: 1000},
			{Name: "nothing"}}},
		chart.Spreads{Title: "Calls", Unit: "ms", Rows: []chart.Spread{{Name: "a list & more", P50: .4, P90: 12, P99: 1234.5}}},
		chart.Times{Title: "Faults", XLabel: "minutes", Until: 9, Rows: []chart.Spans{{Name: "a kill", Parts: [][2]float64{{1, 2}, {4, 4}}}, {Name: "none"}}},
		chart.Rows{Title: "No rows"}, chart.Spreads{Title: "No calls"}, chart.Times{Title: "No faults"},
	)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(page))
	count := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
	if count["path"] < 3+2+1+2+1+2 {
		t.Errorf("%v", count)
	}
	for _, want := range []string{"Tests &lt;a day&gt;", "given", "missed", "half", "median", "target", "Nothing yet", "parts", "first", "second", "Faults", "a kill", "No rows", "No calls", "p50", "p90", "p99", "a list &amp; more", "0.4 · 12 · 1,234 ms", "1,234 /s (bound 1,000)", "prefers-color-scheme: dark"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if check.Lacks(t, "the page", page, "NaN", "%v", page) {
		check.Lacks(t, "the page", page, "Inf", "%v", page)
	}
}
