package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/hack/internal/program"
	"github.com/registrar-dev/registrar/hack/stack"
)

// inside tells this program's second life, in which it is a node's first process, where its files are.
const inside = "REGISTRAR_RELEASE_NODE_DIR"

// limit is how long anything that is waited for may take. It is no measure of speed.
const limit = 15 * time.Minute

// stores are the databases of an evaluation, which are not the release's: this machine's stand for them.
var stores = map[string]func(string, stack.Tools) stack.Image{
	"docker.io/library/postgres:17": stack.PostgresImage,
	"docker.io/valkey/valkey:8":     stack.ValkeyImage,
}

// installOnNode starts a Kubernetes in surroundings of its own, and installs there from the release.
func installOnNode(ctx context.Context, o options, t tools) (err error) {
	machine, err := stack.EnsureNode(ctx, os.Stderr)
	if err != nil {
		return fmt.Errorf("this machine cannot be a Kubernetes node: %w", err)
	}
	dir, err := os.MkdirTemp("", "registrar-node-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for ref, image := range stores {
		if err := image(ref, machine).Pack(ctx, filepath.Join(dir, strings.ReplaceAll(ref, "/", "-")+".tar")); err != nil {
			return err
		}
	}
	cgroup := filepath.Base(dir)
	release, err := stack.MakeCgroup(cgroup) //nolint:contextcheck // what it made is taken away also when ctx is over
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := stack.NewProgram(stack.Command{Name: "the node", Path: self, Isolated: true, Stdout: os.Stdout, Stderr: os.Stderr, StopWithin: time.Second,
		Args: []string{"-out=" + o.out, "-registry=" + o.registry, o.version},
		Env:  append(os.Environ(), inside+"="+dir, "CGROUP="+cgroup, "KUBEBUILDER_ASSETS="+t.kube)})
	if err := p.Start(); err != nil {
		return err
	}
	select {
	case <-p.Exited():
	case <-ctx.Done():
	}
	failed := p.Err()
	_ = p.Stop() // it has ended, or is interrupted
	return errors.Join(ctx.Err(), failed)
}

// site is a cluster in which the release is installed.
type site struct {
	options

	node *stack.Node
	dir  string // for what is written meanwhile
	refs map[string]string
}

// live is the program's second life.
func live(ctx context.Context, o options) error {
	dir := os.Getenv(inside)
	if err := stack.SettleIn(ctx, stack.NodeAddress, stack.NodeResolver); err != nil {
		return err
	}
	node, err := stack.StartNode(ctx, stack.NodeOptions{Bin: os.Getenv("KUBEBUILDER_ASSETS"), Dir: filepath.Join(dir, "node"), Cgroup: os.Getenv("CGROUP"), Names: []string{"node1"}})
	if err != nil {
		return err
	}
	s := &site{options: o, node: node, dir: dir}
	if s.refs, err = readImages(o.out); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the chart is installed, with its tests", s.chart},
		{"every pod runs an image of the release, by its digest", s.pods},
		{"it serves the OpenAPI document of the version", s.serves},
		{"a student is provisioned", s.provision},
		{"kubectl finds its plugin, which shows that a URL is ready", s.plugins},
		{"the operator is installed with kubectl, from another manifest", s.operator},
		{"the chart is uninstalled", s.uninstall},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w\n%s", step.what, err, s.explain(ctx))
		}
		say("on the node: %s", step.what)
	}
	return nil
}

// prepare gives the node the images and what a cluster's storage would provide.
func (s *site) prepare(ctx context.Context) error {
	archives, err := filepath.Glob(filepath.Join(s.dir, "*.tar"))
	for _, name := range program.InImages {
		archives = append(archives, filepath.Join(s.out, imageFile(name, s.version)))
	}
	if err := errors.Join(err, s.node.Import(ctx, archives...)); err != nil {
		return err
	}
	for _, ref := range s.refs { // as if each had been pulled by its digest
		if err := s.node.Tag(ctx, tagged(ref), s.byDigest(ref)); err != nil {
			return err
		}
	}
	volume := filepath.Join(s.dir, "volume")
	if err := errors.Join(os.MkdirAll(volume, 0o755), os.Chmod(volume, 0o777)); err != nil { // whatever user the pod runs as
		return err
	}
	say("on the node: a Kubernetes, with the release's images")
	return s.node.Apply(ctx, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 4Gi}, accessModes: [ReadWriteOnce], hostPath: {path: %q}, persistentVolumeReclaimPolicy: Retain}
