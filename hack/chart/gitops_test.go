package chart_test

import (
	"os"
	"path/filepath"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// configured reads a file of the folder config.
func configured(t *testing.T, path ...string) []object {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{chartDir(t), "..", "..", "config"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, string(content))
}

// What Argo CD and Flux are given is rendered, as they render it: without asking the cluster. Two renderings
// are the same, or each synchronization would change something.
func TestGitOpsExamplesAreRendered(t *testing.T) {
	for name, values := range map[string]any{
		"argocd": at(configured(t, "argocd", "application.yaml")[0], "spec", "source", "helm", "valuesObject"),
		"flux":   at(configured(t, "flux", "release.yaml")[1], "spec", "values"),
	} {
		content, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		flags := []string{"template", "registrar", chartDir(t), "--namespace", "registrar", "--values", file, "--include-crds"}
		first, err := run(t, helm(t), flags...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		second, err := run(t, helm(t), flags...)
		check.NoError(t, err, "%s", name)
		check.True(t, "two renderings are the same", first == second, "%s", name)
		all := objects(t, first)
		check.True(t, "there is the API", find(all, "Deployment", "registrar-api-server") != nil, "%s", name)
		check.True(t, "no Secret is drawn", find(all, "Secret", "registrar-keys") == nil, "%s", name)
	}
}

// The examples name the chart, and the version, that this is.
func TestGitOpsExamplesNameTheChart(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(chartDir(t), "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	chart := objects(t, string(content))[0]
	source := at(configured(t, "argocd", "application.yaml")[0], "spec", "source")
	check.Equal(t, "Argo CD's chart", text(source, "chart"), text(chart, "name"), "")
	check.Equal(t, "Argo CD's version", text(source, "targetRevision"), text(chart, "version"), "")
	repository := configured(t, "flux", "release.yaml")[0]
	check.Equal(t, "Flux's version", text(repository, "spec", "ref", "tag"), text(chart, "version"), "")
	check.Equal(t, "where both find it", text(repository, "spec", "url"), "oci://"+text(source, "repoURL")+"/"+text(source, "chart"), "")
	if path := text(configured(t, "flux", "tenant.yaml")[1], "spec", "path"); path != "" {
		_, err := os.Stat(filepath.Join(chartDir(t), "..", "..", path))
		check.NoError(t, err, "the tenant's path")
	}
}

// What the tenant's Kustomization applies is all in its namespace, where its operator's rights are.
func TestFluxRendersATenant(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		nottested.Skip(t, "KUBEBUILDER_ASSETS names no Kubernetes; make test prepares one")
	}
	tenant := configured(t, "flux", "tenant.yaml")[1]
	out, err := run(t, filepath.Join(assets, "kubectl"), "kustomize", filepath.Join(chartDir(t), "..", "..", text(tenant, "spec", "path")))
	check.NoError(check.Now(t), err, "")
	all := objects(t, out)
	check.True(t, "there are a URL and a key", len(all) >= 2, "%s", out)
	for _, o := range all {
		check.Equal(t, "the namespace", text(o, "metadata", "namespace"), text(tenant, "spec", "targetNamespace"), "%v", o["kind"])
	}
}

// Argo CD runs the script on the resource; what it makes of conditions is what Flux makes of them.
func TestArgoCDKnowsTheHealthOfAWebhookEndpoint(t *testing.T) {
	script := text(configured(t, "argocd", "health.yaml")[0], "data", "resource.customizations.health.registrar.dev_WebhookEndpoint")
	for _, kind := range []string{"Organization", "ApiKey", "RosterSource", "WebhookReplay"} {
		check.Equal(t, "the script", text(configured(t, "argocd", "health.yaml")[0], "data", "resource.customizations.health.registrar.dev_"+kind), script, "of %s", kind)
	}
	ready := func(status, reason string) object {
		return object{"type": "Ready", "status": status, "reason": reason, "message": "what is so"}
	}
	stalled := object{"type": "Stalled", "status": "True", "reason": "x", "message": "what is so"}
	status := func(generation int, conditions ...any) object {
		return object{"observedGeneration": generation, "conditions": conditions}
	}
	for name, c := range map[string]struct {
		status   object
		deleting bool
		want     string
	}{
		"new":                  {nil, false, "Progressing"},
		"no conditions":        {object{"observedGeneration": 2}, false, "Progressing"},
		"changed since":        {status(1, ready("True", "Registered")), false, "Progressing"},
		"registered":           {status(2, ready("True", "Registered")), false, "Healthy"},
		"suspended":            {status(2, ready("True", "Suspended")), false, "Suspended"},
		"waiting":              {status(2, ready("False", "OrganizationNotFound")), false, "Progressing"},
		"somebody has to act":  {status(2, ready("False", "SwitchedOff"), stalled), false, "Degraded"},
		"being deleted":        {status(2, ready("False", "Deleting")), true, "Progressing"},
		"stalled, and deleted": {status(2, ready("False", "SwitchedOff"), stalled), true, "Progressing"},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := object{"generation": 2}
			if c.deleting {
				metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
			}
			resource := object{"metadata": metadata}
			if c.status != nil {
				resource["status"] = c.status
			}
			health := runLua(t, script, resource)
			check.Equal(t, "status", health.RawGetString("status").String(), c.want, "")
			check.True(t, "there is a message", lua.LVAsString(health.RawGetString("message")) != "", "")
		})
	}
}

// runLua gives the table that a script returns, which finds the resource in obj, with the libraries that Argo
// CD opens.
func runLua(t *testing.T, script string, resource object) *lua.LTable {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable} {
		l.Push(l.NewFunction(open))
		l.Call(0, 0)
	}
	l.SetGlobal("obj", toLua(l, resource))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	health, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s", l.Get(-1))
	}
	return health
}

func toLua(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case object:
		table := l.NewTable()
		for key, value := range v {
			table.RawSetString(key, toLua(l, value))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, value := range v {
			table.Append(toLua(l, value))
		}
		return table
	case int:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	}
	return lua.LNil
}
