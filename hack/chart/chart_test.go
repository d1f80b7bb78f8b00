// Package chart_test tests the Helm chart: what it renders, that a cluster takes it, and its alerts.
package chart_test

// The README's table of values comes from the comments in values.yaml.
//go:generate go tool -modfile=../tools/go.mod helm-docs --chart-search-root ../../charts --sort-values-order file --log-level warning

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// helm is the program that KUBEBUILDER_ASSETS (see stack.EnsureKube) or PATH has.
func helm(t *testing.T) string {
	t.Helper()
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if _, err := os.Stat(filepath.Join(assets, "helm")); err == nil {
			return filepath.Join(assets, "helm")
		}
	}
	path, err := exec.LookPath("helm")
	if err != nil {
		nottested.Skip(t, "no helm in KUBEBUILDER_ASSETS or on PATH")
	}
	return path
}

// helms are Helm 4 and, where HELM3 names it or PATH has a helm3, Helm 3.
func helms(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"helm 4": helm(t)}
	helm3 := os.Getenv("HELM3")
	if helm3 == "" {
		helm3, _ = exec.LookPath("helm3") // none is said below
	}
	if helm3 == "" {
		t.Log("NOT TESTED with Helm 3: HELM3 names none, and there is no helm3 on PATH")
		return found
	}
	found["helm 3"] = helm3
	return found
}

func chartDir(t *testing.T) string {
	t.Helper()
	root, err := stack.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "charts", "registrar")
}

func valuesFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir(t), "ci", "*.yaml"))
	check.NoError(check.Now(t), err, "%d values files, %v", len(files), err)
	check.True(check.Now(t), "number of files is at least 4", len(files) >= 4, "%d values files, %v", len(files), err)
	return files
}

// run gives what a program prints, and its error.
func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), errors.Join(err, errors.New(complaints.String()+out.String()))
	}
	return out.String(), nil
}

// object is a resource of Kubernetes.
type object = map[string]any

// at follows keys and indexes; nil where there is nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func text(v any, path ...any) string {
	s, _ := at(v, path...).(string)
	return s
}

func list(v any, path ...any) []any {
	l, _ := at(v, path...).([]any)
	return l
}

// objects reads a stream of YAML documents.
func objects(t *testing.T, stream string) []object {
	t.Helper()
	var all []object
	d := yaml.NewDecoder(strings.NewReader(stream))
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}

