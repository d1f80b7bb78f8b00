package chart_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// foreign are the modules that hold the definitions of resources that the chart makes for others.
var foreign = map[string]string{
	"github.com/prometheus-operator/prometheus-operator@v0.85.0": "example/prometheus-operator-crd/*_{podmonitors,servicemonitors,prometheusrules}.yaml",
	"sigs.k8s.io/gateway-api@v1.4.1":                             "config/crd/standard/*_httproutes.yaml",
	"github.com/kedacore/keda/v2@v2.18.2":                        "config/crd/bases/*_scaledobjects.yaml",
}

var (
	cluster      *stack.Cluster
	clusterDir   string
	startCluster = sync.OnceValue(func() error {
		ctx := context.Background()
		var err error
		if clusterDir, err = os.MkdirTemp("", "registrar-chart-"); err != nil {
			return err
		}
		o := stack.ClusterOptions{Bin: os.Getenv("KUBEBUILDER_ASSETS"), Dir: filepath.Join(clusterDir, "cluster"), LogDir: filepath.Join(clusterDir, "log")}
		ports, err := stack.FreePorts(ctx, 3)
		if err != nil {
			return err
		}
		o.APIPort, o.Etcd = ports[0], [2]int{ports[1], ports[2]}
		cluster, err = stack.StartCluster(ctx, o)
		return err
	})
)

func TestMain(m *testing.M) {
	code := m.Run()
	if cluster != nil {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	_ = os.RemoveAll(clusterDir)
	os.Exit(code)
}

// control gives a Kubernetes API server with its controllers; there are no nodes, so nothing runs.
func control(t *testing.T) *stack.Cluster {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		nottested.Skip(t, "KUBEBUILDER_ASSETS names no Kubernetes; make test prepares one")
	}
	if err := startCluster(); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// kubectl runs it with something on its standard input.
func kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Admin())
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func mustKubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := kubectl(t, input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// defineForeign teaches the API server what Prometheus Operator, KEDA and the Gateway API define.
func defineForeign(t *testing.T) {
	t.Helper()
	for module, pattern := range foreign {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
		cmd.Dir = t.TempDir() // outside of every module
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", module, err, out)
		}
		var got struct{ Dir string }
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		before, rest, _ := strings.Cut(pattern, "{")
		names, after, several := strings.Cut(rest, "}")
		if !several {
			names = ""
		}
		for name := range strings.SplitSeq(names, ",") {
			files, err := filepath.Glob(filepath.Join(got.Dir, before+name+after))
			check.NoError(check.Now(t), err, "%s: %v for %s, %v", module, files, name, err)
			check.Equal(check.Now(t), "number of files", len(files), 1, "%s: %v for %s, %v", module, files, name, err)
			mustKubectl(t, "", "apply", "--server-side", "-f", files[0])
		}
	}
	check.NoError(check.Now(t), cluster.AwaitDefinitions(t.Context()), "")
}

// restricted makes a namespace that lets in what the restricted level of Pod Security allows.
func restricted(t *testing.T, name string) {
	t.Helper()
	mustKubectl(t, "", "create", "namespace", name)
	mustKubectl(t, "", "label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	t.Cleanup(func() {
		_, _ = cluster.Kubectl(context.WithoutCancel(t.Context()), "delete", "namespace", name, "--wait=false")
	})
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := kubectl(t, "", "get", "serviceaccount", "default", "--namespace", name)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// pods are the Pods that a release would make: its own, and one of each template.
func pods(all []object) []object {
	var made []object
	for _, o := range all {
		template, _ := at(o, "spec", "template").(object)
		switch {
		case o["kind"] == "Pod":
			template = object{"metadata": object{"labels": at(o, "metadata", "labels")}, "spec": o["spec"]}
		case template == nil || at(template, "spec", "containers") == nil:
			continue
		}
		spec := template["spec"].(object)
		delete(spec, "serviceAccountName") // it does not exist in a dry run
		for _, claim := range list(o, "spec", "volumeClaimTemplates") {
			spec["volumes"] = append(list(spec, "volumes"), object{"name": at(claim, "metadata", "name"), "emptyDir": object{}})
		}
		made = append(made, object{"apiVersion": "v1", "kind": "Pod",
			"metadata": object{"name": fmt.Sprintf("%v-of-%v", strings.ToLower(o["kind"].(string)), at(o, "metadata", "name")), "labels": at(template, "metadata", "labels")},
			"spec":     spec})
	}
	return made
}

