package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
)

// release removes the URL of a resource that is being deleted, then the finalizer. While
// PostgreSQL is away it tries again, for Patience at most, because a database that is lost for
// good must not block the deletion of a namespace. Sweep removes the URL when PostgreSQL is
// back.
func (r *Reconciler) release(ctx context.Context, object *v1alpha1.WebhookEndpoint) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(object, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.remove(ctx, r.managedBy(client.ObjectKeyFromObject(object))); err != nil {
		if r.Clock().Sub(object.DeletionTimestamp.Time) < r.Patience {
			return r.stay(ctx, object, err)
		}
		logger(ctx).Error(err, "the resource goes though its URL could not be removed; it will be swept")
		r.emit(object, occurrence{warning, "Abandoned", fmt.Sprintf(
			"PostgreSQL could not be asked for %s; the URL (id %d) is removed when it answers again.", r.Patience, object.Status.EndpointID)})
	}
	if err := r.unhold(ctx, object); client.IgnoreNotFound(err) != nil {
		return r.stay(ctx, object, err)
	}
	r.figures.forget(object.UID)
	r.away.Forget(requestOf(object))
	return ctrl.Result{}, nil
}

// unhold removes the finalizer from this version of the resource.
func (r *Reconciler) unhold(ctx context.Context, object *v1alpha1.WebhookEndpoint) error {
	before := object.DeepCopy()
	if !controllerutil.RemoveFinalizer(object, v1alpha1.Finalizer) {
		return nil
	}
	return r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager)
}

// stay reports why a deletion has to wait, and tries again.
func (r *Reconciler) stay(ctx context.Context, object *v1alpha1.WebhookEndpoint, cause error) (ctrl.Result, error) {
	waiting := &refusal{reason: v1alpha1.ReasonDeleting, waits: true, message: explain(cause)}
	if away(cause) {
		waiting.message = fmt.Sprintf("The URL is removed when PostgreSQL answers; the resource goes after %s in any case.", r.Patience)
	}
	if !passes(cause) {
		v := &visit{Reconciler: r, object: object, handled: object.Status.Handled}
		if err := r.write(ctx, v, waiting); err != nil {
			return ctrl.Result{}, errors.Join(cause, r.unwritten(object, err))
		}
	}
	result, err := r.again(object, cause)
	if left := r.Patience - r.Clock().Sub(object.DeletionTimestamp.Time); result.RequeueAfter > 0 {
		result.RequeueAfter = min(result.RequeueAfter, max(left, firstRetry))
	}
	return result, err
}

// remove deletes the endpoint that the resource manages, if there is one.
func (r *Reconciler) remove(ctx context.Context, managedBy string) error {
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	e, err := r.findManaged(ctx, managedBy)
	if err == nil {
		err = r.Webhooks.Remove(ctx, audit.Actor{Kind: audit.Operator, Name: managedBy}, e.Organization, e.ID, r.Clock())
	}
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// Sweep removes URLs without a resource: it was deleted while PostgreSQL was away for longer
// than Patience, or without its finalizer.
func (r *Reconciler) Sweep(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, stepsLimit)
	all, err := r.Webhooks.ListManaged(listing, r.managedPrefix())
	cancel()
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := r.sweepOne(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) sweepOne(ctx context.Context, e webhook.Endpoint) error {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(e.ManagedBy, r.managedPrefix()), "/")
	if !ok || !r.responsible(namespace) {
		return nil
	}
	key, object := types.NamespacedName{Namespace: namespace, Name: name}, &v1alpha1.WebhookEndpoint{}
	for _, reader := range []client.Reader{r.Client, r.Live} { // the cache spares the API server
		if err := reader.Get(ctx, key, object); !apierrors.IsNotFound(err) {
			return err
		}
	}
	logger(ctx).Info("removing a URL whose resource is gone", "resource", key.String(), "endpoint", int64(e.ID))
	return r.remove(ctx, e.ManagedBy)
}
