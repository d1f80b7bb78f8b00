package browsertest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// violation is what axe finds wrong, and where.
type violation struct {
	ID, Help string
	Nodes    []struct {
		Target  []any  // CSS selectors
		Summary string `json:"failureSummary"`
	}
}

// runAxe checks the page against WCAG 2.2 AA and what axe itself recommends.
const runAxe = `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => ({
	ID: v.id, Help: v.help, Nodes: v.nodes.map(n => ({Target: n.target, failureSummary: n.failureSummary}))})))`

// Accessible fails the test for whatever axe finds wrong with the page, which the test
// calls name, in light and in dark colours. axe comes to the page as the browser's
// developer tools would bring it, so that the page's policy need not allow it.
func (b *Browser) Accessible(name string) {
	b.t.Helper()
	script := axe(b.t)
	for _, dark := range []bool{false, true} {
		b.Dark(dark)
		for _, v := range b.violations(script) {
			var where strings.Builder
			for _, n := range v.Nodes {
				fmt.Fprintf(&where, "\n  %v: %s", n.Target, n.Summary)
			}
			b.t.Errorf("%s (dark: %t): %s: %s%s", name, dark, v.ID, v.Help, where.String())
		}
	}
	b.Dark(false)
}

func (b *Browser) violations(script string) []violation {
	b.t.Helper()
	eval[bool](b, script+"\n;true")
	return eval[[]violation](b, runAxe)
}

// axe is the text of axe-core: the file AXE_CORE, which `make test` sets, empty where there is none.
func axe(t testing.TB) string {
	t.Helper()
	file, set := os.LookupEnv("AXE_CORE")
	switch {
	case !set:
		t.Fatal("AXE_CORE is not set: run `make test ARGS=<packages>`")
	case file == "":
		nottested.Skip(t, "there is no axe-core on this machine")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
