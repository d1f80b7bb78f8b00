// Package reconcile registers the WebhookEndpoints of a cluster in PostgreSQL, and shows the
// state of their URLs in their status.
//
// A visit to a resource is an ordered list of steps. A step does one thing and returns an
// error, or nil to let the next one run; it writes no status. Only report turns what the steps
// found into conditions and Events.
package reconcile

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
)

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen rbac:roleName=registrar-operator paths=.;../guard output:rbac:artifacts:config=../../../config/rbac

// What the operator needs in each namespace that it serves; config/rbac/role.yaml is generated from this.
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups=registrar.dev,resources=webhookendpoints,verbs=get;list;watch;patch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups=registrar.dev,resources=webhookendpoints/status,verbs=patch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups=events.k8s.io,resources=events,verbs=create;patch

// fieldManager names the operator in managedFields.
const fieldManager = client.FieldOwner("registrar-operator")

// Options are what a site may choose.
type Options struct {
	Cluster    string        // distinguishes the clusters that share a PostgreSQL
	Namespaces []string      // whose resources are reconciled; none: all
	Resync     time.Duration // how often a resource is reconciled although nothing has happened
	Patience   time.Duration // how long a deletion waits for PostgreSQL
}

// Reconciler reconciles WebhookEndpoints with their URLs.
type Reconciler struct {
	Options

	Client   client.Client // WebhookEndpoints and Namespaces from the cache, Secrets live
	Live     client.Reader // past the cache
	Webhooks webhook.Service
	Probe    *pg.Probe // tells when PostgreSQL answers again
	Events   events.EventRecorder
	Clock    clock.Clock

	figures refreshes
	away    workqueue.TypedRateLimiter[ctrl.Request] // pauses while PostgreSQL is away
}

// visit is the reconciliation of one resource, and what its steps have found so far.
type visit struct {
	*Reconciler
	object *v1alpha1.WebhookEndpoint

	asked    bool // PostgreSQL has said whether there is an endpoint
	endpoint *webhook.Endpoint
	added    bool // by this visit
	org      id.Organization
	backlog  int

	secret    string
	secretRef *v1alpha1.SecretKeyRef
	handled   v1alpha1.HandledTokens
	happened  []occurrence
}

// A PostgreSQL that is frozen keeps its connections open and does not answer. What a visit does takes
// stepsLimit at most, and visitLimit with the report of it, so that the few workers come free.
const (
	stepsLimit = 7 * time.Second
	visitLimit = 10 * time.Second
)

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, visitLimit)
	defer cancel()
	var object v1alpha1.WebhookEndpoint
	if err := r.Client.Get(ctx, req.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// What an annotation asks for must happen once, so an old copy cannot decide it.
	if pending(&object) {
		if err := r.Live.Get(ctx, req.NamespacedName, &object); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if !object.DeletionTimestamp.IsZero() {
		return r.release(ctx, &object)
	}
	v := &visit{Reconciler: r, object: &object, handled: object.Status.Handled}
	return r.report(ctx, v, v.apply(ctx))
}

// apply runs the steps until one fails.
func (v *visit) apply(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	for _, step := range steps {
		if err := step(v, ctx); err != nil {
			return err
		}
	}
	return nil
}

// steps apply the spec, in this order.
var steps = []func(*visit, context.Context) error{
	(*visit).hold,
	(*visit).find,
	(*visit).mayRegister,
	(*visit).belong,
	(*visit).ensureSecret,
	(*visit).register,
	(*visit).sign,
	(*visit).turn,
	(*visit).test,
	(*visit).measure,
}

// pending says whether an annotation asks for something that has not been done.
func pending(object *v1alpha1.WebhookEndpoint) bool {
	h := object.Status.Handled
	return asks(object, v1alpha1.AnnotationRotateSecret, h.RotateSecret) ||
		asks(object, v1alpha1.AnnotationTurnOn, h.TurnOn) ||
		asks(object, v1alpha1.AnnotationSendTest, h.SendTest)
}

// asks says whether the annotation has a token other than the one handled last.
func asks(object *v1alpha1.WebhookEndpoint, annotation, handled string) bool {
	token := object.Annotations[annotation]
	return token != "" && token != handled
}

// hold adds the finalizer, so that no URL outlives its resource.
func (v *visit) hold(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(v.object, v1alpha1.Finalizer) {
		return nil
	}
	before := v.object.DeepCopy()
	controllerutil.AddFinalizer(v.object, v1alpha1.Finalizer)
	return v.Client.Patch(ctx, v.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager)
}

// managedBy names the resource in PostgreSQL. It has no uid, so that a resource that is
// restored from a backup finds its URL again.
func (r *Reconciler) managedBy(key types.NamespacedName) string {
	return r.managedPrefix() + key.Namespace + "/" + key.Name
}

// actor is the resource as the giver of commands.
func (v *visit) actor() audit.Actor {
	return audit.Actor{Kind: audit.Operator, Name: v.managedBy(client.ObjectKeyFromObject(v.object))}
}

func (r *Reconciler) managedPrefix() string { return "kubernetes/" + r.Cluster + "/" }

// responsible says whether the operator reconciles the resources of a namespace.
func (r *Reconciler) responsible(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}

// spread keeps resources that were created together from being reconciled together.
func spread(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/5+1))
}

func logger(ctx context.Context) interface {
	Info(msg string, keysAndValues ...any)
	Error(err error, msg string, keysAndValues ...any)
} {
	return log.FromContext(ctx)
}
