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
	latest map[types.UID]T
}

func (u *unseen[T]) add(o T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.latest == nil {
		u.latest = map[types.UID]T{}
	}
	u.latest[o.GetUID()] = o.DeepCopyObject().(T)
}

// newest is the status written last, if the cache's copy is older, and else that copy.
func (u *unseen[T]) newest(cached T) T {
	u.mu.Lock()
	defer u.mu.Unlock()
	latest, there := u.latest[cached.GetUID()]
	if !there {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), latest.GetResourceVersion())
	if err != nil || order >= 0 {
		return cached
	}
	return latest.DeepCopyObject().(T)
}

// saw is told of every copy that the cache has got.
func (u *unseen[T]) saw(cached client.Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	latest, there := u.latest[cached.GetUID()]
	if !there {
		return
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), latest.GetResourceVersion())
	if err != nil || order >= 0 {
		delete(u.latest, cached.GetUID())
	}
}

// check asks the cache, which may have been told of a resource before it was added.
func (u *unseen[T]) check(ctx context.Context, cache client.Reader, uid types.UID, key client.ObjectKey, cached T) {
	switch err := cache.Get(ctx, key, cached); {
	case err == nil && cached.GetUID() == uid:
		u.saw(cached)
	case err == nil, apierrors.IsNotFound(err):
		u.forget(uid)
	}
}

func (u *unseen[T]) forget(uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.latest, uid)
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
			k.unseen.forget(e.Object.GetUID())
			return false
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
