package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/operator/api/v1beta1"
	"github.com/registrar-dev/registrar/operator/internal/definition"
)

// askedEvery is how long an answer about what can be watched is remembered.
const askedEvery = 15 * time.Second

// definitionOf is the kind of the definitions of kinds.
var definitionOf = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Watching tells whether the operator can watch what it serves: the API server answers, the definitions of the
// kinds are there and not older than the operator, and so are the rights.
type Watching struct {
	Reader     client.Reader // past the cache
	Cache      cache.Cache
	Namespaces []string // none: all
	Selecting  bool     // by labels: the Secrets of each namespace are asked for when it is selected

	Organizations bool

	mu    sync.Mutex
	asked time.Time // when nothing was wrong last
	said  string    // what was wrong with the definitions when last looked at
}

// Check returns what is wrong.
func (w *Watching) Check(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.asked) < askedEvery {
		return nil
	}
	if err := w.current(ctx); err != nil {
		return err
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

// Definitions logs what is wrong with the definitions, as Check does later.
func (w *Watching) Definitions(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.current(ctx) // has logged it
}

// current returns what is wrong with the definitions, and logs it once: /readyz itself gives no reasons.
func (w *Watching) current(ctx context.Context) error {
	older, err := w.older(ctx)
	if err == nil && len(older) > 0 {
		err = fmt.Errorf("%s: upgrade the Helm release that installs the definitions, or run kubectl apply -k config/crd with the files of this operator's version",
			strings.Join(older, "; "))
	}
	if err == nil {
		w.said = ""
	} else if err.Error() != w.said {
		w.said = err.Error()
		slog.ErrorContext(ctx, "not ready", "error", err)
	}
	return err
}

// older says which definitions are older than the operator. A newer one has what it needs, and list judges missing ones.
func (w *Watching) older(ctx context.Context) ([]string, error) {
	needed, err := definition.All()
	if err != nil {
		return nil, err
	}
	var older []string
	for _, d := range needed {
		if d.Name == "organizations.registrar.dev" && !w.Organizations {
			continue
		}
		var installed metav1.PartialObjectMetadata
		installed.SetGroupVersionKind(definitionOf)
		if err := w.Reader.Get(ctx, client.ObjectKey{Name: d.Name}, &installed); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("the operator cannot read the definition %s: %w", d.Name, err)
		}
		if revision := definition.RevisionOf(&installed); revision < d.Revision {
			older = append(older, fmt.Sprintf("the definition %s is older than this operator (revision %d, not %d)", d.Name, revision, d.Revision))
		}
	}
	return older, nil
}

// list asks for one resource and one Secret, which needs the rights that watching needs.
func (w *Watching) list(ctx context.Context, namespace string) error {
	var secrets metav1.PartialObjectMetadataList
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	for _, of := range []client.ObjectList{&v1beta1.WebhookEndpointList{}, &v1beta1.ApiKeyList{}, &v1beta1.WebhookReplayList{}, &v1beta1.RosterSourceList{}, &secrets} {
		if of == client.ObjectList(&secrets) && w.Selecting {
			continue
		}
		err := w.Reader.List(ctx, of, client.InNamespace(namespace), client.Limit(1))
		if _, needed := of.(*v1beta1.WebhookEndpointList); !needed && meta.IsNoMatchError(err) {
			continue // a kind that is served as soon as its definition is installed
		}
		if err != nil {
			return err
		}
	}
	return nil
}
