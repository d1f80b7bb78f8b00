package operator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

func TestTheAPIServerComesBack(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "apiserver")
	e := endpoint("apiserver", "before")
	w.create(t, e)
	w.awaitRegistered(t, e)
	if err := w.cluster.APIServer.Kill(); err != nil {
		t.Fatal(err)
	}
	w.fail(t, e, webhook.SwitchOffAfter) // while nobody can be notified
	if err := w.cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitLeader(t)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSwitchedOff)
	after := endpoint("apiserver", "after")
	w.create(t, after)
	w.awaitRegistered(t, after)
}

// awaitLeader waits until the operator's lease is renewed. One that could not renew it for too long has ended, and is started
// again, as its Deployment would do.
func (w *world) awaitLeader(t *testing.T) {
	t.Helper()
	back := time.Now()
	w.until(t, "the lease is renewed", func() bool {
		select {
		case <-w.operator.Exited():
			check.NoError(check.Now(t), stack.StartReady(t.Context(), w.operator.Program, w.operator.private), "")
		default:
		}
		renewed := w.lease(t).Spec.RenewTime
		return renewed != nil && renewed.After(back)
	})
}

func TestPostgreSQLComesBack(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "postgres")
	e, leaving := endpoint("postgres", "before"), endpoint("postgres", "leaving")
	w.create(t, e, leaving)
	w.awaitRegistered(t, e)
	w.awaitRegistered(t, leaving)
	version := e.ResourceVersion
	if err := w.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	during := endpoint("postgres", "during")
	w.create(t, during)
	awaitReason(t, w, during, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonDatabaseUnavailable)
	if conditionOf(during, v1beta1.ConditionStalled) != nil {
		t.Error("it is Stalled, though waiting helps")
	}
	if err := w.client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	await(t, w, leaving, "waiting to be deleted", func(e *v1beta1.WebhookEndpoint) bool {
		c := conditionOf(e, v1beta1.ConditionReady)
		return c != nil && c.Reason == v1beta1.ReasonDeleting && strings.Contains(c.Message, "10m0s")
	})
	w.restartPostgres(t)
	w.awaitRegistered(t, during)
	w.awaitGone(t, leaving)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(e), e); check.NoError(t, err, "the outage was written to a resource that it did not concern: version %s, was %s (%v)", e.ResourceVersion, version, err) {
		check.Equal(t, "e.ResourceVersion", e.ResourceVersion, version, "the outage was written to a resource that it did not concern: version %s, was %s (%v)", e.ResourceVersion, version, err)
	}
}

// restartPostgres starts it, and lets the tests forget their connections of before.
func (w *world) restartPostgres(t *testing.T) {
	t.Helper()
	if err := w.postgres.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.webhooks.DB.Reset()
}

// A database that is gone for good must not keep resources, and what is left behind is
// swept when it was not gone for good after all.
func TestADeletionDoesNotWaitForEver(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "impatient")
	w.instead(t, "hasty", "DELETION_PATIENCE=1s")
	e := endpoint("impatient", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	if err := w.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, e)
	w.awaitEvent(t, e, "Warning", "Abandoned")
	w.restartPostgres(t)
	if !w.awaitRemoved(t, "kubernetes/test/impatient/results") { // whoever hears PostgreSQL again sweeps
		t.Error("the URL was not swept")
	}
}

// A sweep that fails is not left for the next hour.
func TestAFailedSweepIsMadeAgain(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "swept")
	e := endpoint("swept", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	stored := w.stored(t, e)
	check.NoError(check.Now(t), w.operator.Stop(), "")
	change(t, w, e, func(e *v1beta1.WebhookEndpoint) { e.Finalizers = nil })
	w.deleted(t, e)

	tx, err := w.webhooks.DB.Begin(t.Context())
	check.NoError(check.Now(t), err, "")
	unlock := sync.OnceFunc(func() { check.NoError(t, tx.Rollback(context.WithoutCancel(t.Context())), "") })
	defer unlock()
	_, err = tx.Exec(t.Context(), `SELECT FROM webhook_endpoints WHERE id = $1 FOR UPDATE`, stored.ID)
	check.NoError(check.Now(t), err, "")
	check.NoError(check.Now(t), stack.StartReady(t.Context(), w.operator.Program, w.operator.private), "")
	w.until(t, "a sweep fails", func() bool { return strings.Contains(w.operator.LogTail(200), "sweeping what has no resource failed") })
	unlock()
	check.True(t, "the URL is removed", w.awaitRemoved(t, "kubernetes/test/swept/results"), "")
}

