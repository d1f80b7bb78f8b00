package svg_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/internal/svg"
)

func TestAPageIsWellFormedAndHoldsEverySeries(t *testing.T) {
	t.Parallel()
	page := svg.Page(
		svg.Chart{Title: "Tests <a day>", Bars: []svg.Bars{{Name: "given", Color: svg.Blue, Y: []float64{1, 2, 0}}, {Name: "missed", Color: svg.Red, Y: []float64{1, 0, 3}}}},
		svg.Chart{Title: "Scores", Bands: []svg.Band{{Name: "half", Color: svg.Blue, Low: []float64{1, 2}, High: []float64{3, 4}}},
			Lines: []svg.Line{{Name: "median", Color: svg.Blue, Y: []float64{math.NaN(), 2}}, {Name: "target", Color: svg.Green, Dashed: true, Y: []float64{3, 3}}}},
		svg.Chart{Title: "Nothing yet"},
		svg.Rows{Title: "Rates", Unit: "/s", Rows: []svg.Row{{Name: "parts", Parts: []svg.Part{{Name: "first", Color: svg.Blue, Value: 1200}, {Name: "second", Color: svg.Amber, Value: 34.5}}, Bound: 1000},
			{Name: "nothing"}}},
		svg.Spreads{Title: "Calls", Unit: "ms", Rows: []svg.Spread{{Name: "a list & more", P50: .4, P90: 12, P99: 1234.5}}},
		svg.Rows{Title: "No rows"}, svg.Spreads{Title: "No calls"},
	)
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
	if count["polyline"] != 2 || count["polygon"] != 1 || count["g"] != 7 || count["rect"] < 4+5+2 || count["circle"] != 3 {
		t.Errorf("%v", count)
	}
	for _, want := range []string{"Tests &lt;a day&gt;", "a list &amp; more", "0.4 · 12 · 1,234 ms", "1,234 /s (bound 1,000)", "prefers-color-scheme: dark"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error(page)
	}
}
