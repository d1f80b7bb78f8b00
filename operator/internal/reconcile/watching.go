package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// askedEvery is how long an answer about what can be watched is remembered.
const askedEvery = 15 * time.Second

// Watching tells whether the operator can watch what it serves: the API server answers, the definitions of the
// kinds are there, and so are the rights.
type Watching struct {
	Reader     client.Reader // past the cache
	Cache      cache.Cache
	Namespaces []string // none: all

	Organizations bool

	mu    sync.Mutex
	asked time.Time // when nothing was wrong last
}

// Check returns what is wrong.
func (w *Watching) Check(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.asked) < askedEvery {
		return nil
	}
	if !w.Cache.WaitForCacheSync(ctx) {
		return errors.New("the cache of resources is not filled yet")
	}
	namespaces := w.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		if err := w.list(ctx, namespace); err != nil {
			return fmt.Errorf("the operator cannot watch the namespace %q: %w", namespace, err)
		}
	}
	if w.Organizations {
		if err := w.Reader.List(ctx, &v1beta1.OrganizationList{}, client.Limit(1)); err != nil {
			return fmt.Errorf("the operator cannot watch Organizations: %w", err)
		}
	}
	w.asked = time.Now()
	return nil
}

// list asks for one resource and one Secret, which needs the rights that watching needs.
func (w *Watching) list(ctx context.Context, namespace string) error {
	var secrets metav1.PartialObjectMetadataList
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	for _, of := range []client.ObjectList{&v1alpha1.WebhookEndpointList{}, &v1beta1.ApiKeyList{}, &v1beta1.WebhookReplayList{}, &secrets} {
		err := w.Reader.List(ctx, of, client.InNamespace(namespace), client.Limit(1))
		if _, needed := of.(*v1alpha1.WebhookEndpointList); !needed && meta.IsNoMatchError(err) {
			continue // a kind that is served as soon as its definition is installed
		}
		if err != nil {
			return err
		}
	}
	return nil
}