// A PostgreSQL that is frozen refuses nothing: connections stay open, and nobody answers. It must hold
// neither the workers, of which there are 8, nor a deletion.
func TestAFrozenPostgreSQLHoldsNobody(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "frozen")
	w.tenant(t, "frozen-too")
	w.instead(t, "frozen", "DELETION_PATIENCE=2s")
	leaving := endpoint("frozen", "leaving")
	w.create(t, leaving)
	w.awaitRegistered(t, leaving)

	if err := w.postgres.Freeze(); err != nil {
		t.Fatal(err)
	}
	thaw := sync.OnceFunc(func() {
		if err := w.postgres.Thaw(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	var during []*v1beta1.WebhookEndpoint
	for _, namespace := range []string{"frozen", "frozen-too"} {
		for n := range 6 {
			during = append(during, endpoint(namespace, fmt.Sprintf("during-%d", n)))
		}
	}
	for _, e := range during {
		w.create(t, e)
	}
	if err := w.client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	for _, e := range during {
		awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonDatabaseUnavailable)
	}
	w.awaitGone(t, leaving)
	w.awaitEvent(t, leaving, "Warning", "Abandoned")

	thaw()
	for _, e := range during {
		w.awaitRegistered(t, e)
	}
	if !w.awaitRemoved(t, "kubernetes/test/frozen/leaving") {
		t.Error("the URL was not swept")
	}
}

// awaitRemoved asks PostgreSQL until the URL is gone.
func (w *world) awaitRemoved(t *testing.T, managedBy string) bool {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-tick.C {
		if _, err := w.webhooks.FindManaged(t.Context(), managedBy); fault.KindOf(err) == fault.NotFound {
			return true
		}
	}
	return false
}

func TestAnotherOperatorTakesOver(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "takeover")
	e := endpoint("takeover", "before")
	w.create(t, e)
	w.awaitRegistered(t, e)
	second := w.begin(t, "second")
	leader := w.holder(t)
	if err := w.operator.Kill(); err != nil {
		t.Fatal(err)
	}
	after := endpoint("takeover", "after")
	w.create(t, after)
	w.fail(t, e, webhook.SwitchOffAfter)
	w.awaitRegistered(t, after)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSwitchedOff)
	if now := w.holder(t); now == leader {
		t.Errorf("%s still holds the lease", now)
	}

	// An operator that is asked to end gives the lease back.
	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	last := endpoint("takeover", "last")
	w.create(t, last)
	w.awaitRegistered(t, last)
}

// With config/namespaces, which lists them, the operator has rights in these and serves these.
func TestAnOperatorOfSomeNamespaces(t *testing.T) {
	w := theWorld(t)
	for _, name := range []string{"partners", "school-1", "unlisted"} {
		w.tenant(t, name)
	}
	before := endpoint("partners", "before")
	w.create(t, before)
	w.awaitRegistered(t, before)
	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	w.run(t, "delete", "-f", "../../config/cluster-wide/role_binding.yaml")
	w.run(t, "apply", "-k", "../../config/namespaces")
	t.Cleanup(func() {
		if _, err := w.cluster.Kubectl(context.WithoutCancel(t.Context()), "apply", "-k", "../../config/cluster-wide"); err != nil {
			t.Error(err)
		}
	})
	for _, of := range []string{"secrets", "webhookendpoints.registrar.dev"} {
		for namespace, want := range map[string]string{"partners": "yes", "school-1": "yes", "unlisted": "no", "registrar-system": "no", "kube-system": "no"} {
			w.until(t, "whether the operator may list "+of+" in "+namespace+": "+want, func() bool { // the API server hears of a change a moment after it
				got, _ := w.cluster.Kubectl(t.Context(), "auth", "can-i", "list", of, "--namespace="+namespace, "--as="+operatorAccount) // an error says no
				return strings.Fields(got)[0] == want
			})
		}
	}

	limited := w.begin(t, "limited", "WATCH_NAMESPACES="+w.watched(t))
	ours, theirs := endpoint("school-1", "ours"), endpoint("unlisted", "theirs")
	w.create(t, theirs, ours)
	w.awaitRegistered(t, ours)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); check.NoError(t, err, "a resource of another namespace was touched (%v): %+v", err, theirs) {
		check.Equal(t, "number of finalizers and conditions", len(theirs.Finalizers)+len(theirs.Status.Conditions), 0, "a resource of another namespace was touched (%v): %+v", err, theirs)
	}
	if err := w.client.Delete(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, ours)
	if err := limited.Stop(); err != nil {
		t.Fatal(err)
	}
	w.run(t, "apply", "-k", "../../config/cluster-wide")
	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	w.awaitRegistered(t, theirs)
}

