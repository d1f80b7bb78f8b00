package reconcile

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/wake"
	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
)

// The indexes of the cache.
const (
	bySecret   = "secretName"
	byEndpoint = "endpointID"
	byWaiting  = "waiting"
)

const (
	workers    = 8
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	sweepEvery = time.Hour
)

// Setup adds the controller and its sources to the manager.
func (r *Reconciler) Setup(ctx context.Context, mgr manager.Manager) error {
	for name, keys := range map[string]client.IndexerFunc{bySecret: indexSecret, byEndpoint: indexEndpoint, byWaiting: indexWaiting} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.WebhookEndpoint{}, name, keys); err != nil {
			return err
		}
	}
	r.away = backoff()
	changes := make(chan event.TypedGenericEvent[change])
	asked := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.WebhookEndpoint{}, builder.WithPredicates(asked)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSecret)).
		WatchesRawSource(source.TypedChannel(changes, handler.TypedEnqueueRequestsFromMapFunc(r.ofChange))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             backoff(),
		})
	if len(r.Namespaces) == 0 {
		b = b.WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace),
			builder.WithPredicates(predicate.LabelChangedPredicate{}))
	}
	if err := b.Complete(r); err != nil {
		return err
	}
	return mgr.Add(&listener{reconciler: r, changes: changes})
}

// backoff doubles the pauses of one resource between its failures in a row.
func backoff() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)
}

func indexSecret(o client.Object) []string {
	return []string{secretName(o.(*v1alpha1.WebhookEndpoint))}
}

func indexEndpoint(o client.Object) []string {
	return []string{strconv.FormatInt(o.(*v1alpha1.WebhookEndpoint).Status.EndpointID, 10)}
}

func indexWaiting(o client.Object) []string {
	if reason := reasonOf(o.(*v1alpha1.WebhookEndpoint).Status); waitsForOthers[reason] {
		return []string{"true"}
	}
	return nil
}

// change is a sign that what PostgreSQL holds may be another.
type change struct {
	everything bool   // more signs may have been missed
	endpoint   string // the id of an endpoint that changed; "" when an organization did
}

func (r *Reconciler) ofChange(ctx context.Context, c change) []ctrl.Request {
	if c.everything {
		return r.list(ctx)
	}
	requests := r.list(ctx, client.MatchingFields{byWaiting: "true"})
	if c.endpoint != "" {
		requests = append(requests, r.list(ctx, client.MatchingFields{byEndpoint: c.endpoint})...)
	}
	return requests
}

func (r *Reconciler) ofSecret(ctx context.Context, secret client.Object) []ctrl.Request {
	return r.list(ctx, client.InNamespace(secret.GetNamespace()), client.MatchingFields{bySecret: secret.GetName()})
}

func (r *Reconciler) ofNamespace(ctx context.Context, namespace client.Object) []ctrl.Request {
	return r.list(ctx, client.InNamespace(namespace.GetName()))
}

// list reads the cache, which answers as long as the manager runs.
func (r *Reconciler) list(ctx context.Context, which ...client.ListOption) []ctrl.Request {
	var found v1alpha1.WebhookEndpointList
	if err := r.Client.List(ctx, &found, which...); err != nil {
		logger(ctx).Error(err, "the cache does not answer")
		return nil
	}
	requests := make([]ctrl.Request, len(found.Items))
	for i := range found.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&found.Items[i])
	}
	return requests
}

// listener turns wake-ups, and PostgreSQL's returns, into changes while its operator leads.
type listener struct {
	reconciler *Reconciler
	changes    chan<- event.TypedGenericEvent[change]
	sweeps     chan struct{}
}

// Start implements manager.Runnable.
func (l *listener) Start(ctx context.Context) error {
	l.sweeps = make(chan struct{}, 1)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { l.sweep(ctx) })
	running.Go(func() { l.reconciler.Probe.Watch(ctx, func() { l.onReturn(ctx) }) })
	l.reconciler.Webhooks.DB.Wakes.Subscribe(ctx, func(n wake.Notification) { l.onNotification(ctx, n) }, webhook.EndpointChannel, org.Channel)
	return nil
}

// onReturn looks at everything when PostgreSQL answers, and when it answers again: resources wait
// for that, and some may have been deleted without it.
func (l *listener) onReturn(ctx context.Context) {
	select {
	case l.sweeps <- struct{}{}:
	default: // one is due already
	}
	l.send(ctx, change{everything: true})
}

func (l *listener) onNotification(ctx context.Context, n wake.Notification) {
	switch {
	case n.Lost:
	case n.Reset:
		l.send(ctx, change{everything: true})
	case n.Channel == webhook.EndpointChannel:
		l.send(ctx, change{endpoint: n.Payload})
	default:
		l.send(ctx, change{})
	}
}

func (l *listener) send(ctx context.Context, c change) {
	select {
	case l.changes <- event.TypedGenericEvent[change]{Object: c}:
	case <-ctx.Done():
	}
}

func (l *listener) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.sweeps:
		case <-tick.C:
		}
		if err := l.reconciler.Sweep(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "sweeping URLs without a resource failed; it is tried again later", "error", err)
		}
	}
}
