// Package openapi runs what others wrote against the APIs' documents: linters, generators and a mock.
package openapi

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/client"
	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// limit is how long a tool may take. It is no measure of speed.
const limit = 5 * time.Minute

// tools is a folder with node_modules, configurations and both documents, in which tools run.
type tools struct {
	t   *testing.T
	dir string
}

func newTools(t *testing.T) tools {
	t.Helper()
	modules, err := stack.EnsureLocked(t.Context(), os.Stderr, "npm")
	if err != nil {
		nottested.Skip(t, "the tools cannot be had from npm: %v", err)
	}
	tl := tools{t, t.TempDir()}
	must(t, os.Symlink(modules, filepath.Join(tl.dir, "node_modules")))
	for _, name := range []string{"redocly.yaml", "spectral.yaml"} {
		text, err := os.ReadFile(filepath.Join("npm", name))
		must(t, err)
		tl.write(name, string(text))
	}
	for _, name := range []string{"partner", "platform"} {
		tl.write(name+".yaml", tl.runIn("../..", "go", "run", "./api-server/internal/openapi/document", name))
	}
	return tl
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (tl tools) write(name, text string) {
	tl.t.Helper()
	must(tl.t, os.WriteFile(filepath.Join(tl.dir, name), []byte(text), 0o600))
}

// run runs a program of node_modules and returns what it prints.
func (tl tools) run(program string, args ...string) string {
	tl.t.Helper()
	return tl.runIn(tl.dir, filepath.Join(tl.dir, "node_modules", ".bin", program), args...)
}

func (tl tools) runIn(dir, program string, args ...string) string {
	tl.t.Helper()
	return output(tl.t, dir, program, args...)
}

// output runs a program in a folder and returns what it prints.
func output(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

func TestLintersFindNoErrors(t *testing.T) {
	t.Parallel()
	tl := newTools(t)
	for _, document := range []string{"partner.yaml", "platform.yaml"} {
		tl.run("redocly", "lint", "--config=redocly.yaml", "--max-problems=30", document)
		tl.run("spectral", "lint", "--ruleset=spectral.yaml", "--fail-severity=error", "--quiet", document)
	}
}

func TestTypesAreGeneratedForTypeScript(t *testing.T) {
	t.Parallel()
	tl := newTools(t)
	tl.run("openapi-typescript", "partner.yaml", "--output=partner.ts")
	tl.write("use.ts", `
import type { components, operations } from "./partner";
const request: components["schemas"]["ProvisionRequest"] = { email: "asha@north-institute.org", first_name: "Asha", tenure_months: 3, courses: ["ielts"] };
type Students = operations["students"]["responses"][200]["content"]["application/json"];
export function about(event: components["schemas"]["Event"]): string {
  // So does the type of an event, of what is in it.
  return event.type === "result.final" ? event.data.score_label : event.type === "student.left" ? event.data.email : "";
}
export function who(answer: Students): string[] {
  // The field object tells the two answers apart.
  return answer.object === "student" ? [answer.student.email] : answer.students.map((s) => s.email);
}
export default request;
`)
	tl.run("tsc", "--noEmit", "--strict", "--module", "nodenext", "--skipLibCheck", "use.ts")
}

// The Go client is what oapi-codegen makes of the document as it is.
func TestTheGoClientIsGeneratedFromTheDocument(t *testing.T) {
	t.Parallel()
	tl := newTools(t)
	config, err := os.ReadFile("../../api-server/client/oapi-codegen.yaml")
	must(t, err)
	tl.write("oapi-codegen.yaml", strings.Replace(string(config), "output: client.gen.go\n", "", 1))
	got := tl.runIn(".", "go", "tool", "-modfile=../tools/go.mod", "oapi-codegen", "-config="+filepath.Join(tl.dir, "oapi-codegen.yaml"), filepath.Join(tl.dir, "partner.yaml"))
	want, err := os.ReadFile("../../api-server/client/client.gen.go")
	must(t, err)
	check.True(t, "the client is up to date", got == string(want), "run `make generate`")
}

// The TypeScript client is what hey-api makes of the document as it is, and TypeScript's compiler takes it.
func TestTheTypeScriptClientIsGeneratedFromTheDocument(t *testing.T) {
	t.Parallel()
	tl := newTools(t)
	made := filepath.Join(tl.dir, "generated")
	output(t, ".", "go", "run", "./sdk", made)
	const kept = "../../api-server/client/typescript"
	must(t, filepath.WalkDir(made, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		got, err := os.ReadFile(file)
		must(t, err)
		want, err := os.ReadFile(filepath.Join(kept, "src/generated", strings.TrimPrefix(file, made)))
		check.True(t, "the file is up to date", err == nil && bytes.Equal(got, want), "%s: run `make generate`", file)
		return nil
	}))
	tl.client()
}

// client compiles the TypeScript client, with its examples, and returns the folder that has them.
func (tl tools) client() string {
	tl.t.Helper()
	dir := filepath.Join(tl.dir, "client")
	must(tl.t, os.CopyFS(dir, os.DirFS("../../api-server/client/typescript")))
	tl.run("tsc", "-p", dir)
	return filepath.Join(dir, "dist")
}

// A change is sent again with the same key until it is answered, and what is refused is thrown at once.
func TestTheTypeScriptClientTriesAgain(t *testing.T) {
	t.Parallel()
	tl := newTools(t)
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key")+" "+r.Header.Get("X-Api-Key")) // one at a time
		status, body := http.StatusServiceUnavailable, `{"status": "error", "error": "busy", "code": "busy"}`
		switch len(keys) {
		case 2: // the first one is still worked on
			status, body = http.StatusConflict, `{"status": "error", "error": "busy", "code": "idempotency_key_in_use"}`
		case 3:
			status, body = http.StatusOK, `{"status": "already_provisioned"}`
		case 4:
			status, body = http.StatusForbidden, `{"status": "error", "error": "read only", "code": "read_only_key"}`
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	dist := tl.client()
	must(t, os.WriteFile(filepath.Join(dist, "try.js"), []byte(`
import { provisionStudent, registrar } from "./src/index.js";
const client = registrar({ baseUrl: process.argv[2] + "/api/v1/", key: "reg_key" });
const body = { email: "asha@north-institute.org", first_name: "Asha" };
console.log((await provisionStudent({ client, body })).data.status);
await provisionStudent({ client, body }).catch((fault) => console.log(fault.status, fault.code, fault.message));
`), 0o600))
	check.Equal(t, "what the program prints", output(t, dist, "node", "try.js", s.URL), "already_provisioned\n403 read_only_key read only\n", "")
	check.True(check.Now(t), "there were four requests", len(keys) == 4, "%q", keys)
	check.True(t, "a request keeps its key", keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3], "%q", keys)
	check.Contains(t, "a request", keys[0], " reg_key", "%q", keys)
}

func TestAMockAnswersTheClient(t *testing.T) {
	t.Parallel()
	tl := newTools(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	prism, address, err := stack.StartPrism(ctx, filepath.Join(tl.dir, "node_modules"), filepath.Join(tl.dir, "prism.log"), "mock", filepath.Join(tl.dir, "partner.yaml"))
	must(t, err)
	t.Cleanup(func() { _ = prism.Stop() })
	c, err := client.New(address, "reg_key")
	must(t, err)
	made, err := c.ProvisionStudentWithResponse(ctx, nil, client.ProvisionRequest{Email: "asha@north-institute.org", FirstName: "Asha"})
	must(t, err)
	check.Equal(t, "user_id", made.Student().UserID, 318, "%+v", made)
	pages := 0
	for page, err := range c.StudentPages(ctx, client.StudentsParams{}) {
		must(t, err)
		check.Equal(t, "the student", page.Students[0].UserID, 318, "%+v", page)
		if pages++; pages > 1 {
			t.Fatal("the mock pages for ever")
		}
	}
	for page, err := range c.ResultPages(ctx, client.ListResultsParams{}) {
		must(t, err)
		check.Equal(t, "the student", page.Results[0].Student.UserID, 318, "%+v", page)
		if pages++; pages > 2 {
			t.Fatal("the mock pages for ever")
		}
	}
	hook, err := c.CreateWebhookEndpointWithResponse(ctx, nil, client.NewWebhookEndpoint{URL: "https://hooks.north-institute.org/registrar"})
	must(t, err)
	for page, err := range c.WebhookDeliveryPages(ctx, hook.JSON201.ID, client.ListWebhookDeliveriesParams{}) {
		must(t, err)
		check.Equal(t, "attempts", len(page.Deliveries[0].Attempts), 1, "%+v", page)
		if pages++; pages > 3 {
			t.Fatal("the mock pages for ever")
		}
	}
}
