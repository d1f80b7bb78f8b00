package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestTheReportShowsWhatWasMissed(t *testing.T) {
	p := &report{Began: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), Took: 90 * time.Second, Scale: 0.5, Cases: []outcome{
		{Name: "lists", About: "pages of lists", Said: "  three lines\n", Costs: map[string][]cost{"worker": {{"internal/x.F", .25}, {elsewhere, .2}}}, findings: findings{
			Figures: []figure{{"first page", "4 ms", "3 ms | 4 ms", true}, {"last page", "4 ms", "9 ms", false}},
			Steps:   []step{{"a page", times{time.Millisecond, 3 * time.Millisecond}, 12}},
			Peaks:   map[string]int64{"worker": 5 << 20, "api-server": 7 << 20}}},
		{Name: "provision", About: "creations", findings: findings{Figures: []figure{{"creations", "60 %", "6/s, pgbench 8/s", true}, {"repeats", "9/s", "9/s", true}}}},
		{Name: "mails", About: "mails", Err: errors.New("no mail server")},
	}}
	if missed, all := p.missed(); check.Equal(t, "missed", missed, 2, "%d of %d were missed", missed, all) {
		check.Equal(t, "all", all, 5, "%d of %d were missed", missed, all)
	}
	file := filepath.Join(t.TempDir(), "bench.md")
	if err := p.write(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| date | 2027-01-02 00:00 UTC |", "| scale | 0.5 |", "| duration | 1m30s |", "3 of 5 figures reached",
		"## Beside bare limits\n", "\n| [provision](#provision) | creations | 6/s, pgbench 8/s |\n\n## lists\n",
		"| [lists](#lists) | first page | 4 ms | 3 ms \\| 4 ms | reached |", "| [lists](#lists) | last page | 4 ms | 9 ms | **missed** |",
		"| [mails](#mails) | | | no mail server | **failed** |", "Pages of lists.", "  three lines\n", "no results, but a look",
		"| a page | 2 | 12 | 3ms | 3ms | 3ms | 3ms |", "Peak memory: api-server 7 MiB, worker 5 MiB.", "![pages of lists](bench/lists.svg)",
		"| worker | 25.0 % | `internal/x.F` |", "| worker | 20.0 % | " + elsewhere} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	drawn, err := os.ReadFile(filepath.Join(filepath.Dir(file), "bench", "lists.svg"))
	if check.NoError(t, err, "the chart: %v\n%s", err, drawn) {
		check.Contains(t, "the chart", string(drawn), "a page", "the chart: %v\n%s", err, drawn)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "bench", "mails.svg")); check.True(t, "there is an error", err != nil, "a chart of nothing") {
		check.Lacks(t, "the text", string(text), "mails.svg", "a chart of nothing")
	}
}

func TestAChartHoldsPanelsBeforeTheSpreadOfCalls(t *testing.T) {
	f := findings{Steps: []step{{"a call", times{time.Millisecond}, 0}}, panels: []chart.Panel{chart.Rows{Title: "Rates", Rows: []chart.Row{bar("one", 3, 2, chart.Blue)}}}}
	for range 2 { // drawing changes nothing
		drawn, err := f.chart()
		if err != nil {
			t.Fatal(err)
		}
		rates, calls := strings.Index(drawn, "Rates"), strings.Index(drawn, "a call")
		if check.True(t, "the rates are drawn", rates >= 0, "%v", drawn) {
			check.True(t, "the calls come after the rates", calls >= rates, "%v", drawn)
		}
	}
}

func TestTimeCountsForTheInnermostFunctionOfTheProduct(t *testing.T) {
	function := func(name string) *profile.Location {
		return &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}}
	}
	handler, query, driver := function(own+"api-server/internal/rest.list"), function(own+"internal/domain/result.Page"), function("github.com/jackc/pgx/v5.(*Conn).Query")
	p := &profile.Profile{Sample: []*profile.Sample{
		{Location: []*profile.Location{driver, query, handler}, Value: []int64{60, 600}},
		{Location: []*profile.Location{function("encoding/json.Marshal"), handler}, Value: []int64{30, 300}},
		{Location: []*profile.Location{function("runtime.gcBgMarkWorker")}, Value: []int64{10, 100}},
	}}
	got := costsOf(p, 5)
	want := []cost{{"internal/domain/result.Page", .6}, {"api-server/internal/rest.list", .3}, {elsewhere, .1}}
	if len(got) != len(want) {
		t.Fatal(got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
	if got := costsOf(&profile.Profile{Sample: p.Sample[2:]}, 5); got != nil {
		t.Errorf("ten samples tell %v", got)
	}
}
