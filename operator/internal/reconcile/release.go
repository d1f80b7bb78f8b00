package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// release removes what a resource that is being deleted stands for, then the finalizer. While
// PostgreSQL is away it tries again, for Patience at most, because a database that is lost for
// good must not block the deletion of a namespace. Sweep does the rest when PostgreSQL is back.
func (k *kind[T]) release(ctx context.Context, object T) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(object, k.finalizer) {
		return ctrl.Result{}, nil
	}
	if err := k.remove(ctx, object); err != nil {
		if k.Clock().Sub(object.GetDeletionTimestamp().Time) < k.Patience {
			return k.stay(ctx, object, err)
		}
		logger(ctx).Error(err, "the resource goes though PostgreSQL could not be asked; what it stands for will be swept")
		k.emit(object, occurrence{warning, "Abandoned", fmt.Sprintf(
			"PostgreSQL could not be asked for %s; the %s (id %d) is %s when it answers again.", k.Patience, k.stands, k.id(object), k.swept)})
	}
	if err := k.unhold(ctx, object); client.IgnoreNotFound(err) != nil {
		return k.stay(ctx, object, err)
	}
	k.figures.forget(object.GetUID())
	k.away.Forget(requestOf(object))
	return ctrl.Result{}, nil
}

// stay reports why a deletion has to wait, and tries again.
func (k *kind[T]) stay(ctx context.Context, object T, cause error) (ctrl.Result, error) {
	waiting := &refusal{reason: v1alpha1.ReasonDeleting, waits: true, message: explain(cause)}
	if away(cause) {
		waiting.message = fmt.Sprintf("The resource goes when PostgreSQL answers, and after %s in any case.", k.Patience)
	}
	if !passes(cause) {
		if err := k.write(ctx, object, k.begin(object), waiting); err != nil {
			return ctrl.Result{}, errors.Join(cause, k.unwritten(object, err))
		}
	}
	result, err := k.again(object, cause)
	if left := k.Patience - k.Clock().Sub(object.GetDeletionTimestamp().Time); result.RequeueAfter > 0 {
		result.RequeueAfter = min(result.RequeueAfter, max(left, firstRetry))
	}
	return result, err
}

// removeEndpoint deletes the endpoint that the resource manages, if there is one.
func (r *Reconciler) removeEndpoint(ctx context.Context, managedBy string) error {
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	e, err := r.findManaged(ctx, managedBy)
	if err == nil {
		err = r.Webhooks.Remove(ctx, audit.Actor{Kind: audit.Operator, Name: managedBy}, e.Organization, e.ID, r.Clock())
	}
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// Sweep removes URLs without a resource, and leaves organizations without one to their staff: the resource was deleted
// while PostgreSQL was away for longer than Patience, or without its finalizer.
func (r *Reconciler) Sweep(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, stepsLimit)
	endpoints, err := r.Webhooks.ListManaged(listing, r.managedPrefix())
	cancel()
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		if err := r.sweepEndpoint(ctx, e); err != nil {
			return err
		}
	}
	if !r.Organizations {
		return nil
	}
	listing, cancel = context.WithTimeout(ctx, stepsLimit)
	organizations, err := org.ListManaged(listing, r.Webhooks.DB, r.managedPrefix())
	cancel()
	if err != nil {
		return err
	}
	for managedBy, o := range organizations {
		name := strings.TrimPrefix(managedBy, r.managedPrefix())
		gone, err := r.gone(ctx, types.NamespacedName{Name: name}, &v1beta1.Organization{})
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		slog.InfoContext(ctx, "an organization is left to its staff, as its resource is gone", "resource", name, "organization", int64(o))
		if err := org.Release(ctx, r.Webhooks.DB, audit.Actor{Kind: audit.Operator, Name: managedBy}, o, managedBy, r.Clock()); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) sweepEndpoint(ctx context.Context, e webhook.Endpoint) error {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(e.ManagedBy, r.managedPrefix()), "/")
	if !ok || !r.responsible(namespace) {
		return nil
	}
	key := types.NamespacedName{Namespace: namespace, Name: name}
	gone, err := r.gone(ctx, key, &v1alpha1.WebhookEndpoint{})
	if err != nil || !gone {
		return err
	}
	logger(ctx).Info("removing a URL whose resource is gone", "resource", key.String(), "endpoint", int64(e.ID))
	return r.removeEndpoint(ctx, e.ManagedBy)
}

// gone says whether there is no such resource.
func (r *Reconciler) gone(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	for _, reader := range []client.Reader{r.Client, r.Live} { // the cache spares the API server
		if err := reader.Get(ctx, key, object); !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return true, nil
}