`, volume))
}

func tagged(ref string) string {
	name, _, _ := strings.Cut(ref, "@")
	return name
}

func (s *site) byDigest(ref string) string {
	name, digest, _ := strings.Cut(ref, "@")
	return strings.TrimSuffix(name, ":"+s.version) + "@" + digest
}

// run runs kubectl or helm, or another program of the PATH that has them.
func (s *site) run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	bin := os.Getenv("KUBEBUILDER_ASSETS")
	if name == "kubectl" || name == "helm" {
		name = filepath.Join(bin, name)
	}
	env := []string{"KUBECONFIG=" + s.node.Admin(), "HOME=" + s.dir, "PATH=" + strings.Join([]string{bin, s.dir, os.Getenv("PATH")}, ":")}
	return program.Source{}.Run(ctx, s.dir, append(env, helmEnv(s.dir)...), name, args...)
}

// runAll runs command lines of words without blanks.
func (s *site) runAll(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if _, err := s.run(ctx, words[0], words[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) chart(ctx context.Context) error {
	return s.runAll(ctx, "helm install registrar "+filepath.Join(s.out, chartFile(s.version))+" --set evaluation.enabled=true --wait --timeout=12m", "helm test registrar --timeout=12m")
}

func (s *site) pods(ctx context.Context) error {
	out, err := s.run(ctx, "kubectl", "get", "pod", "--selector=registrar.dev/program", `--output=jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}`)
	if err != nil {
		return err
	}
	got := slices.Compact(slices.Sorted(slices.Values(strings.Fields(out))))
	var want []string
	for _, ref := range s.refs {
		want = append(want, s.byDigest(ref))
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		return fmt.Errorf("they run %v, not %v", got, want)
	}
	return nil
}

// serves compares the document that the API serves with the release's. The address of the API is its own.
func (s *site) serves(ctx context.Context) error {
	read := func(text []byte) (map[string]any, error) {
		var d map[string]any
		err := yaml.Unmarshal(text, &d)
		delete(d, "servers")
		return d, err
	}
	served, err := stack.Get(ctx, "http://registrar/api/v1/openapi.yaml")
	if err != nil {
		return err
	}
	released, err := os.ReadFile(filepath.Join(s.out, partnerAPI))
	if err != nil {
		return err
	}
	a, errA := read(served)
	b, errB := read(released)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if one, other := fmt.Sprint(a), fmt.Sprint(b); one != other {
		return errors.New("it is another than " + partnerAPI)
	}
	return nil
}

// secret reads a key of a Secret.
func (s *site) secret(ctx context.Context, name, key string) (string, error) {
	return s.run(ctx, "kubectl", "get", "secret", name, fmt.Sprintf("--output=go-template={{index .data %q | base64decode}}", key))
}

func (s *site) provision(ctx context.Context) error {
	platformKey, err := s.secret(ctx, "registrar-keys", "PLATFORM_KEY")
	if err != nil {
		return err
	}
	const platform = "http://registrar-platform:8081/platform/v1/"
	var made struct{ Key string }
	err = errors.Join(
		stack.Call(ctx, http.MethodPut, platform+"organizations/school", platformKey, `{"name": "School", "language_tests_enabled": true}`, nil),
		stack.Call(ctx, http.MethodPost, platform+"organizations/school/api-keys", platformKey, `{"name": "Release", "access": "full"}`, &made))
	if err != nil {
		return err
	}
	return stack.Call(ctx, http.MethodPost, "http://registrar/api/v1/provision/student/", made.Key,
		`{"email": "asha@north-institute.org", "first_name": "Asha", "last_name": "Rao", "courses": ["ielts"]}`, nil)
}

const endpoint = `
apiVersion: registrar.dev/v1beta1
kind: WebhookEndpoint
metadata: {name: school, namespace: default}
spec: {organization: school, url: "https://hooks.north-institute.org/registrar"}
`

// plugins unpacks the plugin beside kubectl, and asks it for a URL that the operator has registered.
func (s *site) plugins(ctx context.Context) error {
	in, err := unpack(filepath.Join(s.out, pluginFile(s.version, program.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH})))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, plugin), in[plugin], 0o755); err != nil {
		return err
	}
	if err := errors.Join(s.runAll(ctx, "kubectl label namespace default registrar.dev/organization=school"), s.node.Apply(ctx, endpoint),
		s.runAll(ctx, "kubectl wait --for=condition=Ready webhookendpoint/school --timeout=5m")); err != nil {
		return err
	}
	said, err := s.run(ctx, "kubectl", "registrar", "version")
	if err == nil && !strings.HasPrefix(said, plugin+" "+s.version+" (") {
		err = fmt.Errorf("it says that it is %q", said)
	}
	if err != nil {
		return err
	}
	said, err = s.run(ctx, "kubectl", "registrar", "status", "--namespace=default")
	if err == nil && !strings.Contains(said, "1 of 1 ready") {
		err = fmt.Errorf("it does not show that it is ready: %s", said)
	}
	return err
}

// operator installs the operator of operator-default.yaml in its own namespace, on the database of the chart's.
func (s *site) operator(ctx context.Context) error {
	database, err := s.secret(ctx, "registrar-connections", "DATABASE_URL")
	if err != nil {
		return err
	}
	keyset, err := s.secret(ctx, "registrar-keys", "SECRET_KEYSET")
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "keyset.json")
	if err := os.WriteFile(file, []byte(keyset), 0o600); err != nil {
		return err
	}
	database = strings.Replace(database, "@registrar-postgres", "@registrar-postgres.default.svc", 1)
	const create = "kubectl --namespace=registrar-system create secret generic "
	return s.runAll(ctx,
		"kubectl apply --server-side --force-conflicts --dry-run=server --filename="+filepath.Join(s.out, crdsFile),
		"kubectl create namespace registrar-system",
		create+"registrar-database --from-literal=url="+database,
		create+"registrar-keyset --from-file=keyset.json="+file,
		"kubectl apply --server-side --force-conflicts --filename="+filepath.Join(s.out, operatorFile("default")),
		"kubectl --namespace=registrar-system set env deployment/registrar-operator CLUSTER_NAME=another",
		"kubectl --namespace=registrar-system rollout status deployment/registrar-operator --timeout=10m")
}

func (s *site) uninstall(ctx context.Context) error {
	return s.runAll(ctx, "helm uninstall registrar --wait --timeout=10m")
}

// explain shows the cluster as it is, for who reads a failure.
func (s *site) explain(ctx context.Context) string {
	var all bytes.Buffer
	for _, args := range [][]string{{"get", "pods", "-A", "-o", "wide"}, {"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"logs", "--selector=app.kubernetes.io/name=registrar", "--all-containers", "--prefix", "--tail=5"}} {
		out, _ := s.node.Kubectl(ctx, args...) // what can be shown
		lines := strings.Split(out, "\n")
		fmt.Fprintf(&all, "kubectl %s\n%s\n", strings.Join(args, " "), strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
	return all.String()
}
