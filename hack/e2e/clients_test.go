package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The examples of the TypeScript client, compiled, do what they say.
func TestTheTypeScriptExamplesAreTrue(t *testing.T) {
	t.Parallel()
	modules := nodeTools(t)
	node, err := exec.LookPath("node")
	must(t, err)
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("../../api-server/client/typescript")))
	must(t, os.RemoveAll(filepath.Join(dir, "node_modules"))) // of who built it there
	must(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	sample := readGuide(t, "../../docs/quickstart.md").programs["typescript"]
	sample = strings.Replace(sample, "@registrar-dev/client", "../src/index.js", 1)
	must(t, os.WriteFile(filepath.Join(dir, "examples", "quickstart.ts"), []byte(sample), 0o600))
	printedBy(t, command(t, filepath.Join(modules, ".bin", "tsc"), "-p", dir))
	examples := filepath.Join(dir, "dist", "examples")
	h := newHouse(t)
	h.runExamples([]string{node, filepath.Join(examples, "onboard.js")}, []string{node, filepath.Join(examples, "receive.js")})
	quickstart := command(t, node, filepath.Join(examples, "quickstart.js"))
	quickstart.Env = append(os.Environ(), "BASE_URL="+h.settings.PublicURL()+"/api/v1/", "API_KEY="+h.key)
	check.Equal(t, "what the program of the quick start prints", printedBy(t, quickstart), "success\n", "")
}

// So do those of the Go client.
func TestTheGoExamplesAreTrue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := command(t, "go", "build", "-o", dir, "./api-server/client/examples/...")
	build.Dir = "../.."
	printedBy(t, build)
	newHouse(t).runExamples([]string{filepath.Join(dir, "onboard")}, []string{filepath.Join(dir, "receive")})
}

// printedBy runs a command and returns what it prints.
func printedBy(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// runExamples runs a client's programs: one onboards a student, the other one is told of it.
func (h *house) runExamples(onboard, receive []string) {
	t := h.t
	at := fmt.Sprintf("127.0.0.1:%d", port(t))
	_, number, _ := strings.Cut(at, ":")
	var made struct {
		Secret string `json:"signing_secret"`
	}
	h.platform(http.MethodPost, "organizations/demo/webhook-endpoints", fmt.Sprintf(`{"url": "http://%s/registrar"}`, at), &made)
	h.secrets = append(h.secrets, made.Secret)
	log := filepath.Join(t.TempDir(), "receive.log")
	receiver := stack.NewProgram(stack.Command{Name: "receive", Path: receive[0], Args: receive[1:], LogFile: log,
		Env: append(os.Environ(), "SIGNING_SECRET="+made.Secret, "PORT="+number)})
	must(t, receiver.Start())
	t.Cleanup(func() { _ = receiver.Stop() })
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	must(t, receiver.Await(ctx, func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
		if err == nil {
			err = c.Close()
		}
		return err
	}))

	program := exec.CommandContext(ctx, onboard[0], onboard[1:]...)
	program.Env = append(os.Environ(), "BASE_URL="+h.settings.PublicURL()+"/api/v1/", "API_KEY="+h.key)
	check.Equal(t, "what the program onboard prints", printedBy(t, program),
		"success created\nKofi 1\nkofi@demo-school.org\nenrollment.created IELTS Academic\n404 student_not_found\n", "")
	const line = "enrollment.created kofi@demo-school.org IELTS Academic\n"
	err := receiver.Await(ctx, func(context.Context) error {
		text, err := os.ReadFile(log)
		if err == nil && !strings.Contains(string(text), line) {
			err = fmt.Errorf("the program receive prints %q", text)
		}
		return err
	})
	check.NoError(t, err, "the program receive has not printed %q: %v", line, err)
}
