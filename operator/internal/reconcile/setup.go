package reconcile

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/wake"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// The indexes of the cache.
const (
	bySecret   = "secretName"
	byEndpoint = "endpointID"
	byWaiting  = "waiting"
	byTenant   = "spec.organization"
	byNumber   = "organizationID"
	bySlug     = "spec.slug"
	bySource   = "sourceID"
)

const (
	workers    = 8
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	sweepEvery = time.Hour
)

// Setup adds the controllers and their sources to the manager.
func (r *Reconciler) Setup(ctx context.Context, mgr manager.Manager) error {
	l := &listener{reconciler: r}
	if r.Selector != nil {
		if err := r.setupSelection(ctx, mgr, l); err != nil {
			return err
		}
	}
	if err := r.setupEndpoints(ctx, mgr, l); err != nil {
		return err
	}
	if r.Organizations {
		if err := r.setupOrganizations(ctx, mgr, l); err != nil {
			return err
		}
	}
	if err := r.whenDefined(ctx, mgr, "ApiKey", func() error { return r.setupAPIKeys(ctx, mgr, l) }); err != nil {
		return err
	}
	if err := r.whenDefined(ctx, mgr, "WebhookReplay", func() error { return r.setupReplays(ctx, mgr, l) }); err != nil {
		return err
	}
	if err := r.whenDefined(ctx, mgr, "RosterSource", func() error { return r.setupRosterSources(ctx, mgr, l) }); err != nil {
		return err
	}
	return mgr.Add(l)
}

// whenDefined sets a kind up. Where its definition is not installed, the operator serves the other kinds meanwhile.
func (r *Reconciler) whenDefined(ctx context.Context, mgr manager.Manager, name string, setUp func() error) error {
	defined := func() (bool, error) {
		_, err := mgr.GetRESTMapper().RESTMapping(schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: name}, v1beta1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		return err == nil, err
	}
	if is, err := defined(); err != nil {
		return err
	} else if is {
		return setUp()
	}
	slog.WarnContext(ctx, "a definition is not installed; resources of this kind are served as soon as it is", "kind", name)
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tick := time.NewTicker(askedEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if is, err := defined(); err == nil && is { // an API server that does not answer is asked again
				slog.InfoContext(ctx, "a definition is installed now", "kind", name)
				return setUp()
			}
		}
	}))
}

// index makes the cache find the resources of a kind by fields.
func (k *kind[T]) index(ctx context.Context, mgr manager.Manager, fields map[string]client.IndexerFunc) error {
	k.indexes = fields
	for name, keys := range fields {
		if err := mgr.GetFieldIndexer().IndexField(ctx, k.empty(), name, keys); err != nil {
			return err
		}
	}
	return nil
}

// allowed has the resources of a namespace visited when what it may have of organizations may have changed.
func allowed[T resource](b *builder.Builder, k *kind[T]) *builder.Builder {
	if len(k.Namespaces) == 0 {
		b = b.WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, namespace client.Object) []ctrl.Request {
			return k.requests(ctx, client.InNamespace(namespace.GetName()))
		}), builder.WithPredicates(predicate.LabelChangedPredicate{}))
	}
	if k.Organizations {
		b = b.Watches(&v1beta1.Organization{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
			return k.requests(ctx, client.MatchingFields{byTenant: o.(*v1beta1.Organization).Spec.Slug})
		}), builder.WithPredicates(predicate.Funcs{UpdateFunc: allowsOthers}))
	}
	return b
}

// secrets has the resources visited whose Secret has changed. Of selected namespaces, the selection watches them.
func secrets[T resource](b *builder.Builder, k *kind[T]) *builder.Builder {
	if k.Selector != nil {
		return b
	}
	users := func(ctx context.Context, secret client.Object) []T {
		return k.find(ctx, client.InNamespace(secret.GetNamespace()), client.MatchingFields{bySecret: secret.GetName()})
	}
	return b.WatchesMetadata(&corev1.Secret{},
		handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, secret client.Object) []ctrl.Request { return requestsOf(users(ctx, secret)) }),
		builder.WithPredicates(predicate.Funcs{CreateFunc: func(c event.CreateEvent) bool { // mostly the visit's own
			return slices.ContainsFunc(users(context.Background(), c.Object), func(o T) bool { return !k.remembers(o, c.Object.GetResourceVersion()) })
		}}))
}