func toYAML(t *testing.T, all []object) string {
	t.Helper()
	var out strings.Builder
	for _, o := range all {
		content, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(content))
	}
	return out.String()
}

// A real API server knows every field that is rendered, and lets every Pod into a namespace of the
// restricted level.
func TestEveryManifestIsAcceptedByTheAPIServer(t *testing.T) {
	control(t)
	defineForeign(t)
	mustKubectl(t, "", "create", "namespace", "partners")
	mustKubectl(t, "", "create", "namespace", "school-1")
	for i, file := range valuesFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			namespace := fmt.Sprintf("ci-%d", i)
			restricted(t, namespace)
			out, err := run(t, helm(t), "template", "r", chartDir(t), "--namespace", namespace, "--values", file, "--api-versions", "monitoring.coreos.com/v1")
			if err != nil {
				t.Fatal(err)
			}
			answer := mustKubectl(t, out, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
			if strings.Contains(answer, "Warning") {
				t.Error(answer)
			}
			made := pods(objects(t, out))
			if len(made) < 4 {
				t.Fatalf("%d Pods", len(made))
			}
			if _, err := kubectl(t, toYAML(t, made), "create", "--dry-run=server", "--namespace", namespace, "-f", "-"); err != nil {
				t.Error(err)
			}
			loose := made[0]
			delete(at(loose, "spec", "containers", 0).(object), "securityContext")
			if _, err := kubectl(t, toYAML(t, []object{loose}), "create", "--dry-run=server", "--namespace", namespace, "-f", "-"); check.True(t, "there is an error", err != nil, "a Pod without a securityContext is let in: the namespace refuses nothing (%v)", err) {
				check.Contains(t, "the error", err.Error(), "PodSecurity", "a Pod without a securityContext is let in: the namespace refuses nothing (%v)", err)
			}
		})
	}
}

// release runs helm against the cluster.
func release(t *testing.T, helm, namespace string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), helm, append(args, "--namespace", namespace)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Admin())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func secrets(t *testing.T, namespace string) map[string]string {
	t.Helper()
	data := map[string]string{}
	for _, name := range []string{"reg-registrar-keys", "reg-registrar-evaluation", "reg-registrar-connections"} {
		data[name] = mustKubectl(t, "", "get", "secret", name, "--namespace", namespace, "--output", "jsonpath={.data}")
	}
	return data
}

// What is generated at the first install is never generated again, and an uninstall leaves what its
// notes have said and nothing else.
func TestALifeOfARelease(t *testing.T) {
	control(t)
	for name, helm := range helms(t) {
		t.Run(name, func(t *testing.T) {
			namespace := "life-" + name[len(name)-1:]
			restricted(t, namespace)
			live(t, helm, namespace)
			mustKubectl(t, "", "delete", "customresourcedefinition", "apikeys.registrar.dev", "organizations.registrar.dev", "rostersources.registrar.dev", "webhookendpoints.registrar.dev", "webhookreplays.registrar.dev")
		})
	}
}

// opensABox checks a keyset that Helm has drawn.
func opensABox(t *testing.T, keyset string) {
	t.Helper()
	box, err := seal.New([]byte(keyset))
	if err != nil {
		t.Fatalf("%v in %s", err, keyset)
	}
	sealed, err := box.Seal(t.Context(), []byte("secret"), "here")
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := box.Open(t.Context(), sealed, "here"); check.NoError(check.Now(t), err, "%q %v", plain, err) {
		check.Equal(check.Now(t), "the plaintext", string(plain), "secret", "%q %v", plain, err)
	}
}

