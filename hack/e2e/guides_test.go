package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

var update = flag.Bool("update", false, "write the answers that are shown in docs again")

// elsewhere says which test runs the pages whose blocks are not commands for a Registrar that
// runs.
var elsewhere = map[string]string{
	"webhooks.md":   "TestTheDocumentedProgramsVerifyARealDelivery", // programs that check a signature
	"operator.md":   "TestTheOperatorPageIsTrue",                    // on a Kubernetes
	"operations.md": "TestTheChartOnANode",                          // on a Kubernetes with the chart
	"restore.md":    "TestARestoreToAPointInTime",                   // on a PostgreSQL of its own
	"roster.md":     "TestThePageOnRostersIsTrue",
	"oneroster.md":  "TestThePageOnOneRosterIsTrue",
	"events.md":     "TestTheDocumentsAreValid", // which holds the samples against the schemas
	"typescript.md": "TestTheWayFromANewCloneIsTrue",
	"releases.md":   "TestThePageOnReleasesIsTrue", // on a release
}

// A block of a page: its language, its text, and where it is. Blocks in lists are indented.
var blocks = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

// languages are those that blocks of guides may have. sh is run, json is what the sh before it
// prints, and text is what a benchmark printed.
var languages = []string{"sh", "json", "", "csv", "yaml", "text", "typescript"}

// runtimes say how the programs of guides are run, by the language of their block. Those in TypeScript are run by
// TestTheTypeScriptExamplesAreTrue.
var runtimes = map[string]struct {
	command []string
	file    string
}{
	"go":     {[]string{"go", "run"}, "main.go"},
	"python": {[]string{"python3"}, "main.py"},
	"php":    {[]string{"php"}, "main.php"},
	"java":   {[]string{"java"}, "Main.java"},
}

// The commands of every page in docs are run, in order and in one shell, on a Registrar of
// the page's own, and the JSON that a page shows is what they print: the same fields, and the
// same values but for times, ids and secrets. "…" stands for the rest of a text.
func TestTheGuidesAreTrue(t *testing.T) {
	t.Parallel()
	root, err := stack.Root()
	must(t, err)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	must(t, err)
	names := map[string]bool{}
	for _, page := range pages {
		name := filepath.Base(page)
		names[name] = true
		if elsewhere[name] == "" {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				checkGuide(t, page)
			})
		}
	}
	for name := range elsewhere {
		if !names[name] {
			t.Errorf("docs/%s is gone", name)
		}
	}
}

func checkGuide(t *testing.T, page string) {
	t.Helper()
	g := readGuide(t, page)
	if t.Failed() || len(g.scripts) == 0 {
		return
	}
	h, dir := newHouseOn(t, pgtest.URL(t), "SANDBOX_DATABASE_URL="+pgtest.Server(t)), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, ".registrar"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, ".registrar", "env"), []byte(h.environment()), 0o600))
	g.compare(t, runInOrder(t, dir, g.scripts))
	g.runPrograms(t, "BASE_URL="+h.settings.PublicURL()+"/api/v1/", "API_KEY="+h.key)
}

// runPrograms runs what the page has besides commands. Programs do what the commands before did, which changes nothing.
func (g guide) runPrograms(t *testing.T, env ...string) {
	t.Helper()
	root, err := stack.Root()
	must(t, err)
	for language, program := range g.programs {
		how, known := runtimes[language]
		if !known {
			continue
		}
		t.Run(language, func(t *testing.T) {
			if _, err := exec.LookPath(how.command[0]); err != nil {
				nottested.Skip(t, "%s is not on this machine", how.command[0])
			}
			file := filepath.Join(t.TempDir(), how.file)
			must(t, os.WriteFile(file, []byte(program), 0o600))
			cmd := command(t, how.command[0], append(how.command[1:], file)...)
			cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
			out, err := cmd.CombinedOutput()
			check.NoError(t, err, "%v\n%s", err, out)
			check.Contains(t, "what it prints", string(out), "already_provisioned", "")
		})
	}
}

// guide is a page of docs with commands.
type guide struct {
	file, text string
	scripts    []string
	shown      map[int][2]int    // by script: where the page shows what it prints
	programs   map[string]string // by language
}