func (r *Reconciler) setupAPIKeys(ctx context.Context, mgr manager.Manager, l *listener) error {
	k := r.apiKeys()
	err := k.index(ctx, mgr, map[string]client.IndexerFunc{
		bySecret:  func(o client.Object) []string { return []string{apiKeySecret(o.(*v1beta1.ApiKey))} },
		byTenant:  func(o client.Object) []string { return []string{o.(*v1beta1.ApiKey).Spec.Organization} },
		byNumber:  func(o client.Object) []string { return decimal(o.(*v1beta1.ApiKey).Status.OrganizationID) },
		byWaiting: indexWaiting,
	})
	if err != nil {
		return err
	}
	return allowed(secrets(k.controller(mgr), k), k).WatchesRawSource(changes(l, k, byOrganization(k))).Complete(k)
}

func (r *Reconciler) setupReplays(ctx context.Context, mgr manager.Manager, l *listener) error {
	k := r.replays()
	err := k.index(ctx, mgr, map[string]client.IndexerFunc{byWaiting: indexWaiting})
	if err != nil {
		return err
	}
	return k.controller(mgr).
		Watches(&v1beta1.WebhookEndpoint{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, e client.Object) []ctrl.Request {
			return k.requests(ctx, client.InNamespace(e.GetNamespace()), client.MatchingFields{byWaiting: "true"})
		})).
		WatchesRawSource(changes(l, k, func(ctx context.Context, _ change) []ctrl.Request {
			return k.marked(ctx, byWaiting, "true")
		})).
		Complete(k)
}

func (r *Reconciler) setupRosterSources(ctx context.Context, mgr manager.Manager, l *listener) error {
	k := r.rosterSources()
	err := k.index(ctx, mgr, map[string]client.IndexerFunc{
		byTenant:  func(o client.Object) []string { return []string{o.(*v1beta1.RosterSource).Spec.Organization} },
		byNumber:  func(o client.Object) []string { return decimal(o.(*v1beta1.RosterSource).Status.OrganizationID) },
		bySource:  func(o client.Object) []string { return decimal(o.(*v1beta1.RosterSource).Status.SourceID) },
		byWaiting: indexWaiting,
	})
	if err != nil {
		return err
	}
	organization := byOrganization(k)
	return allowed(k.controller(mgr), k).
		WatchesRawSource(changes(l, k, func(ctx context.Context, c change) []ctrl.Request {
			if c.source == "" {
				return organization(ctx, c)
			}
			return append(k.marked(ctx, bySource, c.source), k.marked(ctx, byWaiting, "true")...)
		})).
		Complete(k)
}

// byOrganization has the resources visited whose organization has changed, and those that wait for one.
func byOrganization[T resource](k *kind[T]) func(context.Context, change) []ctrl.Request {
	return func(ctx context.Context, c change) []ctrl.Request {
		if c.organization == "" {
			return nil
		}
		return append(k.marked(ctx, byNumber, c.organization), k.marked(ctx, byWaiting, "true")...)
	}
}

func (r *Reconciler) setupEndpoints(ctx context.Context, mgr manager.Manager, l *listener) error {
	k := r.endpoints()
	err := k.index(ctx, mgr, map[string]client.IndexerFunc{bySecret: indexSecret, byEndpoint: indexEndpoint,
		byWaiting: indexWaiting, byTenant: indexTenant})
	if err != nil {
		return err
	}
	return allowed(secrets(k.controller(mgr), k), k).
		WatchesRawSource(changes(l, k, func(ctx context.Context, c change) []ctrl.Request {
			requests := k.marked(ctx, byWaiting, "true")
			if c.endpoint != "" {
				requests = append(requests, k.marked(ctx, byEndpoint, c.endpoint)...)
			}
			return requests
		})).
		Complete(k)
}

// allowsOthers says whether a change of an Organization may change which namespaces register its URLs.
func allowsOthers(u event.UpdateEvent) bool {
	before, after := u.ObjectOld.(*v1beta1.Organization), u.ObjectNew.(*v1beta1.Organization)
	return before.Generation != after.Generation || before.Status.OrganizationID != after.Status.OrganizationID
}

func (r *Reconciler) setupOrganizations(ctx context.Context, mgr manager.Manager, l *listener) error {
	k := r.organizations()
	err := k.index(ctx, mgr, map[string]client.IndexerFunc{
		bySlug:    func(o client.Object) []string { return []string{o.(*v1beta1.Organization).Spec.Slug} },
		byWaiting: indexWaiting,
		byNumber:  func(o client.Object) []string { return decimal(o.(*v1beta1.Organization).Status.OrganizationID) },
	})
	if err != nil {
		return err
	}
	return k.controller(mgr).WatchesRawSource(changes(l, k, byOrganization(k))).Complete(k)
}

