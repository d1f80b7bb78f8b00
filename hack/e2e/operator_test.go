package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The page's commands bring a ping, events, 50 failures, a switch-off with its reason and
// the turning on, on a real Kubernetes API server and the whole of Registrar.
func TestTheOperatorPageIsTrue(t *testing.T) {
	t.Parallel()
	assets, err := stack.EnsureKube(t.Context(), os.Stderr)
	must(t, err)
	dir := checkout(t)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	make := func(ctx context.Context, targets ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "make", targets...)
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	defer func() {
		for _, target := range []string{"kube-down", "down"} {
			if out, err := make(context.WithoutCancel(t.Context()), target); err != nil {
				t.Errorf("make %s: %v\n%s", target, err, out)
			}
		}
	}()
	run := exec.CommandContext(ctx, "sh", "-e", "-c", slowly(t, commands(t, filepath.Join(dir, "docs", "operator.md"))))
	run.Dir, run.Env = dir, append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("a command of the page fails: %v\n%s", err, out)
	}
	for _, said := range []string{"Events are posted to the URL.", "SwitchedOff: 50 failed attempts in a row", "Warning   SwitchedOff"} {
		if !strings.Contains(string(out), said) {
			t.Errorf("the page's commands do not show %q:\n%s", said, out)
		}
	}
	got := received(t, filepath.Join(dir, ".registrar", "receiver.jsonl"))
	// One for each resource that is made: the first, the one that is made again, and that by its other name.
	if got["/webhooks/results ping"] != 3 {
		t.Errorf("the receiver got %d pings, want 3: %v", got["/webhooks/results ping"], got)
	}
	if check.True(t, "student.joined was received", got["/webhooks/results/status/503 student.joined"] != 0, "the receiver got no real events: %v", got) {
		check.True(t, "enrollment.created was received", got["/webhooks/results/status/503 enrollment.created"] != 0, "the receiver got no real events: %v", got)
	}
}

// slowly has the page's commands wait where a reader is slower than what they wait for in vain otherwise: for the event that follows
// a status, and for the ping of a URL that is removed next.
func slowly(t *testing.T, script string) string {
	t.Helper()
	const events, removal = "bin/kubectl -n demo get events", "bin/kubectl -n demo delete whe/marks"
	for _, command := range []string{events, removal} {
		check.Equal(check.Now(t), "times that the page has "+command, strings.Count(script, command), 1, "")
	}
	return strings.NewReplacer(
		events, `for n in $(seq 600); do `+events+` | grep -q SwitchedOff && break; sleep 0.1; done
`+events,
		removal, `for n in $(seq 600); do
 [ "$(grep -c '"path":"/webhooks/results",.*"X-Service-Event":"ping"' .registrar/receiver.jsonl)" -ge 3 ] && break; sleep 0.1; done
`+removal).Replace(script)
}

// received counts what a receiver has logged, by path and event.
func received(t *testing.T, log string) map[string]int {
	t.Helper()
	f, err := os.Open(log)
	must(t, err)
	defer f.Close()
	got := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r stack.Received
		must(t, json.Unmarshal(lines.Bytes(), &r))
		got[r.Path+" "+r.Headers["X-Service-Event"]]++
	}
	must(t, lines.Err())
	return got
}
