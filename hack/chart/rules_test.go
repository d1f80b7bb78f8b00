package chart_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir(t), "files", "rules", "*.yaml"))
	check.NoError(check.Now(t), err, "no rules: %v", err)
	check.True(check.Now(t), "there are files", len(files) != 0, "no rules: %v", err)
	var all []rule
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Groups []struct{ Rules []rule } }
		if err := yaml.Unmarshal(content, &doc); err != nil {
			t.Fatal(err)
		}
		for _, g := range doc.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

// Every alert fires in the situation that it is for, and is quiet beside it.
func TestRulesByPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		nottested.Skip(t, "no promtool on PATH; Debian's package is called prometheus")
	}
	if out, err := run(t, promtool, "test", "rules", "testdata/rules.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestEveryAlertIsTestedAndHasARunbook(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var tests struct {
		Tests []struct {
			Alerts []struct {
				Name string `yaml:"alertname"`
				Exp  []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(content, &tests); err != nil {
		t.Fatal(err)
	}
	fires := map[string]bool{}
	for _, test := range tests.Tests {
		for _, a := range test.Alerts {
			fires[a.Name] = fires[a.Name] || len(a.Exp) > 0
		}
	}
	const base = "https://github.com/registrar-dev/registrar/blob/main/docs/runbooks/"
	runbooks := filepath.Join(chartDir(t), "..", "..", "docs", "runbooks")
	var pages []string
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if !fires[r.Alert] {
			t.Errorf("%s: no test in which it fires", r.Alert)
		}
		page := r.Alert + ".md"
		if !check.Equal(t, "runbook_url", r.Annotations["runbook_url"], base+page, "%s", r.Alert) {
			continue
		}
		pages = append(pages, page)
		if content, err := os.ReadFile(filepath.Join(runbooks, page)); check.NoError(t, err, "the runbook of %s", r.Alert) {
			title, _, _ := strings.Cut(string(content), "\n")
			check.Equal(t, "the title of the runbook", title, "# "+r.Alert, "%s", page)
		}
		check.OneOf(t, "severity", r.Labels["severity"], []string{"critical", "warning"}, "%s", r.Alert)
		check.True(t, "the alert has a summary", r.Annotations["summary"] != "", "%s", r.Alert)
		check.True(t, "the alert has a description", r.Annotations["description"] != "", "%s", r.Alert)
	}
	files, err := os.ReadDir(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(pages, f.Name()) {
			t.Errorf("docs/runbooks/%s belongs to no alert", f.Name())
		}
	}
}

// metric is a metric with what follows it, in an expression.
var metric = regexp.MustCompile(`(?:^|[^\w:"])((?:registrar[_:][\w:]+|controller_runtime\w+|workqueue\w+|up)\b(?:\{[^}]*\})?)`)

// An installation's alerts are of its own namespace: beside another one, absent() would be blind otherwise.
func TestAlertsAreOfTheirNamespace(t *testing.T) {
	for _, r := range rules(t) {
		found := metric.FindAllStringSubmatch(r.Expr, -1)
		check.True(t, "there are metrics", len(found) > 0, "%s", r.Expr)
		for _, m := range found {
			check.Contains(t, "a metric", m[1], `namespace=~".*"}`, "%s%s", r.Record, r.Alert)
		}
	}
	all := render(t, "--values", filepath.Join(chartDir(t), "ci", "everything-values.yaml"), "--namespace", "north")
	dir := t.TempDir()
	file := filepath.Join(dir, "north.yaml")
	must := func(err error) {
		t.Helper()
		check.NoError(check.Now(t), err, "")
	}
	text, err := yaml.Marshal(at(find(all, "PrometheusRule", "reg"), "spec"))
	must(err)
	check.Lacks(t, "the rules", string(text), `=~".*"`, "")
	must(os.WriteFile(file, text, 0o600))
	test := filepath.Join(dir, "test.yaml")
	must(os.WriteFile(test, []byte(`
rule_files: [north.yaml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'up{job="worker", namespace="south"}', values: "1x30"}
      - {series: 'registrar_redis_up{namespace="south"}', values: "0x30"}
      - {series: 'registrar_redis_up{namespace="north"}', values: "1x30"}
    promql_expr_test:
      - expr: count(ALERTS{alertname="RegistrarProgramAbsent", program="worker", namespace="north", alertstate="firing"})
        eval_time: 10m
        exp_samples: [{labels: "{}", value: 1}]
      - expr: ALERTS{alertname="RegistrarRedisAway"}
        eval_time: 10m
`), 0o600))
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		nottested.Skip(t, "no promtool on PATH; Debian's package is called prometheus")
	}
	if out, err := run(t, promtool, "test", "rules", test); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestDashboardsAreOfOneForm(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chartDir(t), "files", "dashboards", "*.json"))
	check.NoError(check.Now(t), err, "no dashboards: %v", err)
	check.True(check.Now(t), "there are files", len(files) != 0, "no dashboards: %v", err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			UID    string
			Panels []struct {
				ID      int
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if check.False(t, "the panel's id is taken", ids[p.ID], "%s: panel %d %q", file, p.ID, p.Title) &&
				check.True(t, "there is a title", p.Title != "", "%s: panel %d %q", file, p.ID, p.Title) {
				check.True(t, "there are targets", len(p.Targets) != 0, "%s: panel %d %q", file, p.ID, p.Title)
			}
			ids[p.ID] = true
			for _, target := range p.Targets {
				if !strings.Contains(target.Expr, `namespace=~"$namespace"`) {
					t.Errorf("%s: %q shows every namespace", file, target.Expr)
				}
			}
		}
	}
}

// Every promise has its error budget over all windows, on the dashboard and in the runbook.
func TestEveryPromiseHasABudget(t *testing.T) {
	dashboard, err := os.ReadFile(filepath.Join(chartDir(t), "files", "dashboards", "budgets.json"))
	check.NoError(check.Now(t), err, "")
	runbook, err := os.ReadFile(filepath.Join(chartDir(t), "..", "..", "docs", "runbooks", "RegistrarBudgetBurnsFast.md"))
	check.NoError(check.Now(t), err, "")
	windows := map[string][]string{}
	for _, r := range rules(t) {
		if window, ok := strings.CutPrefix(r.Record, "registrar:budget_burn:rate"); ok {
			windows[r.Labels["slo"]] = append(windows[r.Labels["slo"]], window)
		}
	}
	check.Slices(t, "the promises", slices.Sorted(maps.Keys(windows)), []string{"availability", "delivery", "latency", "mail", "plans"}, "")
	for promise, have := range windows {
		check.Slices(t, "the windows", have, []string{"5m", "30m", "1h", "6h", "3d"}, "%s", promise)
		check.Contains(t, "the dashboard", string(dashboard), `slo=\"`+promise+`\"`, "")
		check.Contains(t, "the runbook", string(runbook), "| `"+promise+"` |", "")
	}
}