// backoff doubles the pauses of one request between its failures in a row.
func backoff() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)
}

func indexSecret(o client.Object) []string {
	return []string{secretName(o.(*v1beta1.WebhookEndpoint))}
}

func indexEndpoint(o client.Object) []string {
	return decimal(o.(*v1beta1.WebhookEndpoint).Status.EndpointID)
}

func indexTenant(o client.Object) []string {
	return []string{o.(*v1beta1.WebhookEndpoint).Spec.Organization}
}

func decimal(n int64) []string { return []string{strconv.FormatInt(n, 10)} }

func indexWaiting(o client.Object) []string {
	if reason := reasonOf(conditionsOf(o.(resource))); waitsForOthers[reason] {
		return []string{"true"}
	}
	return nil
}

// change is a sign that what PostgreSQL holds may be another.
type change struct {
	everything   bool   // more signs may have been missed
	namespace    string // the name of a namespace that is served now, or is no more
	secret       string // with namespace: the name of a Secret there that changed
	endpoint     string // the id of an endpoint that changed
	organization string // the id of an organization that did
	source       string // the id of a roster source that did, or one of whose runs did
}

// listener turns wake-ups, and PostgreSQL's returns, into changes while its operator leads.
type listener struct {
	reconciler *Reconciler
	sweeps     chan struct{}

	mu      sync.Mutex
	changes []chan<- event.TypedGenericEvent[change] // of each kind
}

// changes gives a kind the changes, by the requests that they make. Those of one thing in PostgreSQL are the kind's to judge.
func changes[T resource](l *listener, k *kind[T], requests func(context.Context, change) []ctrl.Request) source.Source {
	return l.source(func(ctx context.Context, c change) []ctrl.Request {
		switch {
		case c.everything:
			return k.requests(ctx)
		case c.secret != "" && k.indexes[bySecret] == nil:
			return nil
		case c.secret != "":
			return k.requests(ctx, client.InNamespace(c.namespace), client.MatchingFields{bySecret: c.secret})
		case c.namespace != "":
			return k.requests(ctx, client.InNamespace(c.namespace))
		}
		return requests(ctx, c)
	})
}

// source gives the changes, by the requests that they make. A look at everything comes after what somebody has changed:
// of many resources it takes a while.
func (l *listener) source(requests func(context.Context, change) []ctrl.Request) source.Source {
	changes := make(chan event.TypedGenericEvent[change])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, changes)
	return source.TypedChannel(changes, handler.TypedFuncs[change, ctrl.Request]{
		GenericFunc: func(ctx context.Context, e event.TypedGenericEvent[change], q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			var o priorityqueue.AddOpts
			if e.Object.everything {
				o.Priority = new(handler.LowPriority)
			}
			q.(priorityqueue.PriorityQueue[ctrl.Request]).AddWithOpts(o, requests(ctx, e.Object)...)
		},
	})
}

// Start implements manager.Runnable.
func (l *listener) Start(ctx context.Context) error {
	l.sweeps = make(chan struct{}, 1)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { l.sweep(ctx) })
	running.Go(func() { l.reconciler.Probe.Watch(ctx, func() { l.onReturn(ctx) }) })
	l.reconciler.Webhooks.DB.Wakes.Subscribe(ctx, func(n wake.Notification) { l.onNotification(ctx, n) }, webhook.EndpointChannel, org.Channel, roster.SourceChannel)
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
	case n.Channel == roster.SourceChannel:
		l.send(ctx, change{source: n.Payload})
	default:
		l.send(ctx, change{organization: n.Payload})
	}
}

func (l *listener) send(ctx context.Context, c change) {
	l.mu.Lock()
	all := slices.Clone(l.changes)
	l.mu.Unlock()
	for _, changes := range all {
		select {
		case changes <- event.TypedGenericEvent[change]{Object: c}:
		case <-ctx.Done():
		}
	}
}

func (l *listener) sweep(ctx context.Context) {
	next := time.NewTimer(sweepEvery)
	defer next.Stop()
	pauses := backoff()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.sweeps:
		case <-next.C:
		}
		after := sweepEvery
		if err := l.reconciler.Sweep(ctx); err == nil {
			pauses.Forget(ctrl.Request{})
		} else if ctx.Err() == nil {
			after = pauses.When(ctrl.Request{})
			slog.WarnContext(ctx, "sweeping what has no resource failed; it is tried again", "after", after.String(), "error", err)
		}
		next.Reset(after)
	}
}