// What an operator has registered can be deleted when the operator is gone, and one that comes again finds
// what has stayed.
func TestAnUninstallHoldsNothing(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "uninstall")
	stays, goes, last := endpoint("uninstall", "stays"), endpoint("uninstall", "goes"), endpoint("uninstall", "last")
	w.create(t, stays, goes, last)
	for _, e := range []*v1beta1.WebhookEndpoint{stays, goes, last} {
		w.awaitRegistered(t, e)
	}
	before := w.stored(t, stays)
	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), goes); err != nil { // nobody is there to do it
		t.Fatal(err)
	}
	out := w.uninstall(t, "uninstall", nil)
	check.Contains(t, "what it says", out, fmt.Sprintf("uninstall/stays stays with its URL (id %d).", before.ID), "")
	check.Contains(t, "what it says", out, " 0 leave their URLs in PostgreSQL, 0 keep their finalizers.", "")
	w.awaitGone(t, goes)
	if !w.awaitRemoved(t, "kubernetes/test/uninstall/goes") {
		t.Error("the URL of a resource that was being deleted is left")
	}
	if err := w.client.Delete(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, last) // though no operator runs

	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	await(t, w, stays, "held again", func(e *v1beta1.WebhookEndpoint) bool { return len(e.Finalizers) == 1 })
	w.awaitRegistered(t, stays)
	check.Equal(t, "the URL's id", w.stored(t, stays).ID, before.ID, "after another operator has started")
}

// An uninstall ends without PostgreSQL too, and says what it leaves there.
func TestAnUninstallWithoutPostgreSQL(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "uninstall-alone")
	e := endpoint("uninstall-alone", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	stored := w.stored(t, e)
	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	nowhere := []string{"DATABASE_URL=postgres://nobody@127.0.0.1:1/nowhere", "WATCH_NAMESPACES=uninstall-alone"}
	out := w.uninstall(t, "uninstall-alone", nowhere, "--delete")
	check.Contains(t, "what it says", out, fmt.Sprintf("uninstall-alone/results leaves its URL (id %d) in PostgreSQL", stored.ID), "")
	if err := w.client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, e)
	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	if !w.awaitRemoved(t, "kubernetes/test/uninstall-alone/results") {
		t.Error("the URL was not swept")
	}
}

