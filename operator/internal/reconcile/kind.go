package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// resource is one of a kind that the operator reconciles.
type resource interface {
	client.Object
	Observed() (conditions *[]metav1.Condition, generation *int64)
}

// kind is what the operator does about the resources of one kind. What it does about all kinds alike is in this file,
// report.go and release.go.
type kind[T resource] struct {
	*Reconciler

	name      string // of the kind
	stands    string // what a resource stands for, in texts
	swept     string // what becomes of that when its resource is gone without PostgreSQL's knowledge
	finalizer string
	empty     func() T
	list      func() client.ObjectList

	ours    func(T) bool // another operator has the others
	pending func(T) bool // an annotation asks for something that has not been done
	begin   func(T) visit
	remove  func(context.Context, T) error // from PostgreSQL, what the resource stands for
	id      func(T) int64                  // in PostgreSQL
	quiet   func(T)                        // removes the figures that change all the time, which alone are not worth a write
	became  func(before string, ready metav1.Condition) occurrence

	figures refreshes
	unseen  unseen[T]
	indexes map[string]client.IndexerFunc            // by which the cache finds resources, and unseen does
	away    workqueue.TypedRateLimiter[ctrl.Request] // pauses while PostgreSQL is away
}

// visit is the reconciliation of one resource, and what its steps have found so far.
type visit interface {
	// admits are the steps that find out whether the namespace may have what the resource asks for, and end it where it may not.
	admits() []step
	steps() []step
	// next is when the resource has to be visited again at the latest; zero: nothing is due.
	next() time.Time
	// ready is the condition Ready after all steps.
	ready() condition
	// show writes what the steps have found into the status of the resource, with the conditions that not all kinds have.
	show(to resource, set func(kind string, c condition))
	events() []occurrence
}

// step does one thing of a visit.
type step func(context.Context) error

// A PostgreSQL that is frozen keeps its connections open and does not answer. What a visit does takes
// stepsLimit at most, and visitLimit with the report of it, so that the few workers come free.
const (
	stepsLimit = 7 * time.Second
	visitLimit = 10 * time.Second
)

// Reconcile implements reconcile.Reconciler.
func (k *kind[T]) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, visitLimit)
	defer cancel()
	ctx, _, end := obs.StartRemote(ctx, "", "visit "+k.name, "k8s.namespace.name", req.Namespace, "k8s.object.name", req.Name)
	defer func() {
		if err == nil {
			end("")
			return
		}
		end(err.Error())
		// controller-runtime logs the error, too, and does not know the trace.
		if obs.Traceparent(ctx) != "" {
			slog.ErrorContext(ctx, "a visit failed", "kind", k.name, "namespace", req.Namespace, "name", req.Name, "error", err)
		}
	}()
	latest, unseen := k.unseen.get(req.NamespacedName)
	object := k.empty()
	if err := k.Client.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if unseen && newer(latest, object) {
		object = latest
	}
	// What an annotation asks for must happen once, so an old copy cannot decide it.
	if k.pending(object) {
		if err := k.Live.Get(ctx, req.NamespacedName, object); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if !k.ours(object) {
		return ctrl.Result{}, nil
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return k.release(ctx, object)
	}
	where, err := k.standing(ctx, req.Namespace)
	if err != nil || where.joins || where.refusal != nil && !k.visible(ctx, object) {
		return ctrl.Result{}, err
	}
	v := k.begin(object)
	return k.report(ctx, object, v, k.apply(ctx, object, v, where))
}

// apply runs the steps until one fails. In a namespace that is not served, nothing is kept for one that may not have it.
func (k *kind[T]) apply(ctx context.Context, object T, v visit, where standing) error {
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	if where.refusal == nil {
		if err := k.hold(ctx, object); err != nil {
			return err
		}
	}
	if err := inOrder(ctx, v.admits()); err != nil {
		return err
	}
	if where.refusal != nil {
		return where.refusal
	}
	return inOrder(ctx, v.steps())
}

