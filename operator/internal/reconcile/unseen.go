package reconcile

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// unseen are resources as their status was written last, until the cache has seen that. Others may read the status before.
type unseen[T resource] struct {
	mu     sync.Mutex
	latest map[types.NamespacedName]T
}

func (u *unseen[T]) add(o T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.latest == nil {
		u.latest = map[types.NamespacedName]T{}
	}
	u.latest[client.ObjectKeyFromObject(o)] = o.DeepCopyObject().(T)
}

// get is what the cache has not seen, if anything. The cache is to be asked afterwards: it may see that meanwhile.
func (u *unseen[T]) get(key types.NamespacedName) (latest T, there bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if latest, there = u.latest[key]; there {
		latest = latest.DeepCopyObject().(T)
	}
	return latest, there
}

// newer says whether a is the same resource as b and not older.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order >= 0 && a.GetUID() == b.GetUID()
}

// saw is told of every copy that the cache has got.
func (u *unseen[T]) saw(cached client.Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := client.ObjectKeyFromObject(cached)
	latest, there := u.latest[key]
	if !there {
		return
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), latest.GetResourceVersion())
	if err != nil || order >= 0 {
		delete(u.latest, key)
	}
}

// check asks the cache, which may have been told of a resource before it was added.
func (u *unseen[T]) check(ctx context.Context, cache client.Reader, added, cached T) {
	switch err := cache.Get(ctx, client.ObjectKeyFromObject(added), cached); {
	case err == nil:
		u.saw(cached)
	case apierrors.IsNotFound(err):
		u.forget(added)
	}
}

func (u *unseen[T]) forget(o client.Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := client.ObjectKeyFromObject(o)
	if latest, there := u.latest[key]; there && latest.GetUID() == o.GetUID() {
		delete(u.latest, key)
	}
}

func (u *unseen[T]) all() []T {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]T, 0, len(u.latest))
	for _, o := range u.latest {
		all = append(all, o)
	}
	return all
}

// watchUnseen is asked about every change, and has nothing visited.
func (k *kind[T]) watchUnseen() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			k.unseen.saw(e.ObjectNew)
			return false
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			k.unseen.forget(e.Object)
			return false
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
