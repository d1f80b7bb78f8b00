package reconcile

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// foreign says why resources of the namespace may have nothing of the organization, and "" when they may.
func (r *Reconciler) foreign(ctx context.Context, namespace, slug string) (why string, err error) {
	has, err := r.namespaceLabels(ctx, namespace)
	if err != nil {
		return "", err
	}
	resource, err := r.managerOf(ctx, slug)
	if err != nil {
		return "", err
	}
	if resource == nil || resource.Spec.AllowedNamespaces == nil {
		if has[v1beta1.LabelOrganization] == slug {
			return "", nil
		}
		return fmt.Sprintf("its label %s is %q. A cluster administrator sets it.", v1beta1.LabelOrganization, has[v1beta1.LabelOrganization]), nil
	}
	if allowed, err := metav1.LabelSelectorAsSelector(resource.Spec.AllowedNamespaces); err == nil && allowed.Matches(labels.Set(has)) {
		return "", nil
	}
	return fmt.Sprintf("the Organization %q does not allow it (spec.allowedNamespaces).", resource.Name), nil
}

// namespaceLabels reads the labels of a namespace. Without permission to watch all namespaces it asks the API server for
// this one.
func (r *Reconciler) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	var namespace metav1.PartialObjectMetadata
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	reader := client.Reader(r.Client)
	if len(r.Namespaces) > 0 {
		reader = r.Live
	}
	err := reader.Get(ctx, types.NamespacedName{Name: name}, &namespace)
	return namespace.Labels, err
}

// managerOf is the resource that manages the organization, and nil when none does.
func (r *Reconciler) managerOf(ctx context.Context, slug string) (*v1beta1.Organization, error) {
	if !r.Organizations {
		return nil, nil //nolint:nilnil // people manage it
	}
	var all v1beta1.OrganizationList
	if err := r.Client.List(ctx, &all, client.MatchingFields{bySlug: slug}); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if o := &all.Items[i]; o.Status.OrganizationID != 0 && o.Spec.ClassName == r.Class {
			return o, nil
		}
	}
	return nil, nil //nolint:nilnil // people manage it
}

// findOrganization finds an organization, or waits for it: then happens what is pending.
func (r *Reconciler) findOrganization(ctx context.Context, slug, pending string) (org.Organization, error) {
	o, err := org.Find(ctx, r.Webhooks.DB, slug)
	if fault.KindOf(err) == fault.NotFound {
		return o, waitFor(v1beta1.ReasonOrganizationNotFound, "There is no organization %q yet; %s once it is created.", slug, pending)
	}
	return o, err
}
