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
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// The examples of the TypeScript client, compiled, do what they say.
func TestTheTypeScriptExamplesAreTrue(t *testing.T) {
	t.Parallel()
	modules, err := stack.EnsureLocked(t.Context(), os.Stderr, "../openapi/npm")
	if err != nil {
		nottested.Skip(t, "TypeScript cannot be had from npm: %v", err)
	}
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS("../../api-server/client/typescript")))
	must(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	run := func(env []string, program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", program, args, err, out)
		}
		return string(out)
	}
	run(nil, filepath.Join(modules, ".bin", "tsc"))
	h := newHouse(t)

	node, err := exec.LookPath("node")
	must(t, err)
	at := fmt.Sprintf("127.0.0.1:%d", port(t))
	_, number, _ := strings.Cut(at, ":")
	var made struct {
		Secret string `json:"signing_secret"`
	}
	h.platform(http.MethodPost, "organizations/demo/webhook-endpoints", fmt.Sprintf(`{"url": "http://%s/registrar"}`, at), &made)
	h.secrets = append(h.secrets, made.Secret)
	log := filepath.Join(t.TempDir(), "receive.log")
	receiver := stack.NewProgram(stack.Command{Name: "receive.js", Path: node, Args: []string{"dist/examples/receive.js"}, Dir: dir, LogFile: log,
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

	got := run([]string{"BASE_URL=" + h.settings.PublicURL() + "/api/v1/", "API_KEY=" + h.key}, node, "dist/examples/onboard.js")
	check.Equal(t, "what onboard.ts prints", got, "success created\nAsha 1\nasha@north-institute.org\n404 student_not_found\n", "")
	const line = "enrollment.created asha@north-institute.org IELTS Academic\n"
	err = receiver.Await(ctx, func(context.Context) error {
		text, err := os.ReadFile(log)
		if err == nil && !strings.Contains(string(text), line) {
			err = fmt.Errorf("receive.ts prints %q", text)
		}
		return err
	})
	check.NoError(t, err, "receive.ts has not printed %q: %v", line, err)
}
