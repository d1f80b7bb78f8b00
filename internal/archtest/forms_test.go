package archtest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// form is an issue form, as far as GitHub insists on it:
// https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests/syntax-for-githubs-form-schema
type form struct {
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	Labels      []string `yaml:"labels"`
	Body        []struct {
		Type       string `yaml:"type"`
		ID         string `yaml:"id"`
		Attributes struct {
			Label       string `yaml:"label"`
			Description string `yaml:"description"`
			Value       string `yaml:"value"`
			Placeholder string `yaml:"placeholder"`
			Render      string `yaml:"render"`
			Options     []any  `yaml:"options"`
		} `yaml:"attributes"`
		Validations struct {
			Required bool `yaml:"required"`
		} `yaml:"validations"`
	} `yaml:"body"`
}

// GitHub shows a form that it does not understand to nobody, and says so to nobody.
func TestIssueFormsAreThoseThatGitHubShows(t *testing.T) {
	t.Parallel()
	forms, err := filepath.Glob("../../.github/ISSUE_TEMPLATE/*.yml")
	check.NoError(check.Now(t), err, "%v", err)
	check.True(t, "there are forms", len(forms) > 1, "%v", forms)
	for _, file := range forms {
		if filepath.Base(file) == "config.yml" {
			continue
		}
		text, err := os.ReadFile(file)
		check.NoError(check.Now(t), err, "%v", err)
		var f form
		decoder := yaml.NewDecoder(bytes.NewReader(text))
		decoder.KnownFields(true)
		err = decoder.Decode(&f)
		check.NoError(check.Now(t), err, "%s: %v", file, err)
		check.True(t, "it has a name and a description", f.Name != "" && f.Description != "", "%s", file)
		asked, ids := 0, map[string]bool{}
		for _, b := range f.Body {
			if b.Type == "markdown" {
				check.True(t, "a text says something", b.Attributes.Value != "" && b.ID == "", "%s: %+v", file, b)
				continue
			}
			asked++
			check.True(t, "it is a kind of field", slices.Contains([]string{"input", "textarea", "dropdown", "checkboxes"}, b.Type), "%s: %q", file, b.Type)
			check.True(t, "a field has a label and an id of its own", b.Attributes.Label != "" && b.ID != "" && !ids[b.ID], "%s: %+v", file, b)
			check.Equal(t, "whether it has options", len(b.Attributes.Options) > 0, b.Type == "dropdown" || b.Type == "checkboxes", "%s: %s", file, b.ID)
			ids[b.ID] = true
		}
		check.True(t, "it asks for something", asked > 0, "%s", file)
	}
}

var formLink = regexp.MustCompile(`/issues/new\?template=([\w.-]+)`)

// A link to a form that is not there leads to an empty issue.
func TestLinksToIssueFormsLeadToOne(t *testing.T) {
	t.Parallel()
	out, err := run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md")
	if err != nil {
		t.Skip("not a git checkout:", err)
	}
	links := 0
	for page := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		check.NoError(check.Now(t), err, "%v", err)
		for _, found := range formLink.FindAllStringSubmatch(string(text), -1) {
			links++
			_, err := os.Stat(filepath.Join("../../.github/ISSUE_TEMPLATE", found[1]))
			check.NoError(t, err, "%s links to %s", page, found[1])
		}
	}
	check.True(t, "links to forms are found", links > 0, "")
}
