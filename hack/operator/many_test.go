package operator_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

const (
	manyNamespaces = 100
	manyInEach     = 10
)

// A restart looks at everything and writes nothing: what is right already is left alone.
func TestAThousandResourcesAndARestart(t *testing.T) {
	w := theWorld(t)
	for i := range manyNamespaces {
		w.tenant(t, fmt.Sprintf("many-%d", i))
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	create, creating := errgroup.WithContext(ctx)
	create.SetLimit(8)
	for i := range manyNamespaces {
		create.Go(func() error {
			for j := range manyInEach {
				if err := w.client.Create(creating, endpoint(fmt.Sprintf("many-%d", i), fmt.Sprintf("url-%d", j))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	ready := map[string]bool{}
	w.follow(ctx, &v1beta1.WebhookEndpointList{}, func(c watch.Event) bool {
		e, ok := c.Object.(*v1beta1.WebhookEndpoint)
		if ok && strings.HasPrefix(e.Namespace, "many-") {
			if r := conditionOf(e, v1beta1.ConditionReady); r != nil && r.Reason == v1beta1.ReasonRegistered {
				ready[e.Namespace+"/"+e.Name] = true
			}
		}
		return len(ready) == manyNamespaces*manyInEach
	})
	if err := create.Wait(); check.NoError(check.Now(t), err, "%d of %d are Ready after %s: %v", len(ready), manyNamespaces*manyInEach, time.Since(began), err) {
		check.True(check.Now(t), "number of ready endpoints is at least manyNamespaces*manyInEach", len(ready) >= manyNamespaces*manyInEach, "%d of %d are Ready after %s: %v", len(ready), manyNamespaces*manyInEach, time.Since(began), err)
	}
	t.Logf("%d resources over %d namespaces were created and Ready after %s", len(ready), manyNamespaces, time.Since(began).Round(time.Millisecond))

	token := w.token(t, w.reader(t, "scraper"))
	w.awaitIdle(t, token)
	before := w.versions(t)
	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	for w.visits(t, token) < float64(len(before)) {
		w.awaitIdle(t, token)
	}
	t.Logf("a new operator has looked at all %d resources after %s", len(before), time.Since(began).Round(time.Millisecond))
	if _, body := w.metrics(t, token); regexp.MustCompile(`rest_client_requests_total\{[^}]*method="PATCH"`).MatchString(body) {
		t.Error("a restarted operator has patched something")
	}
	for key, version := range w.versions(t) {
		if before[key] != version {
			t.Errorf("%s was written by a restart: version %s, was %s", key, version, before[key])
		}
	}
}

// versions are the resourceVersions of all WebhookEndpoints.
func (w *world) versions(t *testing.T) map[string]string {
	t.Helper()
	var all v1beta1.WebhookEndpointList
	if err := w.client.List(t.Context(), &all, client.InNamespace("")); err != nil {
		t.Fatal(err)
	}
	versions := make(map[string]string, len(all.Items))
	for _, e := range all.Items {
		versions[e.Namespace+"/"+e.Name] = e.ResourceVersion
	}
	return versions
}

// reader makes an account that may read the metrics.
func (w *world) reader(t *testing.T, account string) string {
	t.Helper()
	w.run(t, "create", "serviceaccount", "-n", "default", account)
	w.run(t, "create", "clusterrolebinding", account, "--clusterrole=registrar-operator-metrics-reader", "--serviceaccount=default:"+account)
	return account
}

// visits counts the resources that the operator has looked at without a fault.
func (w *world) visits(t *testing.T, token string) float64 {
	return w.metric(t, token, `controller_runtime_reconcile_total{controller="webhookendpoint",result="requeue_after"}`)
}

// awaitIdle waits until nothing waits to be looked at.
func (w *world) awaitIdle(t *testing.T, token string) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-tick.C {
		if w.metric(t, token, `workqueue_depth{controller="webhookendpoint",name="webhookendpoint",priority="0"}`) == 0 &&
			w.metric(t, token, `workqueue_depth{controller="webhookendpoint",name="webhookendpoint",priority="-100"}`) == 0 &&
			w.metric(t, token, `controller_runtime_active_workers{controller="webhookendpoint"}`) == 0 {
			return
		}
	}
	t.Fatalf("the operator is busy still after %s", limit)
}

// metric is a sample's value; 0 before there is one.
func (w *world) metric(t *testing.T, token, sample string) float64 {
	t.Helper()
	status, body := w.metrics(t, token)
	if status != 200 {
		t.Fatalf("/metrics: %d", status)
	}
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(sample) + ` (\S+)$`).FindStringSubmatch(body)
	if found == nil {
		return 0
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
