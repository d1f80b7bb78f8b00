package svg_test

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/internal/svg"
)

func TestAPageIsWellFormedAndHoldsEverySeries(t *testing.T) {
	t.Parallel()
	page := svg.Page(
		svg.Chart{Title: "Tests <a day>", Bars: []svg.Bars{{Name: "given", Color: "#111", Y: []float64{1, 2, 0}}, {Name: "missed", Color: "#222", Y: []float64{1, 0, 3}}}},
		svg.Chart{Title: "Scores", Bands: []svg.Band{{Name: "half", Color: "#333", Low: []float64{1, 2}, High: []float64{3, 4}}},
			Lines: []svg.Line{{Name: "median", Color: "#444", Y: []float64{math.NaN(), 2}}, {Name: "target", Color: "#555", Dashed: true, Y: []float64{3, 3}}}},
		svg.Chart{Title: "Nothing yet"},
	)
	d := xml.NewDecoder(strings.NewReader(page))
	count := map[string]int{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
	if count["polyline"] != 2 || count["polygon"] != 1 || count["g"] != 3 || count["rect"] < 4+5 {
		t.Errorf("%v", count)
	}
	if strings.Contains(page, "NaN") || !strings.Contains(page, "Tests &lt;a day&gt;") {
		t.Error(page)
	}
}