// An upgrade that cannot ask the cluster for its secrets is refused, and one that is told where they are is not.
func TestARenderingWithoutTheClusterMakesNoSecrets(t *testing.T) {
	control(t)
	namespace := "asked"
	restricted(t, namespace)
	flags := []string{"template", "reg", chartDir(t), "--namespace", namespace, "--set", "evaluation.enabled=true"}
	_, err := run(t, helm(t), flags...)
	if check.True(t, "there is an error", err != nil, "without a cluster") {
		check.Contains(t, "the error", err.Error(), "set existingSecret of each", "without a cluster")
	}
	out := release(t, helm(t), namespace, append(flags, "--dry-run=server")...)
	if keyset := text(find(objects(t, out), "Secret", "reg-registrar-keys"), "stringData", "SECRET_KEYSET"); keyset == "" {
		t.Error("the cluster was asked, and there is no keyset")
	}
}

func live(t *testing.T, helm, namespace string) {
	t.Helper()
	flags := []string{"reg", chartDir(t), "--no-hooks", "--set", "evaluation.enabled=true"}
	notes := release(t, helm, namespace, append([]string{"install"}, flags...)...)
	drawn := secrets(t, namespace)
	opensABox(t, mustKubectl(t, "", "get", "secret", "reg-registrar-keys", "--namespace", namespace, "--output", "go-template={{.data.SECRET_KEYSET | base64decode}}"))
	same := func(step string) {
		t.Helper()
		for name, data := range secrets(t, namespace) {
			if data != drawn[name] {
				t.Errorf("%s: the Secret %s is another one", step, name)
			}
		}
	}
	release(t, helm, namespace, append([]string{"upgrade"}, append(flags, "--set", "logLevel=debug")...)...)
	same("upgrade")
	release(t, helm, namespace, "rollback", "reg", "1", "--no-hooks")
	same("rollback")
	mustKubectl(t, "", "wait", "--for=create", "persistentvolumeclaim/data-reg-registrar-postgres-0", "--namespace", namespace, "--timeout=60s")
	release(t, helm, namespace, "uninstall", "reg", "--no-hooks")
	left := strings.Fields(mustKubectl(t, "", "get", "all,secrets,configmaps,serviceaccounts,persistentvolumeclaims,networkpolicies,poddisruptionbudgets,roles,rolebindings,clusterroles,clusterrolebindings,customresourcedefinitions",
		"--namespace", namespace, "--selector", "app.kubernetes.io/instance=reg", "--output", "name", "--ignore-not-found"))
	_, notified, found := strings.Cut(notes, "kubectl --namespace "+namespace+" delete ")
	if !found {
		t.Fatalf("the notes do not say what is left:\n%s", notes)
	}
	notified, _, _ = strings.Cut(notified, "\n")
	// What Kubernetes' own garbage collector takes away goes a moment later.
	deadline := time.Now().Add(time.Minute)
	for len(left) > len(strings.Fields(notified)) && time.Now().Before(deadline) {
		left = strings.Fields(mustKubectl(t, "", "get", "all,secrets,persistentvolumeclaims,customresourcedefinitions",
			"--namespace", namespace, "--selector", "app.kubernetes.io/instance=reg", "--output", "name", "--ignore-not-found"))
	}
	for i := range left {
		left[i] = strings.Replace(left[i], ".apiextensions.k8s.io/", "/", 1)
	}
	slices.Sort(left)
	want := strings.Fields(notified)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left: %v\ntold: %v", left, want)
	}
	release(t, helm, namespace, append([]string{"install"}, flags...)...)
	same("another install")
	release(t, helm, namespace, "uninstall", "reg", "--no-hooks")
}
