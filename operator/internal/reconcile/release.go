package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
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
		slog.ErrorContext(ctx, "the resource goes though PostgreSQL could not be asked; what it stands for will be swept",
			"kind", k.name, "namespace", object.GetNamespace(), "name", object.GetName(), "error", err)
		k.emit(object, occurrence{warning, "Abandoned", fmt.Sprintf(
			"PostgreSQL could not be asked for %s; the %s (id %d) is %s when it answers again.", k.Patience, k.stands, k.id(object), k.swept)})
	}
	if err := k.unhold(ctx, object); client.IgnoreNotFound(err) != nil {
		return k.stay(ctx, object, err)
	}
	k.figures.forget(object.GetUID())
	k.signing.Delete(object.GetUID())
	k.orphaned.Delete(object.GetUID())
	k.away.Forget(requestOf(object))
	return ctrl.Result{}, nil
}

// stay reports why a deletion has to wait, and tries again.
func (k *kind[T]) stay(ctx context.Context, object T, cause error) (ctrl.Result, error) {
	waiting := &refusal{reason: v1beta1.ReasonDeleting, waits: true, message: explain(cause)}
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

// endEndpoint removes the URL of a resource that goes, or leaves it to the organization's staff.
func (r *Reconciler) endEndpoint(ctx context.Context, object *v1beta1.WebhookEndpoint) error {
	retain := object.Spec.DeletionPolicy == v1beta1.Retain
	if !retain {
		var err error
		if retain, err = r.orphans(ctx, object); err != nil {
			return err
		}
	}
	return r.endManaged(ctx, r.managedBy(client.ObjectKeyFromObject(object)), retain)
}

// endManaged removes the endpoint that the resource manages, if there is one, or leaves it to people.
func (r *Reconciler) endManaged(ctx context.Context, managedBy string, retain bool) error {
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	by := audit.Actor{Kind: audit.Operator, Name: managedBy}
	e, err := r.findManaged(ctx, managedBy)
	switch {
	case err != nil:
	case retain:
		err = r.Webhooks.Release(ctx, by, e.Organization, e.ID, managedBy, r.Clock())
	default:
		err = r.Webhooks.Remove(ctx, by, e.Organization, e.ID, r.Clock())
	}
	return ignoreNotFound(err)
}

// orphans says whether the resource is deleted without what it stands for (kubectl delete --cascade=orphan). Kubernetes
// then has it wait for a finalizer until its Secret has no owner any more. Whoever comes later sees that Secret alone.
func (r *Reconciler) orphans(ctx context.Context, object *v1beta1.WebhookEndpoint) (bool, error) {
	if _, seen := r.orphaned.Load(object.UID); seen || controllerutil.ContainsFinalizer(object, metav1.FinalizerOrphanDependents) {
		return true, nil
	}
	if object.Spec.SigningSecretRef != nil {
		return false, nil
	}
	var secret corev1.Secret
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: secretName(object)}, &secret)
	if r.unreadable(err) {
		return false, nil
	}
	return err == nil && left(&secret), client.IgnoreNotFound(err)
}

// unreadable says whether err is that of Secrets which an operator of selected namespaces may not read any more: the namespace
// has left, or is being deleted and its RoleBinding has gone before its resources. Neither keeps a resource from going.
func (r *Reconciler) unreadable(err error) bool {
	return r.Selector != nil && apierrors.IsForbidden(err)
}

// watchOrphans remembers which resources are deleted without what they stand for: the finalizer that says so may be gone
// when they are visited.
func (r *Reconciler) watchOrphans(u event.UpdateEvent) bool {
	o := u.ObjectNew
	if !o.GetDeletionTimestamp().IsZero() && slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		r.orphaned.Store(o.GetUID(), true)
	}
	return false
}

func ignoreNotFound(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// Sweep removes URLs without a resource, or leaves them to the staff where the resource said so, revokes keys without one,
// resets roster sources without one, and leaves organizations without one to their staff: the resource was deleted while PostgreSQL was away for longer than
// Patience, or without its finalizer.
func (r *Reconciler) Sweep(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, stepsLimit)
	endpoints, err := r.Webhooks.ListManaged(listing, r.managedPrefix())
	cancel()
	if err != nil {
		return err
	}
	for _, e := range endpoints {
		gone, err := r.orphan(ctx, e.ManagedBy, &v1beta1.WebhookEndpoint{})
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		slog.InfoContext(ctx, "the resource of a URL is gone", "resource", e.ManagedBy, "endpoint", int64(e.ID), "retained", e.Retained)
		if err := r.endManaged(ctx, e.ManagedBy, e.Retained); err != nil {
			return err
		}
	}
	return errors.Join(r.sweepKeys(ctx), r.sweepRosterSources(ctx), r.sweepOrganizations(ctx))
}

// sweepKeys revokes the keys of resources that are gone.
func (r *Reconciler) sweepKeys(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	managers, err := org.KeyManagers(listing, r.Webhooks.DB, r.managedPrefix())
	if err != nil {
		return err
	}
	return r.sweepManagers(ctx, managers, &v1beta1.ApiKey{}, func(by audit.Actor) error {
		slog.InfoContext(ctx, "revoking the API keys of a resource that is gone", "resource", by.Name)
		return r.revokeKeysOf(ctx, by)
	})
}

// sweepRosterSources gives sources whose resources are gone the settings that a source has by itself.
func (r *Reconciler) sweepRosterSources(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	managers, err := roster.SourceManagers(listing, r.Webhooks.DB, r.managedPrefix())
	if err != nil {
		return err
	}
	return r.sweepManagers(ctx, managers, &v1beta1.RosterSource{}, func(by audit.Actor) error {
		slog.InfoContext(ctx, "a roster source is left to the platform, as its resource is gone", "resource", by.Name)
		return ignoreNotFound(roster.ReleaseSource(ctx, r.Webhooks.DB, by, by.Name, true, r.Clock()))
	})
}

// sweepManagers ends what resources of a kind keep that are gone.
func (r *Reconciler) sweepManagers(ctx context.Context, managers []string, empty client.Object, end func(audit.Actor) error) error {
	for _, managedBy := range managers {
		gone, err := r.orphan(ctx, managedBy, empty)
		switch {
		case meta.IsNoMatchError(err):
			return nil // the definition is not installed; what its resources stand for stays
		case err != nil:
			return err
		case !gone:
			continue
		}
		if err := end(audit.Actor{Kind: audit.Operator, Name: managedBy}); err != nil {
			return err
		}
	}
	return nil
}

// sweepOrganizations leaves organizations whose resources are gone to their staff.
func (r *Reconciler) sweepOrganizations(ctx context.Context) error {
	if !r.Organizations {
		return nil
	}
	listing, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	organizations, err := org.ListManaged(listing, r.Webhooks.DB, r.managedPrefix())
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

// orphan says whether the operator serves the namespace of the resource, which there is no more.
func (r *Reconciler) orphan(ctx context.Context, managedBy string, object client.Object) (bool, error) {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(managedBy, r.managedPrefix()), "/")
	if !ok || !r.responsible(namespace) {
		return false, nil
	}
	return r.gone(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
}

// gone says whether there is no such resource. The cache spares the API server, but shows what has just gone as being deleted.
func (r *Reconciler) gone(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	if err := r.Client.Get(ctx, key, object); client.IgnoreNotFound(err) != nil || err == nil && object.GetDeletionTimestamp().IsZero() {
		return false, err
	}
	err := r.Live.Get(ctx, key, object)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}