// uninstall runs `operator uninstall` with the rights of the operator, and gives what it says.
func (w *world) uninstall(t *testing.T, name string, environment []string, args ...string) string {
	t.Helper()
	command, err := w.newOperator(t.Context(), name, environment...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command.Path, append([]string{"uninstall"}, args...)...)
	cmd.Env = command.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// An operator whose rights are gone must not count as one that works.
func TestAnOperatorThatCannotWatchIsNotReady(t *testing.T) {
	w := theWorld(t)
	w.awaitReadiness(t, http.StatusOK)
	w.run(t, "delete", "-f", "../../config/cluster-wide/role_binding.yaml")
	t.Cleanup(func() {
		if _, err := w.cluster.Kubectl(context.WithoutCancel(t.Context()), "apply", "-k", "../../config/cluster-wide"); err != nil {
			t.Error(err)
		}
	})
	w.awaitReadiness(t, http.StatusInternalServerError)
	w.run(t, "apply", "-k", "../../config/cluster-wide")
	w.awaitReadiness(t, http.StatusOK)
	w.tenant(t, "watched-again")
	e := endpoint("watched-again", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
}

// awaitReadiness asks until /readyz answers with the status.
func (w *world) awaitReadiness(t *testing.T, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err := w.operator.Await(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(w.operator.private)+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != want {
			return fmt.Errorf("status %d, want %d", res.StatusCode, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// watched is what the operator's Deployment has for WATCH_NAMESPACES.
func (w *world) watched(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(w.run(t, "get", "deployment/registrar-operator", "--namespace=registrar-system",
		`--output=jsonpath={.spec.template.spec.containers[0].env[?(@.name=="WATCH_NAMESPACES")].value}`))
}

// The operator needs no session of PostgreSQL.
func TestAnOperatorBehindPgBouncer(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "pooled")
	server, err := stack.EnsurePgBouncer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	user, err := stack.ServiceUser()
	if err != nil {
		t.Fatal(err)
	}
	port, err := stack.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pooler, err := stack.StartPgBouncer(t.Context(), stack.PgBouncerOptions{Server: server, Port: port, User: user,
		LogFile: filepath.Join(w.dir, "pgbouncer.log"), DatabaseURL: w.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pooler.Close(); err != nil {
			t.Error(err)
		}
	})
	w.instead(t, "pooled", "DATABASE_URL="+stack.RoleURL(pooler.URL(), "operator"))
	e, leaving := endpoint("pooled", "results"), endpoint("pooled", "leaving")
	w.create(t, e, leaving)
	w.awaitRegistered(t, e)
	w.awaitRegistered(t, leaving)
	w.fail(t, e, webhook.SwitchOffAfter)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSwitchedOff)
	if err := w.client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, leaving)
}

// An operator's visits are traced, with their statements, and the log of one that failed leads to its trace.
func TestVisitsAreTraced(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "traced")
	exported := make(chan []byte, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			select {
			case exported <- body:
			case <-r.Context().Done(): // there are enough
			}
		}
	}))
	defer collector.Close()
	defer collector.CloseClientConnections() // before, since it is for them that Close waits
	traced := w.instead(t, "traced", "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_SCHEDULE_DELAY=100")
	e := endpoint("traced", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	wanted := []string{"visit WebhookEndpoint", "INSERT"}
	for deadline := time.After(limit); len(wanted) > 0; {
		select {
		case body := <-exported:
			wanted = slices.DeleteFunc(wanted, func(span string) bool { return bytes.Contains(body, []byte(span)) })
		case <-deadline:
			t.Fatalf("no spans %v", wanted)
		}
	}

	w.tenant(t, "traced-refused")
	w.run(t, "create", "quota", "none", "--namespace=traced-refused", "--hard=secrets=0")
	w.run(t, "wait", "--namespace=traced-refused", "--for=jsonpath={.status.hard.secrets}=0", "--timeout=60s", "resourcequota/none")
	w.awaitRefusal(t, "traced-refused")
	refused := endpoint("traced-refused", "results")
	w.create(t, refused)
	awaitReason(t, w, refused, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonReconcileError)
	w.until(t, "the log of the failed visit names its trace", func() bool {
		for line := range strings.Lines(traced.LogTail(200)) {
			if strings.Contains(line, `"a visit failed"`) && strings.Contains(line, `"namespace":"traced-refused"`) {
				return strings.Contains(line, `"trace_id":"`)
			}
		}
		return false
	})
	w.deleted(t, refused) // or the operator tries it again for as long as the tests last
}

func (w *world) lease(t *testing.T) (lease coordinationv1.Lease) {
	t.Helper()
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "registrar-system", Name: "registrar-operator"}, &lease); err != nil {
		t.Fatal(err)
	}
	return lease
}

func (w *world) holder(t *testing.T) string {
	t.Helper()
	lease := w.lease(t)
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func TestTheMetricsAreForThoseWhoMay(t *testing.T) {
	w := theWorld(t)
	w.reader(t, "prometheus")
	w.run(t, "create", "serviceaccount", "-n", "default", "curious")
	for token, want := range map[string]int{
		"":                       http.StatusUnauthorized,
		"made-up":                http.StatusUnauthorized,
		w.token(t, "curious"):    http.StatusForbidden,
		w.token(t, "prometheus"): http.StatusOK,
	} {
		for range 2 { // the second answer is remembered
			got, body := w.metrics(t, token)
			check.Equal(t, "status", got, want, "%s", body)
			if want == http.StatusOK {
				check.Contains(t, "the metrics", body, "registrar_postgres_pool_connections", "to one who may read them")
			}
		}
	}
}

// The namespace enforces the restricted pod security standard, so the API server says
// whether the operator's pods keep to it.
func TestThePodsAreRestricted(t *testing.T) {
	w := theWorld(t)
	var d appsv1.Deployment
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "registrar-system", Name: "registrar-operator"}, &d); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.Namespace, pod.Name = "registrar-system", "tried"
	if err := w.client.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("config/manager's pod is refused: %v", err)
	}
	pod.Spec.SecurityContext.RunAsNonRoot = nil
	if err := w.client.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("the standard is not enforced: %v", err)
	}
}

func (w *world) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func (w *world) token(t *testing.T, account string) string {
	return w.run(t, "create", "token", "-n", "default", account)
}

// metrics asks for them; their server comes up a moment after the operator is ready.
func (w *world) metrics(t *testing.T, token string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	err := w.operator.Await(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+strconv.Itoa(w.operator.metrics)+"/metrics", nil)
		if err != nil {
			return err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		status, body = res.StatusCode, string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}