// render gives what helm template makes of the chart.
func render(t *testing.T, args ...string) []object {
	t.Helper()
	out, err := run(t, helm(t), append([]string{"template", "r", chartDir(t), "--namespace", "n"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, out)
}

// find is the object of a kind and name; nil when there is none.
func find(all []object, kind, name string) object {
	for _, o := range all {
		if o["kind"] == kind && text(o, "metadata", "name") == name {
			return o
		}
	}
	return nil
}

func TestTheLinterIsContent(t *testing.T) {
	for name, helm := range helms(t) {
		for _, file := range valuesFiles(t) {
			if _, err := run(t, helm, "lint", "--strict", chartDir(t), "--values", file); err != nil {
				t.Errorf("%s: %s: %v", name, filepath.Base(file), err)
			}
		}
	}
}

// The suites in the chart's folder tests.
// The chart is packaged by itself: what its README leads to is on the web, or in the repository at
// the address where that is.
func TestTheREADMELeadsOutOfThePackage(t *testing.T) {
	dir := chartDir(t)
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllSubmatch(readme, -1)
	if len(links) == 0 {
		t.Fatal("no link is found")
	}
	for _, link := range links {
		target := string(link[1])
		leads := strings.HasPrefix(target, "https://") || strings.HasPrefix(target, "#")
		check.True(t, "the link leads to the web or within the page", leads, "%s", target)
		if file, ours := strings.CutPrefix(target, "https://github.com/registrar-dev/registrar/blob/main/"); ours {
			file, _, _ = strings.Cut(file, "#")
			if _, err := os.Stat(filepath.Join(dir, "..", "..", filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: %v", target, err)
			}
		}
	}
}

func TestUnitsByHelmUnittest(t *testing.T) {
	unittest := filepath.Join(filepath.Dir(os.Getenv("HELM3")), "helm-unittest")
	if _, err := os.Stat(unittest); os.Getenv("HELM3") == "" || err != nil {
		nottested.Skip(t, "no helm-unittest beside HELM3; make test prepares both")
	}
	out, err := run(t, unittest, "--strict", chartDir(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	suites, err := filepath.Glob(filepath.Join(chartDir(t), "tests", "*_test.yaml"))
	if check.NoError(t, err, "%d suites, %v", len(suites), err) {
		check.True(t, "number of suites is at least 5", len(suites) >= 5, "%d suites, %v", len(suites), err)
	}
}

// drawn is what each rendering draws again.
var drawn = regexp.MustCompile(`(?m)^  (POSTGRES_PASSWORD|VALKEY_PASSWORD|DATABASE_URL|REDIS_URL): .*$`)

func TestHelm3AndHelm4RenderTheSame(t *testing.T) {
	all := helms(t)
	if len(all) < 2 {
		nottested.Skip(t, "one Helm alone")
	}
	for _, file := range valuesFiles(t) {
		texts := map[string]string{}
		for name, helm := range all {
			out, err := run(t, helm, "template", "r", chartDir(t), "--namespace", "n", "--values", file, "--kube-version", "1.37.0")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			objects := objects(t, drawn.ReplaceAllString(out, ""))
			slices.SortFunc(objects, func(a, b object) int {
				return strings.Compare(fmt.Sprint(a["kind"], a["metadata"]), fmt.Sprint(b["kind"], b["metadata"]))
			})
			texts[name] = fmt.Sprint(objects)
		}
		if texts["helm 3"] != texts["helm 4"] {
			t.Errorf("%s: the two differ", filepath.Base(file))
		}
	}
}

func TestWrongValuesAreRefusedInWords(t *testing.T) {
	evaluation := []string{"--set", "evaluation.enabled=true"}
	for _, c := range []struct {
		name  string
		flags []string
		want  []string
	}{
		{"nothing given", nil, []string{"database.existingSecret", "redis.existingSecret", "evaluation.enabled=true", "publicUrl", "mail.from"}},
		{"a keyset without a cluster", evaluation, []string{"keyset, platformKey, queuesPage: set existingSecret of each", "--dry-run=server"}},
		{"fewer than the least", append(evaluation, "--set", "worker.keda.minReplicas=7"), []string{"worker.keda: minReplicas is 7, which is more than maxReplicas (6); raise that, or lower this"}},
		{"no network", append(evaluation, "--set", "trustedProxies={10.0.0.0/33}"), []string{"/trustedProxies/0", "does not match pattern"}},
		{"no address", append(evaluation, "--set", "webhooks.egressAddresses={300.0.0.1}"), []string{"/webhooks/egressAddresses/0", "does not match pattern"}},
		{"a drain that never ends", append(evaluation, "--set", "podDisruptionBudget.maxUnavailable=0"), []string{"/podDisruptionBudget/maxUnavailable"}},
		{"no network of a peer", append(evaluation, "--set", "networkPolicy.partnerFrom[0].ipBlock.cidr=10.0.0.0"), []string{"/networkPolicy/partnerFrom/0/ipBlock/cidr", "does not match pattern"}},
		{"a host twice", append(evaluation, "--set", "ingress.enabled=true,ingress.hosts[0].host=a.example,ingress.hosts[1].host=a.example"), []string{"ingress.hosts: a.example is there twice"}},
		{"an autoscaler without a measure", append(evaluation, "--set", "apiServer.autoscaling.enabled=true,apiServer.resources.requests.cpu=null"), []string{"apiServer.resources.requests.cpu"}},
		{"two places of authorities", append(evaluation, "--set", "caBundle.secret=a,caBundle.configMap=b"), []string{"caBundle: set secret or configMap, not both"}},
		{"two addresses of standbys", append(evaluation, "--set", "database.readUrl=postgres://x/y,database.readSecret=z"), []string{"database: set readUrl or readSecret, not both"}},
		{"two addresses", append(evaluation, "--set", "database.url=postgres://x/y,database.existingSecret=z"), []string{"database: set url or existingSecret, not both"}},
		{"unknown value", append(evaluation, "--set", "worker.replica=2"), []string{"/worker", "'replica' not allowed"}},
		{"a word for a number", append(evaluation, "--set", "worker.replicas=two"), []string{"/worker/replicas", "got string, want integer"}},
		{"unknown level", append(evaluation, "--set", "logLevel=loud"), []string{"/logLevel", "'debug', 'info', 'warn', 'error'"}},
		{"no address", append(evaluation, "--set", "publicUrl=registrar.example"), []string{"/publicUrl", "does not match pattern"}},
		{"no duration", append(evaluation, "--set", "schemaWait=long"), []string{"/schemaWait"}},
		{"no digest", append(evaluation, "--set", "worker.image.digest=abc"), []string{"/worker/image/digest"}},
		{"an Ingress for every host", append(evaluation, "--set", "ingress.enabled=true"), []string{"ingress.hosts[0].host=registrar.example"}},
		{"a route without a gateway", append(evaluation, "--set", "httpRoute.enabled=true"), []string{"httpRoute.parentRefs"}},
		{"an Ingress whose proxies nobody knows", append(evaluation, "--set", "ingress.enabled=true,ingress.hosts[0].host=registrar.example"), []string{"trustedProxies={10.0.0.0/8}"}},
		{"a route whose proxies nobody knows", append(evaluation, "--set", "httpRoute.enabled=true,httpRoute.parentRefs[0].name=public"), []string{"trustedProxies={10.0.0.0/8}"}},
		{"a list and a selector", append(evaluation, "--set", `operator.watchNamespaces={a},operator.watchNamespaceSelector.matchLabels.a=b`), []string{"set one of watchNamespaces"}},
		{"a label that is none", append(evaluation, "--set", "operator.watchNamespaceSelector.matchLabels.a=b c"), []string{"/operator/watchNamespaceSelector/matchLabels"}},
		{"values where none are asked", append(evaluation, "--set", "operator.watchNamespaceSelector.matchExpressions[0].key=a,operator.watchNamespaceSelector.matchExpressions[0].operator=Exists,operator.watchNamespaceSelector.matchExpressions[0].values={b}"), []string{"/operator/watchNamespaceSelector/matchExpressions/0"}},
		{"everywhere and somewhere", append(evaluation, "--set", "operator.clusterWide=true,operator.watchNamespaces={a}"), []string{"set one of watchNamespaces, watchNamespaceSelector and clusterWide, not two"}},
		{"metrics that nobody reaches", append(evaluation, "--set", "metrics.podMonitor.enabled=true"), []string{"networkPolicy.metricsFrom"}},
		{"KEDA without figures", append(evaluation, "--set", "webhookSender.keda.enabled=true"), []string{"keda.prometheusAddress"}},
		{"read twice", append(evaluation, "--set", "metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true"), []string{"not both"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := run(t, helm(t), append([]string{"template", "r", chartDir(t)}, c.flags...)...)
			if err == nil {
				t.Fatal("rendered")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in:\n%v", want, err)
				}
			}
		})
	}
}

func TestThePlatformAPIIsNeverRouted(t *testing.T) {
	all := render(t, "--values", filepath.Join(chartDir(t), "ci", "everything-values.yaml"))
	ingress, route := find(all, "Ingress", "reg"), find(all, "HTTPRoute", "reg")
	if got := text(ingress, "spec", "rules", 0, "http", "paths", 0, "backend", "service", "name"); got != "reg" {
		t.Errorf("the Ingress leads to %q", got)
	}
	if got := text(route, "spec", "rules", 0, "backendRefs", 0, "name"); got != "reg" {
		t.Errorf("the HTTPRoute leads to %q", got)
	}
	public := find(all, "Service", "reg")
	if ports := list(public, "spec", "ports"); check.Equal(t, "number of ports", len(ports), 1, "the public Service has the ports %v", ports) {
		check.Equal(t, "target port", text(ports[0], "targetPort"), "http", "the public Service has the ports %v", ports)
	}
	if got := text(find(all, "Service", "reg-platform"), "spec", "type"); got != "ClusterIP" {
		t.Errorf("the platform API's Service is a %s", got)
	}
}

func TestMigrationRunsBeforeThePrograms(t *testing.T) {
	dir := filepath.Join(chartDir(t), "ci")
	const hook = "helm.sh/hook"
	job := find(render(t, "--values", filepath.Join(dir, "external-values.yaml")), "Job", "r-registrar-migrate")
	if got := text(job, "metadata", "annotations", hook); got != "pre-install,pre-upgrade" {
		t.Errorf("managed database, install: hook %q", got)
	}
	first := render(t, "--values", filepath.Join(dir, "evaluation-values.yaml"))
	if job = find(first, "Job", "r-registrar-migrate-first"); check.True(t, "there is a job", job != nil, "evaluation, install: the Job has to start beside its PostgreSQL") {
		check.True(t, "the Job has no annotations", at(job, "metadata", "annotations") == nil, "evaluation, install: the Job has to start beside its PostgreSQL")
	}
	later := render(t, "--values", filepath.Join(dir, "evaluation-values.yaml"), "--is-upgrade")
	if job = find(later, "Job", "r-registrar-migrate"); check.Equal(t, "hook", text(job, "metadata", "annotations", hook), "pre-install,pre-upgrade", "evaluation, upgrade: not a hook") {
		check.True(t, "there is no first Job", find(later, "Job", "r-registrar-migrate-first") == nil, "evaluation, upgrade: not a hook")
	}
	urls := render(t, "--values", filepath.Join(dir, "urls-values.yaml"), "--set", "migration.enabled=true")
	secret := find(urls, "Secret", "r-registrar-migrate")
	job = find(urls, "Job", "r-registrar-migrate")
	if check.True(t, "the Secret has a hook", text(secret, "metadata", "annotations", hook) != "", "an address in the values: the hook has to bring its own Secret") {
		check.Equal(t, "the Secret's name", text(container(job), "env", 0, "valueFrom", "secretKeyRef", "name"), "r-registrar-migrate", "an address in the values: the hook has to bring its own Secret")
	}
	for _, o := range append(urls, later...) {
		if strings.Contains(text(o, "metadata", "annotations", hook), "rollback") {
			t.Errorf("%s %s runs on a rollback", o["kind"], text(o, "metadata", "name"))
		}
	}
}

func TestTheSenderReachesNoPrivateAddress(t *testing.T) {
	policy := find(render(t, "--values", filepath.Join(chartDir(t), "ci", "external-values.yaml")), "NetworkPolicy", "r-registrar-webhook-sender")
	var excepted []string
	for _, rule := range list(policy, "spec", "egress") {
		for _, peer := range list(rule, "to") {
			for _, network := range list(peer, "ipBlock", "except") {
				excepted = append(excepted, network.(string))
			}
		}
		if len(list(rule, "to")) == 0 { // only the ports of PostgreSQL, Redis and DNS are open to every address
			for _, port := range list(rule, "ports") {
				check.OneOf(t, "port", at(port, "port"), []any{5432, 6379, 53}, "open to every address")
			}
		}
	}
	for _, want := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "127.0.0.0/8",
		"168.63.129.16/32", "161.26.0.0/16", "166.8.0.0/14"} { // the last three look public and are the clouds' own
		if !strings.Contains(strings.Join(excepted, " "), want) {
			t.Errorf("%s can be reached", want)
		}
	}
}

func TestOptionsReachThePods(t *testing.T) {
	all := render(t, "--values", filepath.Join(chartDir(t), "ci", "everything-values.yaml"))
	api := find(all, "Deployment", "reg-api-server")
	if at(api, "spec", "replicas") != nil {
		t.Error("an autoscaled Deployment has replicas of its own: each upgrade would scale it back")
	}
	if got := text(container(api), "image"); got != "registry.example/mirror/registrar/api-server@sha256:"+strings.Repeat("a", 64) {
		t.Errorf("image %s", got)
	}
	if got := text(container(find(all, "Deployment", "reg-worker")), "image"); got != "registry.example/mirror/registrar/worker:1.2.3" {
		t.Errorf("image %s", got)
	}
	pod := at(api, "spec", "template", "spec")
	if check.Equal(t, "pull secret", text(pod, "imagePullSecrets", 0, "name"), "registry", "imagePullSecrets, priorityClassName or topologySpread is missing") &&
		check.True(t, "there is a priority class", text(pod, "priorityClassName") != "", "imagePullSecrets, priorityClassName or topologySpread is missing") {
		check.Equal(t, "spread constraint", text(pod, "topologySpreadConstraints", 0, "whenUnsatisfiable"), "DoNotSchedule", "imagePullSecrets, priorityClassName or topologySpread is missing")
	}
	if check.True(t, "there are rules", text(find(all, "PrometheusRule", "reg"), "spec", "groups", 0, "name") != "", "no rules or dashboards") {
		check.True(t, "there is a dashboard", find(all, "ConfigMap", "reg-dashboard-service") != nil, "no rules or dashboards")
	}
}

// What a site adds, and a cluster that chooses the ids of users itself (omitIds in external-values.yaml).
func TestASiteAddsAndTakesAway(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "values.yaml")
	err := os.WriteFile(file, []byte(`
extraObjects:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Release.Name }}-added"}}
  - |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: {{ include "registrar.fullname" . }}-text}
worker:
  extraEnvFrom: [{secretRef: {name: more}}]
  extraVolumes: [{name: more, emptyDir: {}}]
  extraVolumeMounts: [{name: more, mountPath: /more}]
  extraContainers: [{name: beside, image: example.org/beside}]
  extraInitContainers: [{name: before, image: example.org/before}]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	all := render(t, "--values", filepath.Join(chartDir(t), "ci", "external-values.yaml"), "--values", file)
	check.True(t, "a resource is added", find(all, "ConfigMap", "r-added") != nil, "")
	check.True(t, "a text is added", find(all, "ConfigMap", "r-registrar-text") != nil, "")
	for _, name := range []string{"api-server", "worker", "webhook-sender", "operator"} {
		context, _ := at(find(all, "Deployment", "r-registrar-"+name), "spec", "template", "spec", "securityContext").(object)
		check.Equal(t, "a pod's securityContext", fmt.Sprint(context), "map[fsGroupChangePolicy:OnRootMismatch runAsNonRoot:true seccompProfile:map[type:RuntimeDefault]]", "%s", name)
	}
	worker := find(all, "Deployment", "r-registrar-worker")
	check.Equal(t, "where variables come from", text(container(worker), "envFrom", 0, "secretRef", "name"), "more", "")
	check.Equal(t, "a container goes before", text(worker, "spec", "template", "spec", "initContainers", 0, "name"), "before", "")
	check.Equal(t, "a container is added", text(worker, "spec", "template", "spec", "containers", 1, "name"), "beside", "")
	mounts, volumes := list(container(worker), "volumeMounts"), list(worker, "spec", "template", "spec", "volumes")
	check.Equal(t, "the last mount", text(mounts[len(mounts)-1], "mountPath"), "/more", "")
	check.Equal(t, "the last volume", text(volumes[len(volumes)-1], "name"), "more", "")
}

// A quota or a LimitRange that asks for disk lets every pod in, and an image is pulled as the values say.
func TestEveryContainerSaysWhatItNeeds(t *testing.T) {
	for _, file := range valuesFiles(t) {
		for _, pod := range pods(render(t, "--values", file)) {
			for _, c := range list(pod, "spec", "containers") {
				name := text(c, "name")
				if name == "beside-it" { // the site's own, in everything-values.yaml
					continue
				}
				about := filepath.Base(file) + ": " + text(pod, "metadata", "name") + ": " + name
				check.True(t, "there is a pull policy", text(c, "imagePullPolicy") != "", "%s", about)
				for _, of := range []string{"requests", "limits"} {
					check.True(t, of+" of memory", text(c, "resources", of, "memory") != "", "%s", about)
					check.True(t, of+" of disk", text(c, "resources", of, "ephemeral-storage") != "", "%s", about)
				}
			}
		}
	}
}

// Two releases in one namespace, or in two, share nothing but the definitions, which one of them installs.
func TestTwoReleasesShareNothing(t *testing.T) {
	file := filepath.Join(chartDir(t), "ci", "evaluation-values.yaml")
	rendered := func(release, namespace string) []object {
		out, err := run(t, helm(t), "template", release, chartDir(t), "--namespace", namespace, "--values", file, "--set", "crds.enabled=false,metrics.prometheusRule.enabled=true,operator.className="+release)
		check.NoError(check.Now(t), err, "")
		return objects(t, out)
	}
	taken := map[string]bool{}
	for _, release := range [][2]string{{"blue", "n"}, {"green", "n"}, {"blue", "m"}} {
		own := map[string]bool{}
		for _, o := range rendered(release[0], release[1]) {
			id := fmt.Sprint(o["kind"], " ", text(o, "metadata", "namespace"), "/", text(o, "metadata", "name"))
			check.False(t, "another release has it", taken[id], "%s", id)
			own[id] = true
		}
		check.True(t, "there is a lease", own["Lease "+release[1]+"/"+release[0]+"-registrar-operator"], "%v", own)
		maps.Copy(taken, own)
	}
}

func TestMetricsAreClosedUntilSomebodyIsNamed(t *testing.T) {
	all := render(t, "--values", filepath.Join(chartDir(t), "ci", "evaluation-values.yaml"))
	for _, program := range []string{"api-server", "worker", "webhook-sender", "operator"} {
		var open []string
		for _, rule := range list(find(all, "NetworkPolicy", "r-registrar-"+program), "spec", "ingress") {
			port := text(rule, "ports", 0, "port")
			if port != "private" && port != "metrics" {
				continue
			}
			for _, from := range list(rule, "from") {
				open = append(open, port+" to "+text(from, "podSelector", "matchLabels", "app.kubernetes.io/component"))
			}
			check.True(t, "somebody is named", len(list(rule, "from")) > 0, "%s: %s", program, port)
		}
		check.Slices(t, "open", open, []string{"private to test"}, "%s", program)
	}
}

// What the chart lets the operator do, and where, is what the overlays of config do, from which its own tests run.
// In other namespaces than those that it serves it may do nothing.
func TestTheOperatorMayDoWhatItsRolesSay(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		nottested.Skip(t, "KUBEBUILDER_ASSETS names no Kubernetes; make test prepares one")
	}
	// own is the operator's namespace, which the chart's renderings here call n.
	own := func(namespace string) string {
		if namespace == "n" {
			return "registrar-system"
		}
		return namespace
	}
	named := strings.NewReplacer("n-r-registrar-operator-namespaced", "registrar-operator-namespaced", "'r-registrar-operator'", "'registrar-operator'",
		"'n'", "'registrar-system'", ":n:r-registrar-operator'", ":registrar-system:registrar-operator'", "/leases r-registrar-operator", "/leases registrar-operator")
	for overlay, c := range map[string]struct {
		values, more string
		serves       []string // in the chart's words; "" is everywhere
	}{
		"default":      {"evaluation-values.yaml", "operator.clusterWide=false", []string{"n"}},
		"namespaces":   {"external-values.yaml", "operator.clusterWide=false", []string{"partners", "school-1"}},
		"cluster-wide": {"evaluation-values.yaml", "operator.clusterWide=true,operator.organizations.enabled=true", []string{""}},
		"selector":     {"evaluation-values.yaml", `operator.watchNamespaceSelector.matchLabels.registrar\.dev/managed=true`, nil},
	} {
		out, err := run(t, filepath.Join(assets, "kubectl"), "kustomize", filepath.Join(chartDir(t), "..", "..", "config", overlay))
		if err != nil {
			t.Fatal(err)
		}
		set := "--set"
		if overlay == "selector" {
			set = "--set-string" // true is a word here
		}
		kustomized, chart := objects(t, out), render(t, "--values", filepath.Join(chartDir(t), "ci", c.values), set, c.more)
		want, got := grants(kustomized, "registrar-operator"), grants(chart, "r-registrar-operator")
		for namespace, may := range got {
			namespace = own(namespace)
			for i := range may {
				may[i] = named.Replace(may[i])
			}
			check.Slices(t, "what the operator may do", may, want[namespace], "in %q by the chart, beside config/%s", namespace, overlay)
			delete(want, namespace)
		}
		check.Equal(t, "number of namespaces with other rights", len(want), 0, "config/%s besides the chart: %v", overlay, want)
		var reads []string
		for namespace, may := range got {
			if slices.Contains(may, "get /secrets") {
				reads = append(reads, namespace)
			}
		}
		slices.Sort(reads)
		check.Slices(t, "namespaces whose Secrets the operator reads", reads, c.serves, "%s", c.values)
		watched := strings.Join(c.serves, ",")
		check.Equal(t, "WATCH_NAMESPACES", variable(find(chart, "Deployment", "r-registrar-operator"), "WATCH_NAMESPACES"), watched, "%s", c.values)
		for _, name := range []string{"WATCH_NAMESPACE_SELECTOR", "NAMESPACE_ROLE"} {
			said := variable(find(chart, "Deployment", "r-registrar-operator"), name)
			check.Equal(t, name, named.Replace(said), variable(find(kustomized, "Deployment", "registrar-operator"), name), "config/%s", overlay)
		}
		if overlay == "selector" {
			policy := find(chart, "ValidatingAdmissionPolicy", "n-r-registrar-operator-namespaced")
			check.Equal(t, "what the policy says", named.Replace(asJSON(t, policy["spec"])), asJSON(t, find(kustomized, "ValidatingAdmissionPolicy", "registrar-operator-selecting")["spec"]), "")
		}
		check.Equal(t, "WATCH_NAMESPACES", variable(find(kustomized, "Deployment", "registrar-operator"), "WATCH_NAMESPACES"), own(watched), "config/%s", overlay)
	}
}

// grants are what a ServiceAccount may do in each namespace, by the bindings; "" is everywhere. What holds for the
// time of a hook alone is not among them.
func grants(all []object, account string) map[string][]string {
	may := map[string][]string{}
	for _, binding := range all {
		kind, namespace := text(binding, "kind"), text(binding, "metadata", "namespace")
		if kind != "RoleBinding" && kind != "ClusterRoleBinding" || text(binding, "subjects", 0, "name") != account ||
			text(binding, "metadata", "annotations", "helm.sh/hook") != "" {
			continue
		}
		for _, role := range all {
			if text(role, "kind") == text(binding, "roleRef", "kind") && text(role, "metadata", "name") == text(binding, "roleRef", "name") &&
				(text(role, "kind") == "ClusterRole" || text(role, "metadata", "namespace") == namespace) {
				may[namespace] = append(may[namespace], permissions(role)...)
			}
		}
	}
	for namespace := range may {
		slices.Sort(may[namespace])
	}
	return may
}

// permissions are the single things that a role allows, "create events.k8s.io/events".
func permissions(role object) (all []string) {
	for _, rule := range list(role, "rules") {
		names := ""
		for _, name := range list(rule, "resourceNames") {
			names += fmt.Sprint(" ", name)
		}
		for _, group := range list(rule, "apiGroups") {
			for _, resource := range list(rule, "resources") {
				for _, verb := range list(rule, "verbs") {
					all = append(all, fmt.Sprintf("%v %v/%v%s", verb, group, resource, names))
				}
			}
		}
	}
	return all
}

// variable is the value of an environment variable of a workload's first container; "" where it has none.
func variable(workload object, name string) string {
	for _, e := range list(container(workload), "env") {
		if text(e, "name") == name {
			return text(e, "value")
		}
	}
	return ""
}

// container is the first container of a workload.
func container(o object) any {
	if o == nil {
		return nil
	}
	return at(o, "spec", "template", "spec", "containers", 0)
}

func TestEveryValueIsDescribed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\S+)` \\| `.*` \\| (.*) ?\\|$").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 100 {
		t.Errorf("the table of values has %d rows", len(rows))
	}
	for _, row := range rows {
		if strings.TrimSpace(row[2]) == "" {
			t.Errorf("%s has no line \"# -- …\" in values.yaml that describes it", row[1])
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