func readGuide(t *testing.T, page string) guide {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	g := guide{file: page, text: string(text), shown: map[int][2]int{}, programs: map[string]string{}}
	for _, m := range blocks.FindAllStringSubmatchIndex(g.text, -1) {
		language, body := g.text[m[4]:m[5]], g.text[m[6]:m[7]]
		_, runs := runtimes[language]
		switch {
		case !runs && !slices.Contains(languages, language):
			t.Errorf("a block in %q: write commands as sh and answers as json", language)
		case language == "" && strings.Contains(body, "curl "):
			t.Errorf("a command that no test runs:\n%s", body)
		case language == "sh":
			g.scripts = append(g.scripts, body)
		case runs || language == "typescript":
			g.programs[language] = body
		case language == "json":
			_, twice := g.shown[len(g.scripts)-1]
			check.True(check.Now(t), "a command is before its answer", len(g.scripts) != 0, "%s", body)
			check.False(check.Now(t), "the command has an answer already", twice, "%s", body)
			g.shown[len(g.scripts)-1] = [2]int{m[6], m[7]}
		}
	}
	return g
}

// compare holds what the scripts have printed against what the page shows, or, with -update, writes the page again.
func (g guide) compare(t *testing.T, printed []string) {
	t.Helper()
	text := g.text
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(g.shown))) {
		at := g.shown[i]
		if *update {
			text = text[:at[0]] + laidOut(t, readable(printed[i])) + text[at[1]:]
		} else if diff := unlike(parse(t, text[at[0]:at[1]]), parse(t, readable(printed[i])), "answer"); diff != "" {
			t.Errorf("%s: %s\nfor\n%s\nit prints\n%s", filepath.Base(g.file), diff, g.scripts[i], printed[i])
		}
	}
	if *update && text != g.text {
		must(t, os.WriteFile(g.file, []byte(text), 0o600))
	}
}

// runInOrder runs the scripts in one shell, which begins in the folder, and returns what each prints.
func runInOrder(t *testing.T, dir string, scripts []string) []string {
	t.Helper()
	outputs := t.TempDir()
	output := func(i int) string { return filepath.Join(outputs, strconv.Itoa(i)) }
	var all strings.Builder
	all.WriteString("trap 'kill $! 2>/dev/null || :' EXIT\n") // what a script has left in the background
	for i, script := range scripts {
		fmt.Fprintf(&all, "exec >%s\n%s\n", output(i), script)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*longLimit)
	defer cancel()
	run := exec.CommandContext(ctx, "sh", "-e", "-c", all.String())
	run.Dir = dir
	out, err := run.CombinedOutput()
	printed := make([]string, len(scripts))
	for i := range scripts {
		text, _ := os.ReadFile(output(i))
		printed[i] = string(text)
	}
	if err != nil {
		t.Fatalf("a command fails: %v\n%s\n%s", err, out, strings.Join(printed, "\n"))
	}
	return printed
}

func (h *house) environment() string {
	h.t.Helper()
	var key struct{ Key string }
	h.platform(http.MethodPost, "organizations/demo/api-keys", `{"name": "Reports", "access": "read_only"}`, &key)
	var env strings.Builder
	for name, value := range map[string]string{
		"BASE_URL": h.settings.PublicURL() + "/api/v1/", "PLATFORM_URL": fmt.Sprintf("http://127.0.0.1:%d/platform/v1/", h.settings.Ports.Platform),
		"PLATFORM_KEY": h.settings.PlatformKey, "API_KEY": h.key, "API_KEY_READ_ONLY": key.Key, "ORGANIZATION": "demo",
		"CONSOLE_URL": h.settings.PublicURL() + "/console/", "RECEIVER_URL": h.receiver.URL("/hook"),
		"RECEIVER_LOG": filepath.Join(h.dir, receiverLog), "MAIL_DIR": filepath.Join(h.dir, mailDir),
	} {
		fmt.Fprintf(&env, "%s='%s'\n", name, value)
	}
	return env.String()
}

// local is what a page calls https://registrar.example and https://hooks.example.com.
var local = regexp.MustCompile(`http(s?)://127\.0\.0\.1:\d+`)

func readable(answer string) string {
	return local.ReplaceAllStringFunc(answer, func(base string) string {
		if strings.HasPrefix(base, "https:") {
			return "https://hooks.example.com"
		}
		return "https://registrar.example"
	})
}

