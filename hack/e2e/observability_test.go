package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// prometheus is a real one that reads the house's programs each second, with the chart's rules.
type prometheus struct {
	h    *house
	base string
}

// history is what it remembers of earlier, as OpenMetrics; "" is nothing. It reads others besides.
func startPrometheus(t *testing.T, h *house, rules []string, history string, others ...any) *prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		nottested.Skip(t, "no prometheus on PATH; Debian's package is called so")
	}
	dir, listen := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", port(t))
	job := func(name string, private int) map[string]any {
		return map[string]any{"job_name": name, "static_configs": []any{map[string]any{"targets": []string{fmt.Sprintf("127.0.0.1:%d", private)}}}}
	}
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": rules,
		"scrape_configs": append([]any{job("api-server", h.settings.Ports.APIPrivate), job("worker", h.settings.Ports.WorkerPrivate),
			job("webhook-sender", h.settings.Ports.SenderPrivate)}, others...),
	})
	must(t, err)
	if history != "" {
		past := filepath.Join(dir, "history")
		must(t, os.WriteFile(past, []byte(history), 0o600))
		if out, err := command(t, "promtool", "tsdb", "create-blocks-from", "openmetrics", past, filepath.Join(dir, "data")).CombinedOutput(); err != nil {
			t.Fatalf("promtool: %v\n%s", err, out)
		}
	}
	file := filepath.Join(dir, "prometheus.yaml")
	must(t, os.WriteFile(file, config, 0o600))
	p := stack.NewProgram(stack.Command{Name: "prometheus", Path: path, LogFile: filepath.Join(dir, "log"), Args: []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + listen}})
	must(t, p.Start())
	t.Cleanup(func() { _ = p.Stop() })
	return &prometheus{h, "http://" + listen}
}

// ask gives how many series a query has now; -1 while Prometheus cannot be asked.
func (p *prometheus) ask(query string) (series int, complaint string) {
	res, err := web.Get(p.base + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return -1, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return -1, err.Error()
	}
	if answer.Status != "success" {
		return -1, answer.Error
	}
	return len(answer.Data.Result), ""
}

// awaitData waits until every query has data; the queries are named for the complaint.
func (p *prometheus) awaitData(queries map[string]string) {
	p.h.t.Helper()
	missing, why := maps.Clone(queries), ""
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); len(missing) > 0 && time.Now().Before(deadline); <-tick.C {
		for name, query := range missing {
			n, complaint := p.ask(query)
			if n > 0 {
				delete(missing, name)
			} else if complaint != "" {
				why = complaint
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		p.h.t.Errorf("%s: no data for %s (%s)", name, missing[name], why)
	}
}

// dashboardQueries are the expressions of all panels, with Grafana's variables filled in.
func dashboardQueries(t *testing.T, chart string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "files", "dashboards", "*.json"))
	must(t, err)
	queries := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var d struct {
			Title  string
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
		}
		must(t, json.Unmarshal(text, &d))
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				queries[d.Title+" / "+panel.Title+" / "+target.RefID] = strings.NewReplacer("$namespace", ".*", "$__rate_interval", "5m").Replace(target.Expr)
			}
		}
	}
	if len(queries) < 30 {
		t.Fatalf("%d queries in %v", len(queries), files)
	}
	return queries
}

// alertQueries are the alerts' expressions: name and label program, to expression.
func alertQueries(t *testing.T, rules []string) map[string]string {
	t.Helper()
	queries := map[string]string{}
	for _, file := range rules {
		text, err := os.ReadFile(file)
		must(t, err)
		var doc struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr string
					Labels      map[string]string
				}
			}
		}
		must(t, yaml.Unmarshal(text, &doc))
		for _, g := range doc.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					queries[strings.TrimSpace(r.Alert+" "+r.Labels["program"])] = r.Expr
				}
			}
		}
	}
	return queries
}

