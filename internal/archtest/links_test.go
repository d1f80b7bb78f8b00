package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// link is a link of Markdown whose target is no URL and no heading of the same page.
var link = regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)\s]*)?\)`)

// TestLinksOfThePagesLeadSomewhere follows every relative link of the repository's Markdown files,
// so that a walk through the code or a guide never names a file that has moved.
func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	out, err := run("git", "ls-files", "-z", "*.md")
	if err != nil {
		t.Skip("not a git checkout:", err)
	}
	pages, links := 0, 0
	for page := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		pages++
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			target := filepath.Join("..", "..", filepath.Dir(page), found[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, found[1])
			}
		}
	}
	check.True(t, "at least 20 pages are found", pages >= 20, "%d pages", pages)
	check.True(t, "at least 100 links are found", links >= 100, "%d links", links)
}