func inOrder(ctx context.Context, steps []step) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hold adds the finalizer, so that nothing in PostgreSQL outlives its resource.
func (k *kind[T]) hold(ctx context.Context, object T) error {
	if controllerutil.ContainsFinalizer(object, k.finalizer) {
		return nil
	}
	before := object.DeepCopyObject().(T)
	controllerutil.AddFinalizer(object, k.finalizer)
	return k.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager)
}

// unhold removes the finalizer from this version of the resource.
func (k *kind[T]) unhold(ctx context.Context, object T) error {
	before := object.DeepCopyObject().(T)
	if !controllerutil.RemoveFinalizer(object, k.finalizer) {
		return nil
	}
	return k.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager)
}

// after is the object with the status that a visit to visited gives it. It depends on nothing else, so that the same
// findings give the same status.
func (k *kind[T]) after(object, visited T, v visit, refused *refusal, now time.Time) T {
	o := object.DeepCopyObject().(T)
	conditions, observed := o.Observed()
	generation := visited.GetGeneration()
	if refused != nil && refused.reason == v1beta1.ReasonDatabaseUnavailable && *observed == generation {
		return o // nothing newer is known about this spec
	}
	*observed = generation
	set := func(kind string, c condition) {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: c.status, Reason: c.reason,
			Message: c.message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now)})
	}
	var ready condition
	if refused != nil {
		ready = refused.condition()
	} else {
		ready = v.ready()
	}
	set(v1beta1.ConditionReady, ready)
	v.show(o, set)
	why := ""
	switch {
	case ready.stalled:
		why = v1beta1.ConditionStalled
	case ready.status != metav1.ConditionTrue:
		why = v1beta1.ConditionReconciling
	}
	for _, kind := range []string{v1beta1.ConditionReconciling, v1beta1.ConditionStalled} {
		if kind != why {
			meta.RemoveStatusCondition(conditions, kind)
			continue
		}
		ready.status = metav1.ConditionTrue
		set(kind, ready)
	}
	return o
}

