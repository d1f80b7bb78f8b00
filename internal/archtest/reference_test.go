package archtest_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

var (
	// citation is how a comment cites sections: docs/reference/README.md explains the form.
	citation  = regexp.MustCompile(`(?i)\breference:[ \t]+([^\s,]*#[^\s,]*(?:, [^\s,]*#[^\s,]*)*)`)
	heading   = regexp.MustCompile(`(?m)^## (.+)$`)
	notInSlug = regexp.MustCompile(`[^a-z0-9_ -]`)
)

// Whatever a comment cites of docs/reference exists, and every section there is cited by a
// test, which holds what the section says.
func TestTheReferenceIsCitedAndHeld(t *testing.T) {
	t.Parallel()
	sections := sectionsOfTheReference(t)
	cited, held := 0, map[string]bool{}
	eachSource(t, func(path, text string) {
		for _, m := range citation.FindAllStringSubmatch(text, -1) {
			for section := range strings.SplitSeq(m[1], ", ") {
				section = strings.TrimRight(section, ".:;)")
				cited++
				if !sections[section] {
					t.Errorf("%s cites %s, which is no section of docs/reference", path, section)
				}
				if strings.HasSuffix(path, "_test.go") {
					held[section] = true
				}
			}
		}
	})
	if cited < 100 {
		t.Errorf("only %d citations were found: they have another form now", cited)
	}
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		if !held[section] {
			t.Errorf("no test cites %s of docs/reference", section)
		}
	}
}

// sectionsOfTheReference are the headings of the second level, as page#anchor.
func sectionsOfTheReference(t *testing.T) map[string]bool {
	t.Helper()
	pages, err := filepath.Glob("../../docs/reference/*.md")
	check.NoError(check.Now(t), err, "docs/reference has no pages: %v", err)
	check.True(check.Now(t), "there are pages", len(pages) != 0, "docs/reference has no pages: %v", err)
	sections := map[string]bool{}
	for _, file := range pages {
		page := strings.TrimSuffix(filepath.Base(file), ".md")
		if page == "README" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range heading.FindAllSubmatch(text, -1) {
			anchor := notInSlug.ReplaceAllString(strings.ToLower(string(m[1])), "")
			sections[page+"#"+strings.ReplaceAll(anchor, " ", "-")] = true
		}
	}
	return sections
}

// eachSource gives every Go and SQL file of the checkout.
func eachSource(t *testing.T, do func(path, text string)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(name, "."):
			return filepath.SkipDir // git's, or of a Registrar that runs here
		case !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".sql"):
			return nil
		}
		text, err := os.ReadFile(path)
		do(path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