func parse(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var node yaml.Node // of JSON, which is YAML; it keeps the order of fields
	must(t, yaml.Unmarshal([]byte(text), &node))
	check.Equal(check.Now(t), "number of JSON values", len(node.Content), 1, "%s", text)
	check.True(check.Now(t), "the JSON value is an object or a list", node.Content[0].Kind != yaml.ScalarNode, "%s", text)
	return node.Content[0]
}

// unlike says where an answer is not as a page shows it; "" when it is.
func unlike(want, got *yaml.Node, path string) string {
	if want.Kind != got.Kind || len(want.Content) != len(got.Content) {
		return fmt.Sprintf("%s: the page shows %s, the answer is %s", path, inLine(want), inLine(got))
	}
	if want.Kind == yaml.ScalarNode {
		if want.Tag == got.Tag && (want.Value == got.Value || varies(path, want, got)) {
			return ""
		}
		return fmt.Sprintf("%s: the page shows %s, the answer has %s", path, want.Value, got.Value)
	}
	for i := range want.Content {
		at, other := fmt.Sprintf("%s[%d]", path, i), got.Content[i]
		if want.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue // the name, which the value's path has
			}
			name := want.Content[i-1].Value
			at = path + "." + name
			if other = field(got, name); other == nil {
				return at + ": the answer has no such field"
			}
		}
		if diff := unlike(want.Content[i], other, at); diff != "" {
			return diff
		}
	}
	return ""
}

func field(object *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(object.Content); i += 2 {
		if object.Content[i].Value == name {
			return object.Content[i+1]
		}
	}
	return nil
}

// id ends the path of what is another number on another Registrar.
var id = regexp.MustCompile(`(^|[._])(id|sequence)$`)

func varies(path string, want, got *yaml.Node) bool {
	if want.Tag == "!!int" {
		return id.MatchString(path)
	}
	begin, shortened := strings.CutSuffix(want.Value, "…")
	return shortened && strings.HasPrefix(got.Value, begin) || constant(want.Value) == constant(got.Value)
}

// changing is what differs from run to run within a text.
var changing = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)|\d{4}-\d\d-\d\d|[A-Za-z0-9_-]{24,}|\b\d+\b`)

func constant(text string) string {
	return changing.ReplaceAllStringFunc(text, func(part string) string {
		return fmt.Sprintf("<%d>", min(strings.Count(part, "-"), 3))
	})
}

// drawn is what a page does not show the random part of: ids of events, keys, cursors, links.
var drawn = regexp.MustCompile(`^(https://\S*/|[a-z]+_|)([A-Za-z0-9_-]{24,}/?|[A-Za-z0-9]{8})$`)

// cut shortens what is drawn, which has digits or capitals in it.
func cut(value string) string {
	m := drawn.FindStringSubmatch(value)
	if m == nil || m[1] == "" && len(m[2]) == 8 || !strings.ContainsAny(m[2], "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return value
	}
	return m[1] + "…"
}

// laidOut is JSON with what fits on a line on one, and secrets cut.
func laidOut(t *testing.T, answer string) string {
	t.Helper()
	return layOut(parse(t, answer), "") + "\n"
}

func layOut(node *yaml.Node, indent string) string {
	const width = 120
	if line := inLine(node); len(indent)+len(line) <= width || node.Kind == yaml.ScalarNode {
		return line
	}
	var out strings.Builder
	open, shut := "[", "]"
	if node.Kind == yaml.MappingNode {
		open, shut = "{", "}"
	}
	out.WriteString(open)
	deeper, comma := indent+"  ", ""
	for i := 0; i < len(node.Content); i++ {
		out.WriteString(comma + "\n" + deeper)
		if node.Kind == yaml.MappingNode {
			out.WriteString(strconv.Quote(node.Content[i].Value) + ": ")
			i++
		}
		out.WriteString(layOut(node.Content[i], deeper))
		comma = ","
	}
	out.WriteString("\n" + indent + shut)
	return out.String()
}

func inLine(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode {
		if node.Tag != "!!str" {
			return node.Value
		}
		return strconv.Quote(cut(node.Value))
	}
	var parts []string
	for i := 0; i < len(node.Content); i++ {
		if node.Kind == yaml.MappingNode {
			parts = append(parts, strconv.Quote(node.Content[i].Value)+": "+inLine(node.Content[i+1]))
			i++
		} else {
			parts = append(parts, inLine(node.Content[i]))
		}
	}
	if node.Kind == yaml.MappingNode {
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
