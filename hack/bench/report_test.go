package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTheReportShowsWhatWasMissed(t *testing.T) {
	p := &report{began: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), cases: []outcome{
		{name: "lists", about: "pages of lists", figures: []figure{{"first page", "3 ms | 4 ms", true}, {"last page", "9 ms", false}}, said: "  three lines\n"},
		{name: "mails", about: "mails", err: errors.New("no mail server")},
	}}
	if p.missed() != 2 {
		t.Errorf("%d were missed", p.missed())
	}
	text := string(p.markdown(t.Context(), 0.5))
	for _, want := range []string{"on 2027-01-02", "| lists | first page | reached | 3 ms \\| 4 ms |", "| lists | last page | **missed** | 9 ms |",
		"| mails | | **failed** | no mail server |", "Pages of lists.", "  three lines\n", "no results, but a look"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}
