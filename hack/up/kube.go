package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/registrar-dev/registrar/hack/stack"
)

const (
	operatorNamespace = "registrar-system"
	operatorAccount   = "system:serviceaccount:" + operatorNamespace + ":registrar-operator"
	samplesPath       = "/results" // of the URL in config/samples, below the receiver's
)

// kube is a Kubernetes without nodes, and the operator, which works for the Registrar that runs
// beside it.
type kube struct {
	*supervisor

	state     *state
	registrar map[string]string // .registrar/env
	bin       string            // Registrar's programs
	programs  string            // Kubernetes' programs
	cluster   *stack.Cluster
}

func (v *kube) startAll(ctx, keep context.Context) error {
	if err := v.prepare(ctx); err != nil {
		return err
	}
	err := v.runSteps(ctx, keep,
		step{"Kubernetes built", v.build},
		step{"Control plane", v.startCluster},
		step{"Resources", v.install},
		step{"Demo namespace", v.label},
		step{"operator", v.startOperator},
	)
	if err != nil {
		return err
	}
	err = errors.Join(v.writeSamples(), writeFile(v.own("summary"), []byte(v.summary())))
	v.out.show("\n" + v.summary())
	return err
}

func (v *kube) prepare(ctx context.Context) (err error) {
	if v.registrar, err = readEnvironment(v.path("env")); err != nil {
		return fmt.Errorf("no Registrar runs here; start one with `make up DETACH=1` (%w)", err)
	}
	if v.state, err = v.loadState(); err != nil {
		return err
	}
	if err := v.state.choosePorts(ctx, kubePortNames); err != nil {
		return err
	}
	return errors.Join(v.saveState(v.state), v.record())
}

func (v *kube) build(ctx, _ context.Context) (_ string, err error) {
	if v.programs, err = stack.EnsureKube(ctx, v.out); err != nil {
		return "", err
	}
	v.bin, err = stack.Build(ctx, v.root)
	link := filepath.Join(v.root, "bin", "kubectl")
	_ = os.Remove(link) // of another version, if there is one
	return v.programs, errors.Join(err, os.Symlink(filepath.Join(v.programs, "kubectl"), link))
}

func (v *kube) startCluster(ctx, keep context.Context) (_ string, err error) {
	ports := v.state.Ports
	v.cluster, err = stack.StartCluster(ctx, stack.ClusterOptions{Bin: v.programs, Dir: v.path("kube"), LogDir: v.path("logs"),
		APIPort: ports[portKubeAPI], Etcd: [2]int{ports[portEtcd], ports[portEtcdPeers]}})
	if err != nil {
		return "", err
	}
	for _, p := range v.cluster.Programs() {
		start := func(context.Context) error { return p.Start() }
		if p == v.cluster.APIServer {
			start = v.cluster.StartAPIServer
		}
		v.keep(keep, p, start)
	}
	text, err := os.ReadFile(v.cluster.Admin())
	return v.cluster.URL(), errors.Join(err, writeFile(v.path("kubeconfig"), text))
}

// install applies what an administrator would, but for the Deployment: the operator runs as a
// process of this machine, with the rights that its pod would have.
func (v *kube) install(ctx, _ context.Context) (string, error) {
	for _, args := range [][]string{
		{"apply", "-k", filepath.Join(v.root, "config", "crd")},
		{"apply", "-f", filepath.Join(v.root, "config", "manager", "namespace.yaml")},
		{"apply", "-k", filepath.Join(v.root, "config", "rbac")},
	} {
		if _, err := v.cluster.Kubectl(ctx, args...); err != nil {
			return "", err
		}
	}
	return "", v.cluster.AwaitDefinitions(ctx)
}

func (v *kube) label(ctx, _ context.Context) (string, error) {
	organization := v.registrar["ORGANIZATION"]
	for _, args := range [][]string{
		{"create", "namespace", demoSlug},
		{"label", "namespace", demoSlug, "registrar.dev/organization=" + organization},
		{"create", "rolebinding", "registrar-operator", "--namespace=" + demoSlug, "--clusterrole=registrar-operator-namespaced", "--serviceaccount=" + operatorNamespace + ":registrar-operator"},
	} {
		if _, err := v.cluster.Kubectl(ctx, args...); err != nil {
			return "", err
		}
	}
	return "namespace " + demoSlug + " may register URLs of the organization " + organization, nil
}

func (v *kube) startOperator(ctx, keep context.Context) (string, error) {
	kubeconfig, err := v.cluster.User(operatorAccount, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		return "", err
	}
	keyset, err := v.keyset()
	if err != nil {
		return "", err
	}
	private, metrics := v.state.Ports[portOperatorPrivate], v.state.Ports[portOperatorMetrics]
	p := stack.NewProgram(stack.Command{Name: "operator", Path: filepath.Join(v.bin, "operator"), LogFile: v.path("logs", "operator.log"),
		Env: append(os.Environ(),
			"KUBECONFIG="+kubeconfig, "LEASE_NAMESPACE="+operatorNamespace, "CLUSTER_NAME=local", "WATCH_NAMESPACES="+demoSlug,
			"DATABASE_URL="+stack.RoleURL(v.registrar["DATABASE_URL"], "operator"), "REDIS_URL="+v.registrar["REDIS_URL"], "SECRET_KEYSET_FILE="+keyset, "SCHEMA_WAIT=60s",
			"WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8,::1/128",
			fmt.Sprintf("PRIVATE_ADDR=127.0.0.1:%d", private), fmt.Sprintf("METRICS_ADDR=127.0.0.1:%d", metrics),
		)})
	start := func(ctx context.Context) error { return stack.StartReady(ctx, p, private) }
	if err := start(ctx); err != nil {
		return "", err
	}
	v.keep(keep, p, start)
	return "", nil
}

// writeSamples makes config/samples fit the receiver that runs, wherever it listens.
func (v *kube) writeSamples() error {
	if err := os.MkdirAll(v.path("samples"), 0o755); err != nil {
		return err
	}
	return writeFile(v.path("samples", "kustomization.yaml"), []byte(fmt.Sprintf(`resources:
  - ../../config/samples
patches:
  - target: {kind: WebhookEndpoint, name: results}
    patch: '[{"op": "replace", "path": "/spec/url", "value": "%s%s"}]'
`, v.registrar["RECEIVER_URL"], samplesPath)))
}

func (v *kube) summary() string {
	return fmt.Sprintf(`Kubernetes runs on this machine, with the operator of the Registrar here.

  Kubernetes    %s   export KUBECONFIG=%s
  kubectl       bin/kubectl
  Logs          .registrar/logs/operator.log

Try it: a URL of the demonstration organization, which gets a ping and then its events.

  export KUBECONFIG=.registrar/kubeconfig
  bin/kubectl apply -k .registrar/samples
  bin/kubectl -n %s wait --for=condition=Ready whe/results
  bin/kubectl -n %s describe whe/results

`+"`make kube-down`"+` stops it.
`, v.cluster.URL(), v.path("kubeconfig"), demoSlug, demoSlug)
}

// readEnvironment reads what environment has written.
func readEnvironment(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			variables[name] = strings.ReplaceAll(strings.Trim(value, "'"), `'\''`, "'")
		}
	}
	return variables, nil
}
