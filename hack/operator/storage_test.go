package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

const endpointDefinition = "webhookendpoints.registrar.dev"

// kept reads from etcd in which version the API server keeps each WebhookEndpoint.
func (w *world) kept(t *testing.T) map[string]string {
	t.Helper()
	const from, to = "/registry/registrar.dev/webhookendpoints/", "/registry/registrar.dev/webhookendpoints0"
	question, err := json.Marshal(map[string][]byte{"key": []byte(from), "range_end": []byte(to)})
	check.NoError(check.Now(t), err, "")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.cluster.EtcdURL()+"/v3/kv/range", bytes.NewReader(question))
	check.NoError(check.Now(t), err, "")
	res, err := http.DefaultClient.Do(req)
	check.NoError(check.Now(t), err, "")
	defer res.Body.Close()
	var answer struct {
		KVs []struct{ Key, Value []byte }
	}
	check.NoError(check.Now(t), json.NewDecoder(res.Body).Decode(&answer), "")
	kept := map[string]string{}
	for _, kv := range answer.KVs {
		var o struct{ APIVersion string }
		check.NoError(check.Now(t), json.Unmarshal(kv.Value, &o), "%s", kv.Key)
		kept[strings.TrimPrefix(string(kv.Key), from)] = strings.TrimPrefix(o.APIVersion, "registrar.dev/")
	}
	return kept
}

// store has the API server store WebhookEndpoints in a version from now on.
func (w *world) store(t *testing.T, version string, probe *v1beta1.WebhookEndpoint) {
	t.Helper()
	if version == "v1beta1" {
		w.run(t, "apply", "-k", "../../config/crd")
	} else {
		w.run(t, "patch", "customresourcedefinition", endpointDefinition, "--type=json", "--patch",
			`[{"op": "replace", "path": "/spec/versions/0/storage", "value": true}, {"op": "replace", "path": "/spec/versions/1/storage", "value": false}]`)
	}
	n := 0
	w.until(t, "what is written is stored in "+version, func() bool { // the API server takes a moment to notice
		n++
		annotate(t, w, probe, "test/storage", version+strconv.Itoa(n))
		return w.kept(t)[probe.Namespace+"/"+probe.Name] == version
	})
}

func (w *world) storedVersions(t *testing.T) string {
	t.Helper()
	return w.run(t, "get", "customresourcedefinition", endpointDefinition, "--output=jsonpath={.status.storedVersions[*]}")
}

// Resources from a release that stored v1alpha1 are brought to the version of today, after which the older one can go.
func TestResourcesOfAnOlderReleaseAreMigrated(t *testing.T) {
	w := theWorld(t)
	t.Cleanup(func() {
		if _, err := w.cluster.Kubectl(context.WithoutCancel(t.Context()), "apply", "-k", "../../config/crd"); err != nil {
			t.Error(err)
		}
	})
	w.tenant(t, "stored")
	probe := endpoint("stored", "probe")
	w.create(t, probe)
	w.store(t, "v1alpha1", probe)
	var all []*v1beta1.WebhookEndpoint
	for i := range 5 {
		e := endpoint("stored", fmt.Sprintf("url-%d", i))
		w.create(t, e)
		all = append(all, e)
	}
	for _, e := range all {
		w.awaitRegistered(t, e)
	}
	w.store(t, "v1beta1", probe)
	check.Equal(t, "the stored versions", w.storedVersions(t), "v1beta1 v1alpha1", "")
	for _, e := range all {
		check.Equal(t, "the version kept of "+e.Name, w.kept(t)["stored/"+e.Name], "v1alpha1", "written before the upgrade")
	}

	// Who may not do it is told what is missing.
	w.run(t, "create", "clusterrolebinding", "storage-viewer", "--clusterrole=view", "--user=storage-viewer")
	viewer, err := w.cluster.User("storage-viewer", "system:authenticated")
	check.NoError(check.Now(t), err, "")
	said, err := w.plugin(t.Context(), viewer, "migrate").CombinedOutput()
	check.True(t, "a viewer cannot migrate", err != nil, "%s", said)
	check.Contains(t, "the error", string(said), "ask a cluster administrator", "")

	out := w.must(t, "migrate", "--chunk-size", "2")
	check.Contains(t, "what it says", out, "nothing is stored in v1alpha1 any more", "")
	check.Contains(t, "what it says of others", out, "apikeys.registrar.dev: is stored in v1beta1 alone", "")
	for name, version := range w.kept(t) {
		check.Equal(t, "the version kept of "+name, version, "v1beta1", "")
	}
	check.Equal(t, "the stored versions", w.storedVersions(t), "v1beta1", "")
	for _, e := range all {
		before := e.DeepCopy()
		check.NoError(check.Now(t), w.client.Get(t.Context(), client.ObjectKeyFromObject(e), e), "")
		check.Equal(t, "the generation", e.Generation, before.Generation, "the resource was changed")
		check.True(t, "what it says is the same", conditionOf(e, v1beta1.ConditionReady).LastTransitionTime == conditionOf(before, v1beta1.ConditionReady).LastTransitionTime, "")
	}

	// Again, it writes nothing.
	versions := w.versions(t)
	check.Contains(t, "what it says", w.must(t, "migrate"), endpointDefinition+": is stored in v1beta1 alone", "")
	for key, version := range w.versions(t) {
		check.Equal(t, "the resourceVersion of "+key, version, versions[key], "")
	}

	// A definition without v1alpha1 has them all.
	w.run(t, "patch", "customresourcedefinition", endpointDefinition, "--type=json", "--patch", `[{"op": "remove", "path": "/spec/versions/0"}]`)
	w.until(t, "v1alpha1 is served no more", func() bool {
		_, err := w.cluster.Kubectl(t.Context(), "get", "--raw", "/apis/registrar.dev/v1alpha1/webhookendpoints")
		return err != nil
	})
	check.Equal(t, "number of resources", len(w.versions(t)), len(versions), "without v1alpha1")
	change(t, w, all[0], func(e *v1beta1.WebhookEndpoint) { e.Spec.TimeZone = "Asia/Kolkata" })
	w.awaitRegistered(t, all[0])
}
