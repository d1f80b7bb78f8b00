package reconcile

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
)

// report writes the status, and then the Events that its change calls for. It returns when to
// reconcile the resource again. Nothing else writes a status.
func (r *Reconciler) report(ctx context.Context, v *visit, err error) (ctrl.Result, error) {
	judged := judge(err)
	if err == nil || judged.refusal != nil {
		if failure := r.write(ctx, v, judged.refusal); failure != nil {
			return ctrl.Result{}, errors.Join(err, r.unwritten(v.object, failure))
		}
	}
	for _, h := range v.happened {
		r.emit(v.object, h)
	}
	if judged.retry != nil {
		return r.again(v.object, judged.retry)
	}
	r.away.Forget(requestOf(v.object))
	if judged.refusal != nil {
		return ctrl.Result{RequeueAfter: spread(min(recheck, r.Resync))}, nil //nolint:nilerr // the error has become a condition
	}
	return ctrl.Result{RequeueAfter: spread(r.Resync)}, nil
}

// again retries a visit that failed through no fault of the resource. Expected failures, an old
// copy or a PostgreSQL that is away, are not logged for each resource.
func (r *Reconciler) again(object *v1alpha1.WebhookEndpoint, cause error) (ctrl.Result, error) {
	switch {
	case apierrors.IsConflict(cause):
		return ctrl.Result{RequeueAfter: firstRetry}, nil
	case away(cause):
		return ctrl.Result{RequeueAfter: r.away.When(requestOf(object))}, nil
	}
	return ctrl.Result{}, cause
}

func requestOf(object *v1alpha1.WebhookEndpoint) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// write patches the status if it differs. The copy at hand may be older than the last write, so
// a difference is checked again on the API server's copy.
func (r *Reconciler) write(ctx context.Context, v *visit, refused *refusal) error {
	now := r.Clock()
	if !r.worthWriting(v.object, v.status(v.object.Status, refused, now), now) {
		return nil
	}
	var live v1alpha1.WebhookEndpoint
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(v.object), &live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.UID != v.object.UID {
		return nil
	}
	before := live.DeepCopy()
	live.Status = v.status(live.Status, refused, now)
	if equality.Semantic.DeepEqual(before.Status, live.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, &live, client.MergeFrom(before), fieldManager); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.figures.wrote(live.UID, now)
	if h, ok := transition(before.Status, live.Status); ok {
		r.emit(&live, h)
	}
	return nil
}

// unwritten makes an Event of a status that cannot be written, which would be silent otherwise.
func (r *Reconciler) unwritten(object *v1alpha1.WebhookEndpoint, failure error) error {
	if !passes(failure) {
		r.emit(object, occurrence{warning, v1alpha1.ReasonReconcileError, "The status cannot be written. " + explain(failure)})
	}
	return failure
}

// worthWriting says whether to write a status now. Figures that change with every attempt are
// written along with something else, or once a resync.
func (r *Reconciler) worthWriting(object *v1alpha1.WebhookEndpoint, after v1alpha1.WebhookEndpointStatus, now time.Time) bool {
	before := object.Status
	if !equality.Semantic.DeepEqual(quiet(before), quiet(after)) {
		return true
	}
	return !equality.Semantic.DeepEqual(before, after) && r.figures.due(object.UID, now, r.Resync)
}

// emit makes an Event of the resource.
func (r *Reconciler) emit(object *v1alpha1.WebhookEndpoint, h occurrence) {
	r.Events.Eventf(object, nil, h.kind, h.reason, "Reconcile", "%s", h.note)
}

// refreshes remembers when the figures of each resource were written. A new process begins
// with now, because the start of an operator is no reason to write.
type refreshes struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

func (f *refreshes) due(uid types.UID, now time.Time, every time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.last[uid]
	if !known {
		f.set(uid, now)
		return false
	}
	return now.Sub(last) >= every
}

func (f *refreshes) wrote(uid types.UID, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set(uid, now)
}

func (f *refreshes) set(uid types.UID, now time.Time) {
	if f.last == nil {
		f.last = map[types.UID]time.Time{}
	}
	f.last[uid] = now
}

func (f *refreshes) forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, uid)
}