// write patches the status if it differs. What the visit has done once must be in it, so where somebody else was faster,
// the difference is to what the API server has.
func (k *kind[T]) write(ctx context.Context, object T, v visit, refused *refusal) error {
	now := k.Clock()
	after := k.after(object, object, v, refused, now)
	if !k.worthWriting(object, after, now) {
		return nil
	}
	err := k.patchStatus(ctx, object, after, now, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	if !apierrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	live := k.empty()
	if err := k.Live.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.GetUID() != object.GetUID() {
		return nil
	}
	after = k.after(live, object, v, refused, now)
	if equality.Semantic.DeepEqual(live, after) {
		return nil
	}
	return client.IgnoreNotFound(k.patchStatus(ctx, live, after, now, client.MergeFrom(live)))
}

// patchStatus gives the resource the status of after, and emits the Event that this calls for.
func (k *kind[T]) patchStatus(ctx context.Context, before, after T, now time.Time, patch client.Patch) error {
	old, written := conditionsOf(before), conditionsOf(after)
	k.unseen.add(after)
	if err := k.Client.Status().Patch(ctx, after, patch, fieldManager); err != nil {
		k.unseen.forget(after)
		return err
	}
	k.unseen.add(after)
	k.unseen.check(ctx, k.Client, after, k.empty())
	k.figures.wrote(after.GetUID(), now)
	if h, ok := k.transition(old, written); ok {
		k.emit(before, h)
	}
	return nil
}

// worthWriting says whether to write a status now. Figures that change with every attempt are
// written along with something else, or once a resync.
func (k *kind[T]) worthWriting(before, after T, now time.Time) bool {
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	b, a := before.DeepCopyObject().(T), after.DeepCopyObject().(T)
	k.quiet(b)
	k.quiet(a)
	return !equality.Semantic.DeepEqual(b, a) || k.figures.due(before.GetUID(), now, k.Resync)
}

// transition is the Event for a change of the Ready condition, if any.
func (k *kind[T]) transition(before, after []metav1.Condition) (occurrence, bool) {
	old := reasonOf(before)
	ready := meta.FindStatusCondition(after, v1beta1.ConditionReady)
	switch {
	case ready == nil || ready.Reason == old:
		return occurrence{}, false
	case ready.Status != metav1.ConditionTrue:
		return occurrence{warning, ready.Reason, ready.Message}, true
	}
	return k.became(old, *ready), true
}

// unwritten makes an Event of a status that cannot be written, which would be silent otherwise.
func (k *kind[T]) unwritten(object T, failure error) error {
	if !passes(failure) {
		k.emit(object, occurrence{warning, v1beta1.ReasonReconcileError, "The status cannot be written. " + explain(failure)})
	}
	return failure
}

// report writes the status, and then the Events that its change calls for. It returns when to
// reconcile the resource again. Nothing else writes a status.
func (k *kind[T]) report(ctx context.Context, object T, v visit, err error) (ctrl.Result, error) {
	judged := judge(err)
	var failure error
	if err == nil || judged.refusal != nil {
		failure = k.write(ctx, object, v, judged.refusal)
	}
	for _, h := range v.events() { // also when the status could not be written: the next visit does not do these things again
		k.emit(object, h)
	}
	if failure != nil {
		return ctrl.Result{}, errors.Join(err, k.unwritten(object, failure))
	}
	if judged.retry != nil {
		return k.again(object, judged.retry)
	}
	k.away.Forget(requestOf(object))
	if judged.refusal != nil {
		return ctrl.Result{RequeueAfter: spread(min(recheck, k.Resync))}, nil //nolint:nilerr // the error has become a condition
	}
	return ctrl.Result{RequeueAfter: pause(spread(k.Resync), k.Clock(), v.next())}, nil
}

// pause is how long a resource can wait: until the next thing is due, and as long as is usual at most.
func pause(usual time.Duration, now, next time.Time) time.Duration {
	if next.IsZero() {
		return usual
	}
	return min(usual, max(next.Sub(now), firstRetry))
}

// controller is what the controllers of all kinds have in common.
func (k *kind[T]) controller(mgr manager.Manager) *builder.Builder {
	k.away = backoff()
	k.Metrics.MustRegister(newInventory(k))
	// The first two are asked about every change.
	asked := predicate.Or[client.Object](k.watchUnseen(), predicate.Funcs{UpdateFunc: k.watchOrphans},
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		For(k.empty(), builder.WithPredicates(asked)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: backoff()})
}

// find lists resources of the cache, which answers as long as the manager runs.
func (k *kind[T]) find(ctx context.Context, which ...client.ListOption) []T {
	found := k.list()
	if err := k.Client.List(ctx, found, which...); err != nil {
		slog.ErrorContext(ctx, "the cache does not answer", "kind", k.name, "error", err)
		return nil
	}
	return items[T](found)
}

// requests are for resources of the cache.
func (k *kind[T]) requests(ctx context.Context, which ...client.ListOption) []ctrl.Request {
	return requestsOf(k.find(ctx, which...))
}

func requestsOf[T resource](found []T) []ctrl.Request {
	requests := make([]ctrl.Request, len(found))
	for i, o := range found {
		requests[i] = requestOf(o)
	}
	return requests
}

// marked are requests for the resources that an index has under this value, and for those whose status says so since a moment
// that the cache has not seen. A change of what they stand for may be told before the cache sees the status, and is told once.
func (k *kind[T]) marked(ctx context.Context, name, value string) []ctrl.Request {
	requests := k.requests(ctx, client.MatchingFields{name: value})
	for _, o := range k.unseen.all() {
		if slices.Contains(k.indexes[name](o), value) {
			requests = append(requests, requestOf(o))
		}
	}
	return requests
}

// items are the resources of a list.
func items[T resource](list client.ObjectList) []T {
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil // a list has items
	}
	all := make([]T, 0, len(objects))
	for _, o := range objects {
		if item, ok := o.(T); ok {
			all = append(all, item)
		}
	}
	return all
}

func requestOf(object client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

func conditionsOf(o resource) []metav1.Condition {
	conditions, _ := o.Observed()
	return *conditions
}

// reasonOf is the reason of the Ready condition; "" when there is none.
func reasonOf(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1beta1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}
