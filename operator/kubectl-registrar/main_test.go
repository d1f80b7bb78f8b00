package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// call runs the plugin without a cluster.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, complaints strings.Builder
	err := run(t.Context(), args, func(string) string { return "" }, &out, &complaints)
	return out.String(), err
}

// Every reason that a condition can have is explained.
func TestEveryReasonIsExplained(t *testing.T) {
	files, err := filepath.Glob("../api/*/*.go")
	check.NoError(check.Now(t), err, "")
	known := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		check.NoError(check.Now(t), err, "")
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok { // another package's
				return true
			}
			reason, err := strconv.Unquote(literal.Value)
			check.NoError(t, err, "")
			a := advices[reason]
			check.True(t, "the reason is explained", a.meaning != "" && a.remedy != "", "%s of %s: add it to advices", reason, file)
			known++
			return true
		})
	}
	check.True(t, "there are reasons", known > 20, "%d", known)
}

// What needs no cluster works without one, and what needs one says that there is none.
func TestWithoutACluster(t *testing.T) {
	for _, c := range []struct{ args, says, fails string }{
		{"help", "deliveries  List the latest deliveries", ""},
		{"replay --help", "--from string", ""},
		{"explain SwitchedOff", "Repair the receiver", ""},
		{"explain SwitchedOff -o yaml", "reason: SwitchedOff", ""},
		{"explain Tired", "", `"Tired" is no reason of a condition`},
		{"explain student/asha@example.org", "", "REGISTRAR_API_KEY"},
		{"status", "", "no configuration has been provided"},
		{"explain pod/results", "", "write KIND/NAME with a kind of Organization, WebhookEndpoint"},
		{"rotate results", "", "webhookendpoint/my-name"},
		{"rotate", "", "name one webhookendpoint/NAME or apikey/NAME"},
		{"migrate whe/results", "", "migrate takes no arguments"},
		{"migrate --chunk-size 0", "", "--chunk-size: 0 is too few"},
		{"dance", "", `there is no command "dance"`},
		{"status -o table", "", "use json or yaml"},
		{"status --loud", "", "kubectl registrar status --help lists the flags"},
		{"__complete", "rotate\tReplace a signing secret", ""},
		{"__complete replay --fr", "--from\ttime from which on", ""},
		{"__complete rotate ", ":4\n", ""},
		{"__complete mig", "migrate\tStore all resources", ""},
		{"__complete migrate --ch", "--chunk-size\thow many", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			out, err := call(t, strings.Split(c.args, " ")...)
			if c.fails == "" {
				check.NoError(t, err, "")
				check.Contains(t, "what it says", out, c.says, "")
				return
			}
			if check.True(t, "it fails", err != nil, "%s", out) {
				check.Contains(t, "the error", err.Error(), c.fails, "")
			}
		})
	}
}

func TestInstants(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for said, want := range map[string]string{
		"2h": "2026-11-24T10:00:00Z", "2026-11-23T00:00:00Z": "2026-11-23T00:00:00Z", "2026-11-23T05:30:00+05:30": "2026-11-23T00:00:00Z",
		"-2h": "", "yesterday": "", "2026-11-23": "",
	} {
		got, err := instant(said, now)
		check.Equal(t, "it is no time", err != nil, want == "", "%s: %v", said, err)
		if err == nil {
			check.Equal(t, "the time", got.UTC().Format(time.RFC3339), want, "%s", said)
		}
	}
}
