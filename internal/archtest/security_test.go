package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Z0-9]\\w*)`")
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// tests are the names of all tests and fuzz targets in the checkout.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	eachSource(t, func(path, text string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			names[m[1]] = true
		}
	})
	return names
}

// Every threat in docs/security.md names tests that hold its defence, and they exist.
func TestEveryThreatIsHeldByATest(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	existing, threats, inTable := tests(t), 0, false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(cells) != 5:
			inTable = false
		case strings.TrimSpace(cells[1]) == "threat":
			inTable = true
		case inTable && !strings.HasPrefix(cells[1], "---"):
			threats++
			if !namedTest.MatchString(cells[3]) {
				t.Errorf("no test is named for: %s", cells[1])
			}
		}
	}
	if threats < 20 {
		t.Errorf("%d threats are found: the tables have another form now", threats)
	}
	oneRoster, err := os.ReadFile(filepath.Join("..", "..", "docs", "oneroster.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range namedTest.FindAllSubmatch(append(text, oneRoster...), -1) {
		if !existing[string(m[1])] {
			t.Errorf("docs/security.md or docs/oneroster.md names %s, which is no test", m[1])
		}
	}
}
