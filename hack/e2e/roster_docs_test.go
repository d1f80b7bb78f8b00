package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/roster"
)

// withoutZip stands in for zip where there is none.
const withoutZip = `command -v zip >/dev/null || zip() { shift; python3 -m zipfile -c "$@"; }
`

// The commands of the page, among them the script that a job of the night runs.
func TestThePageOnOneRosterIsTrue(t *testing.T) {
	t.Parallel()
	root, err := stack.Root()
	must(t, err)
	h := newHouse(t)
	h.runPage(t, filepath.Join(root, "docs", "oneroster.md"), []string{`"status":"dry_run"`, `"create":2`, `"file":"users.csv","line":4`, `"teacher_reported"`,
		"sent export.zip", "sent export.zip", `"authoritative_enabled":true`, "sent delta.zip", `"roster_runs":[`, `"deactivate":1`})
}

func TestThePageOnRostersIsTrue(t *testing.T) {
	t.Parallel()
	root, err := stack.Root()
	must(t, err)
	h := newHouse(t)
	h.runPage(t, filepath.Join(root, "docs", "roster.md"), []string{`"status":"dry_run"`, `"create":2`, `"status":"applied"`, `"create":2,"update":0,"skip":1`, `"teacher_reported"`,
		`"status":"applied"`, `"create":0,"update":0,"skip":3`, `"authoritative_enabled":true`, `"status":"held"`, `"empty_file"`, `"roster_runs":[`, `"held"`})
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "roster.md"))
	must(t, err)
	for _, code := range []roster.Code{roster.MissingExternalID, roster.MissingEmail, roster.InvalidEmail, roster.DuplicateExternalID, roster.DuplicateEmail,
		roster.EmailChanged, roster.ExternalIDReassigned, roster.TeacherReported, roster.AdminRoleNotGranted, roster.UnknownRole, roster.NotManaged,
		roster.UnknownPerson, roster.ClassNameConflict, roster.BadRow, roster.SuspiciousValue, roster.EncodingAssumed, roster.Withdrawn, roster.UnknownClass, roster.UnknownSession} {
		if !strings.Contains(string(text), "`"+string(code)+"`") {
			t.Errorf("docs/reference/roster.md does not explain %s", code)
		}
	}
}

// runPage runs the commands of a page in one shell, and looks for the texts, in their order, in what they print.
func (h *house) runPage(t *testing.T, page string, prints []string) {
	t.Helper()
	cmd := command(t, "sh", "-e", "-c", withoutZip+commands(t, page))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "ORGANIZATION=demo", "API_KEY="+h.key, "PLATFORM_KEY="+h.settings.PlatformKey,
		"BASE_URL="+h.settings.PublicURL()+"/api/v1/", fmt.Sprintf("PLATFORM_URL=http://127.0.0.1:%d/platform/v1/", h.settings.Ports.Platform))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("a command of the page fails: %v\n%s", err, out)
	}
	rest := string(out)
	for _, want := range prints {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %s in the rest of what the commands print:\n%s", want, out)
		}
		rest = after
	}
}
