package stack_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

func TestAClusterKeepsItsObjectsWhenTheAPIServerIsKilled(t *testing.T) {
	if assets, set := os.LookupEnv("KUBEBUILDER_ASSETS"); set && assets == "" {
		nottested.Skip(t, "KUBEBUILDER_ASSETS names no Kubernetes")
	}
	bin, err := stack.EnsureKube(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ports, err := stack.FreePorts(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	c, err := stack.StartCluster(t.Context(), stack.ClusterOptions{Bin: bin, Dir: filepath.Join(dir, "kube"), LogDir: dir,
		APIPort: ports[0], Etcd: [2]int{ports[1], ports[2]}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Kubectl(t.Context(), "create", "namespace", "kept"); err != nil {
		t.Fatal(err)
	}
	if err := c.APIServer.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := c.Kubectl(t.Context(), "get", "namespaces", "-o", "name"); check.NoError(t, err, "%v: %s", err, out) {
		check.Contains(t, "the output", out, "namespace/kept", "%v: %s", err, out)
	}
	who, err := c.User("nobody-in-particular")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Kubectl(t.Context(), "--kubeconfig", who, "get", "secrets", "-A"); check.True(t, "there is an error", err != nil, "a user without roles reads Secrets: %v %s", err, out) {
		check.Contains(t, "the output", out, "forbidden", "a user without roles reads Secrets: %v %s", err, out)
	}
}
