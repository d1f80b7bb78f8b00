package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
)

// limit is how long anything that is waited for may take. It is no measure of speed.
const limit = 2 * time.Minute

// world is a real Kubernetes API server, a real PostgreSQL, and an operator between them
// that may do what config/rbac lets it and nothing else.
type world struct {
	dir      string
	postgres *stack.Postgres
	url      string // of the database
	keyset   string
	cluster  *stack.Cluster
	operator *process
	client   client.WithWatch // may do everything
	keeper   webhook.Keeper
}

// process is an operator that runs as a process of its own.
type process struct {
	*stack.Program

	private, metrics int // ports
}

var worldOnce = sync.OnceValues(newWorld)

var started *world

// theWorld is shared by all tests here: each uses namespaces and organizations of its own.
func theWorld(t *testing.T) *world {
	t.Helper()
	w, err := worldOnce()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the operator's last lines:\n" + w.operator.LogTail(60))
		}
	})
	return w
}

func newWorld() (*world, error) {
	ctx := context.Background()
	started = &world{}
	for _, step := range []func(context.Context) error{started.startPostgres, started.startCluster, started.install, started.startOperator} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return started, nil
}

func endWorld() error {
	w := started
	if w == nil {
		return nil
	}
	var errs []error
	if w.operator != nil {
		errs = append(errs, w.operator.Stop())
	}
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop())
	}
	if w.keeper.DB != nil {
		w.keeper.DB.Close()
	}
	if w.postgres != nil {
		errs = append(errs, w.postgres.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

func (w *world) startPostgres(ctx context.Context) error {
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	if err != nil {
		return err
	}
	user, err := stack.ServiceUser()
	if err != nil {
		return err
	}
	if w.dir, err = stack.TempDir(ctx, user); err != nil {
		return err
	}
	port, err := stack.FreePort(ctx)
	if err != nil {
		return err
	}
	w.postgres, err = stack.StartPostgres(ctx, stack.PostgresOptions{Bin: tools.PostgresBin, User: user, Port: port,
		Dir: filepath.Join(w.dir, "postgres"), LogFile: filepath.Join(w.dir, "postgres.log")})
	if err != nil {
		return err
	}
	if w.url, err = w.postgres.EnsureDatabase(ctx, "registrar", "registrar"); err != nil {
		return err
	}
	if err := pg.Migrate(ctx, w.url, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	db, err := pg.Open(ctx, w.url)
	if err != nil {
		return err
	}
	keyset, err := seal.NewKeyset()
	if err != nil {
		return err
	}
	box, err := seal.New(keyset)
	w.keyset, w.keeper = string(keyset), webhook.Keeper{DB: db, Box: box, Policy: egress.New(egress.Config{})}
	return err
}

func (w *world) startCluster(ctx context.Context) error {
	bin, err := stack.EnsureKube(ctx, os.Stderr)
	if err != nil {
		return err
	}
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	w.cluster, err = stack.StartCluster(ctx, stack.ClusterOptions{Bin: bin, Dir: filepath.Join(w.dir, "kube"), LogDir: w.dir,
		APIPort: ports[0], Etcd: [2]int{ports[1], ports[2]}})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.cluster.Admin())
	if err != nil {
		return err
	}
	config.QPS = -1
	w.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return err
}

// install applies config/default as an administrator would, and makes a user of the
// operator's ServiceAccount.
func (w *world) install(ctx context.Context) error {
	if _, err := w.cluster.Kubectl(ctx, "apply", "-k", "../config/default"); err != nil {
		return err
	}
	_, err := w.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd/webhookendpoints.registrar.dev")
	return err
}

func (w *world) startOperator(ctx context.Context) (err error) {
	w.operator, err = w.newOperator(ctx, "operator")
	if err != nil {
		return err
	}
	return stack.StartReady(ctx, w.operator.Program, w.operator.private)
}

// newOperator prepares an operator with the rights of the ServiceAccount in config/rbac.
func (w *world) newOperator(ctx context.Context, name string, extra ...string) (*process, error) {
	return w.operatorAs(ctx, "registrar-operator", name, extra...)
}

// operatorAs prepares an operator with the rights of a ServiceAccount in registrar-system.
func (w *world) operatorAs(ctx context.Context, account, name string, extra ...string) (*process, error) {
	kubeconfig, err := w.cluster.User("system:serviceaccount:registrar-system:"+account, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	environment := append(os.Environ(), asOperator+"=1", "KUBECONFIG="+kubeconfig, "DATABASE_URL="+w.url, "SECRET_KEYSET="+w.keyset,
		"CLUSTER_NAME=test", "LEASE_NAMESPACE=registrar-system", "WEBHOOK_ALLOW_NETWORKS=", "WEBHOOK_ALLOW_HTTP=",
		fmt.Sprintf("PRIVATE_ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("METRICS_ADDR=127.0.0.1:%d", ports[1]))
	self, err := os.Executable()
	return &process{private: ports[0], metrics: ports[1], Program: stack.NewProgram(stack.Command{
		Name: name, Path: self, Env: append(environment, extra...), LogFile: filepath.Join(w.dir, name+".log"),
	})}, err
}

func freePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = stack.FreePort(ctx); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// tenant makes an organization and a namespace that may register its URLs, both of one name.
func (w *world) tenant(t *testing.T, name string) org.Organization {
	t.Helper()
	w.namespace(t, name, name)
	return w.organization(t, name)
}

func (w *world) organization(t *testing.T, slug string) (o org.Organization) {
	t.Helper()
	err := w.keeper.DB.InTx(t.Context(), func(tx *pg.Tx) (err error) {
		o, _, err = org.Put(t.Context(), tx, slug, org.Patch{Name: &slug}, time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (w *world) namespace(t *testing.T, name, organization string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if organization != "" {
		ns.Labels = map[string]string{v1alpha1.LabelOrganization: organization}
	}
	if err := w.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
}

// endpoint is a resource that is not created yet, for the organization its namespace is named after.
func endpoint(namespace, name string) *v1alpha1.WebhookEndpoint {
	return &v1alpha1.WebhookEndpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.WebhookEndpointSpec{Organization: namespace, URL: "https://hooks.example.com/" + namespace + "/" + name},
	}
}

func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// change patches an object with what the function changes of it.
func change[T client.Object](t *testing.T, w *world, o T, how func(T)) {
	t.Helper()
	before := o.DeepCopyObject().(T)
	how(o)
	if err := w.client.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func annotate(t *testing.T, w *world, e *v1alpha1.WebhookEndpoint, annotation, token string) {
	t.Helper()
	change(t, w, e, func(e *v1alpha1.WebhookEndpoint) { metav1.SetMetaDataAnnotation(&e.ObjectMeta, annotation, token) })
}

// await watches until the object is as wanted, and leaves what was seen in it.
func await[T client.Object](t *testing.T, w *world, list client.ObjectList, o T, what string, wanted func(T) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	for ctx.Err() == nil {
		if watchUntil(ctx, w, list, o, wanted) {
			t.Logf("%s: %s after %s", o.GetName(), what, time.Since(began).Round(time.Millisecond))
			return
		}
	}
	t.Fatalf("%s/%s: not %s within %s:\n%+v", o.GetNamespace(), o.GetName(), what, limit, o)
}

// watchUntil ends when the watch does, too: the API server may have been restarted.
func watchUntil[T client.Object](ctx context.Context, w *world, list client.ObjectList, o T, wanted func(T) bool) bool {
	changes, err := w.client.Watch(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{"metadata.name": o.GetName()})
	if err != nil {
		return false
	}
	defer changes.Stop()
	for e := range changes.ResultChan() {
		seen, ok := e.Object.(T)
		if !ok {
			return false
		}
		if e.Type == watch.Deleted {
			seen.SetResourceVersion("") // gone
		}
		seen.DeepCopyObject()
		assign(o, seen)
		if wanted(seen) {
			return true
		}
	}
	return false
}

func assign[T client.Object](to, from T) {
	switch to := any(to).(type) {
	case *v1alpha1.WebhookEndpoint:
		any(from).(*v1alpha1.WebhookEndpoint).DeepCopyInto(to)
	case *corev1.Secret:
		any(from).(*corev1.Secret).DeepCopyInto(to)
	}
}

func (w *world) awaitEndpoint(t *testing.T, e *v1alpha1.WebhookEndpoint, what string, wanted func(*v1alpha1.WebhookEndpoint) bool) {
	t.Helper()
	await(t, w, &v1alpha1.WebhookEndpointList{}, e, what, wanted)
}

// awaitReason waits for a condition's status and reason, for the current generation.
func (w *world) awaitReason(t *testing.T, e *v1alpha1.WebhookEndpoint, kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	t.Helper()
	w.awaitEndpoint(t, e, fmt.Sprintf("%s=%s (%s)", kind, status, reason), func(e *v1alpha1.WebhookEndpoint) bool {
		c := conditionOf(e, kind)
		return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == e.Generation
	})
	return conditionOf(e, kind)
}

func (w *world) awaitReady(t *testing.T, e *v1alpha1.WebhookEndpoint) {
	t.Helper()
	w.awaitReason(t, e, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRegistered)
}

func (w *world) awaitGone(t *testing.T, e *v1alpha1.WebhookEndpoint) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	changes, err := w.client.Watch(ctx, &v1alpha1.WebhookEndpointList{}, client.InNamespace(e.Namespace), client.MatchingFields{"metadata.name": e.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(e), &v1alpha1.WebhookEndpoint{}); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		return
	}
	for c := range changes.ResultChan() {
		if c.Type == watch.Deleted {
			return
		}
	}
	t.Fatalf("%s/%s is still there after %s", e.Namespace, e.Name, limit)
}

func conditionOf(e *v1alpha1.WebhookEndpoint, kind string) *metav1.Condition {
	for i := range e.Status.Conditions {
		if e.Status.Conditions[i].Type == kind {
			return &e.Status.Conditions[i]
		}
	}
	return nil
}

// awaitEvent waits for an Event of the resource.
func (w *world) awaitEvent(t *testing.T, e *v1alpha1.WebhookEndpoint, kind, reason string) eventsv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	changes, err := w.client.Watch(ctx, &eventsv1.EventList{}, client.InNamespace(e.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for c := range changes.ResultChan() {
		if seen, ok := c.Object.(*eventsv1.Event); ok && seen.Regarding.Name == e.Name && seen.Type == kind && seen.Reason == reason {
			return *seen
		}
	}
	t.Fatalf("%s/%s: no Event %s %s within %s", e.Namespace, e.Name, kind, reason, limit)
	return eventsv1.Event{}
}

// stored is the resource's URL as PostgreSQL has it.
func (w *world) stored(t *testing.T, e *v1alpha1.WebhookEndpoint) webhook.Endpoint {
	t.Helper()
	got, err := w.keeper.FindManaged(t.Context(), "kubernetes/test/"+e.Namespace+"/"+e.Name)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// secret reads a key of a Secret.
func (w *world) secret(t *testing.T, namespace, name, key string) string {
	t.Helper()
	var s corev1.Secret
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
		t.Fatal(err)
	}
	return string(s.Data[key])
}

func (w *world) signs(t *testing.T, e *v1alpha1.WebhookEndpoint, secret string) bool {
	t.Helper()
	stored := w.stored(t, e)
	ok, err := w.keeper.Signs(t.Context(), stored.Organization, stored.ID, secret)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}
