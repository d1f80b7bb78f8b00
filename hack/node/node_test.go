package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// inside tells the test's second life, in which it is the node's first process, where its files are.
const inside = "REGISTRAR_NODE_DIR"

// images are the programs, as the chart names them.
const registry = "ghcr.io/registrar-dev/"

var programs = []string{"api-server", "worker", "webhook-sender", "operator"}

// The chart's life on a node: an evaluation is installed, upgraded and rolled back under load,
// broken, backed up and restored, and removed; then one with databases of its own.
func TestTheChartOnANode(t *testing.T) {
	if dir := os.Getenv(inside); dir != "" {
		live(t, dir)
		return
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		nottested.Skip(t, "KUBEBUILDER_ASSETS names no Kubernetes; make test prepares one")
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubelet")); err != nil {
		nottested.Skip(t, "KUBEBUILDER_ASSETS has no kubelet")
	}
	tools, err := stack.EnsureNode(t.Context(), os.Stderr)
	if err != nil {
		nottested.Skip(t, "this machine cannot be a Kubernetes node: %v", err)
	}
	dir := t.TempDir()
	pack(t, tools, filepath.Join(dir, "images"))
	cgroup := filepath.Base(filepath.Dir(dir))
	release, err := stack.MakeCgroup(cgroup)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	log := filepath.Join(dir, "test.log")
	p := stack.NewProgram(stack.Command{Name: "the node", Path: self, Isolated: true, LogFile: log, StopWithin: time.Second,
		Args: []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=17m"},
		Env:  append(os.Environ(), inside+"="+dir, "CGROUP="+cgroup)})
	must(t, p.Start())
	select {
	case <-p.Exited():
	case <-t.Context().Done():
	}
	failed := p.Err()
	_ = p.Stop() // it has ended, or is interrupted
	text, err := os.ReadFile(log)
	must(t, err)
	t.Logf("on the node:\n%s", strings.ReplaceAll(string(text), "\n--- ", "\n    --- "))
	if failed != nil {
		t.Errorf("on the node: %v", failed)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pack makes the images: the programs as they are released, the databases as this machine has them.
func pack(t *testing.T, tools stack.Tools, dir string) {
	t.Helper()
	root, err := stack.Root()
	must(t, err)
	must(t, os.MkdirAll(dir, 0o755))
	build := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = filepath.Join(root, "hack"), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	arch := strings.TrimSpace(output(t, "go", "env", "GOARCH"))
	build("run", "./images", "-arch", arch, "-tag", "0.1.0", "-out", dir)
	receiver := filepath.Join(dir, "receiver")
	build("build", "-trimpath", "-ldflags=-s -w", "-o", receiver, "./node/receiver")
	for name, im := range map[string]stack.Image{
		"receiver.tar": {Ref: "registrar.local/receiver:1", Entrypoint: []string{"/receiver"}, User: "65532:65532", Files: map[string]string{"/receiver": receiver}},
		"postgres.tar": stack.PostgresImage("docker.io/library/postgres:17", tools),
		"valkey.tar":   stack.ValkeyImage("docker.io/valkey/valkey:8", tools),
	} {
		must(t, im.Pack(t.Context(), filepath.Join(dir, name)))
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	must(t, err)
	return string(out)
}

// live is the test's second life.
func live(t *testing.T, dir string) {
	must(t, stack.SettleIn(t.Context(), stack.NodeAddress, stack.NodeResolver))
	began := time.Now()
	node, err := stack.StartNode(t.Context(), stack.NodeOptions{Bin: os.Getenv("KUBEBUILDER_ASSETS"), Dir: filepath.Join(dir, "node"), Cgroup: os.Getenv("CGROUP"), Names: []string{"node1", "node2"}})
	if err != nil {
		t.Fatalf("%v\n%s", err, tails(dir))
	}
	archives, err := filepath.Glob(filepath.Join(dir, "images", "*.tar"))
	must(t, err)
	must(t, node.Import(t.Context(), archives...))
	for _, name := range programs {
		must(t, node.Tag(t.Context(), registry+name+":0.1.0", registry+name+":0.0.1"))
	}
	t.Logf("two nodes with %d images after %s", len(archives), time.Since(began).Round(time.Second))
	s := newSite(t, dir, node)
	for _, step := range []struct {
		name string
		do   func(*site)
	}{
		{"an evaluation is installed", (*site).install},
		{"a student is provisioned and their school told", (*site).provisionOne},
		{"an upgrade under load", (*site).upgrade},
		{"a rollback under load", (*site).rollBack},
		{"a pod of each program is killed", (*site).kill},
		{"the Redis pod is deleted", (*site).deleteRedis},
		{"the node is drained", (*site).drain},
		{"keys rotate", (*site).rotate},
		{"the queues are looked at", (*site).inspect},
		{"a backup is restored", (*site).restore},
		{"a second release beside it", (*site).beside},
		{"an uninstall leaves what the notes say", (*site).uninstall},
		{"an installation with databases of its own", (*site).production},
		{"the pages hold no other command", (*site).everyCommandRan},
	} {
		began := time.Now()
		ok := t.Run(step.name, func(t *testing.T) {
			s.t = t
			t.Cleanup(func() {
				if t.Failed() {
					s.explain()
				}
			})
			step.do(s)
		})
		t.Logf("%s: %s", step.name, time.Since(began).Round(time.Second))
		if !ok {
			return
		}
	}
}

// tails are the last lines of the node's programs.
func tails(dir string) string {
	logs, _ := filepath.Glob(filepath.Join(dir, "node", "log", "*.log")) // the pattern is well-formed
	var all strings.Builder
	for _, log := range logs {
		text, _ := os.ReadFile(log) // what there is
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&all, "== %s\n%s\n", filepath.Base(log), strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return all.String()
}

// explain shows the cluster as it is, for who reads a failure.
func (s *site) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, args := range [][]string{{"get", "pods,jobs,pvc,whe", "-o", "wide"}, {"describe", "whe"}, {"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "--selector=app.kubernetes.io/instance=registrar", "--all-containers", "--prefix", "--tail=8"}} {
		out, _ := s.node.Kubectl(ctx, args...) // what can be shown
		lines := strings.Split(out, "\n")
		s.t.Logf("kubectl %s\n%s", strings.Join(args, " "), strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}