// Every query of the dashboards has data from a Registrar that works.
func TestDashboardsFindTheirData(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	chart, rules := monitoring(t)
	_, operator := startOperator(t, h)
	p := startPrometheus(t, h, rules, "", operator)
	h.provision("asha@north-institute.org", http.StatusCreated)
	h.awaitEvents("asha@north-institute.org", 2)
	h.awaitMail("asha@north-institute.org", 1)
	p.awaitData(map[string]string{"first scrapes": "registrar_webhook_attempts_total and on() registrar_mail_attempts_total and on() registrar_http_requests_total"})
	// A receiver that fails leaves something that waits, and a cause.
	h.receiver.SetRespond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	for _, name := range []string{"ben", "cleo", "dora"} {
		h.provision(name+"@north-institute.org", http.StatusCreated)
		h.awaitMail(name+"@north-institute.org", 1)
	}
	p.awaitData(dashboardQueries(t, chart))
}

// startOperator starts an operator on a Kubernetes API server, with a resource that is Ready and one that is stalled, and
// returns it and how Prometheus reads it.
func startOperator(t *testing.T, h *house) (*stack.Program, any) {
	t.Helper()
	assets, err := stack.EnsureKube(t.Context(), os.Stderr)
	must(t, err)
	root, err := stack.Root()
	must(t, err)
	dir := t.TempDir()
	cluster, err := stack.StartCluster(t.Context(), stack.ClusterOptions{Bin: assets, Dir: filepath.Join(dir, "kube"), LogDir: dir,
		APIPort: port(t), Etcd: [2]int{port(t), port(t)}})
	must(t, err)
	t.Cleanup(func() { _ = cluster.Stop() })
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := cluster.Kubectl(t.Context(), args...)
		must(t, err)
		return strings.TrimSpace(out)
	}
	kubectl("apply", "-k", filepath.Join(root, "config", "cluster-wide"))
	must(t, cluster.AwaitDefinitions(t.Context()))
	kubectl("create", "serviceaccount", "--namespace=default", "prometheus")
	kubectl("create", "clusterrolebinding", "prometheus", "--clusterrole=registrar-operator-metrics-reader", "--serviceaccount=default:prometheus")
	token := kubectl("create", "token", "--namespace=default", "prometheus")
	kubeconfig, err := cluster.User("system:serviceaccount:registrar-system:registrar-operator", "system:serviceaccounts", "system:authenticated")
	must(t, err)
	keyset, err := os.ReadFile(h.settings.KeysetFile)
	must(t, err)
	private, secure := port(t), port(t)
	p := stack.NewProgram(stack.Command{Name: "operator", Path: filepath.Join(h.settings.Bin, "operator"), LogFile: filepath.Join(dir, "operator.log"),
		Env: append(os.Environ(), "KUBECONFIG="+kubeconfig, "LEASE_NAMESPACE=registrar-system", "CLUSTER_NAME=e2e", "ORGANIZATIONS=true",
			"DATABASE_URL="+h.settings.DatabaseURL, "REDIS_URL="+h.settings.RedisURL, "SECRET_KEYSET="+string(keyset),
			fmt.Sprintf("PRIVATE_ADDR=127.0.0.1:%d", private), fmt.Sprintf("METRICS_ADDR=127.0.0.1:%d", secure))})
	t.Cleanup(func() { _ = p.Stop() })
	must(t, stack.StartReady(t.Context(), p, private))
	manifest := filepath.Join(dir, "resources.yaml")
	must(t, os.WriteFile(manifest, []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: observed, labels: {registrar.dev/organization: observed}}
---
apiVersion: registrar.dev/v1beta1
kind: Organization
metadata: {name: observed}
spec: {slug: observed, name: Observed}
---
apiVersion: registrar.dev/v1beta1
kind: WebhookEndpoint
metadata: {name: refused, namespace: observed}
spec: {organization: observed, url: "https://169.254.169.254/"}
`), 0o600))
	kubectl("apply", "-f", manifest)
	kubectl("wait", "--for=condition=Ready", "--timeout=60s", "organization/observed")
	return p, map[string]any{"job_name": "operator", "scheme": "https", "tls_config": map[string]any{"insecure_skip_verify": true},
		"authorization":  map[string]any{"credentials": token},
		"static_configs": []any{map[string]any{"targets": []string{fmt.Sprintf("127.0.0.1:%d", secure)}}}}
}

// monitoring finds the chart and its files of rules.
func monitoring(t *testing.T) (chart string, rules []string) {
	t.Helper()
	root, err := stack.Root()
	must(t, err)
	chart = filepath.Join(root, "charts", "registrar")
	rules, err = filepath.Glob(filepath.Join(chart, "files", "rules", "*.yaml"))
	must(t, err)
	return chart, rules
}
