package reconcile

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// Uninstall takes the finalizer from the resources that an operator has served, so that none of them
// waits for an operator that is gone. The operator must have ended (AwaitEnd).
//
// A resource that stays keeps its URL: an operator that is installed again finds both. The URL of a
// resource that is being deleted is removed, as far as PostgreSQL answers.
type Uninstall struct {
	*Reconciler

	Connect func(context.Context) error // makes Webhooks usable; called once, when a URL has to be removed
	Deleted bool                        // all resources are about to be deleted, not only those that say so
	Out     io.Writer                   // is told what is left behind

	connected bool
	lost      error // why PostgreSQL is not asked any more
}

// Run releases as many resources as it can until ctx ends.
func (u *Uninstall) Run(ctx context.Context) {
	namespaces := u.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	releaseAll(ctx, u, u.endpoints(), namespaces)
	releaseAll(ctx, u, u.apiKeys(), namespaces)
	releaseAll(ctx, u, u.replays(), namespaces)
	releaseAll(ctx, u, u.rosterSources(), namespaces)
	if u.Organizations {
		k := u.organizations()
		remove := k.remove
		k.remove = func(ctx context.Context, o *v1beta1.Organization) error {
			if o.DeletionTimestamp.IsZero() { // an uninstall erases nothing that nobody has deleted
				o.Spec.DeletionPolicy = v1beta1.Retain
			}
			return remove(ctx, o)
		}
		releaseAll(ctx, u, k, []string{metav1.NamespaceAll})
	}
	if u.NamespaceRole != "" {
		u.unbindAll(ctx)
	}
}

// unbindAll deletes the RoleBindings that operators of selected namespaces have made for themselves.
func (u *Uninstall) unbindAll(ctx context.Context) {
	var bindings rbacv1.RoleBindingList
	if err := u.Live.List(ctx, &bindings, client.MatchingFields{metav1.ObjectNameField: u.NamespaceRole}); err != nil {
		u.say("The RoleBindings %s of the namespaces cannot be listed, and stay: %v", u.NamespaceRole, err)
	}
	gone := 0
	for _, b := range bindings.Items {
		if !bound(&b) {
			continue
		}
		if err := u.Client.Delete(ctx, &b); client.IgnoreNotFound(err) != nil {
			u.say("The RoleBinding %s of the namespace %s stays: %v", b.Name, b.Namespace, err)
			continue
		}
		gone++
	}
	u.say("%d RoleBindings %s are deleted.", gone, u.NamespaceRole)
}

// released counts what became of the resources of a kind.
type released struct{ stay, left, kept int }

func releaseAll[T resource](ctx context.Context, u *Uninstall, k *kind[T], namespaces []string) {
	var n released
	total := 0
	for _, namespace := range namespaces {
		found := k.list()
		err := u.Live.List(ctx, found, client.InNamespace(namespace))
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err): // there is no such kind of resource
		case err != nil:
			u.say("The %ss of the namespace %q cannot be listed, and keep their finalizers: %v", k.name, namespace, err)
		}
		for _, o := range items[T](found) {
			if k.ours(o) && controllerutil.ContainsFinalizer(o, k.finalizer) {
				total++
				releaseOne(ctx, u, k, o, &n)
			}
		}
	}
	u.say("Of %d %ss %d stay with their %ss, %d leave their %ss in PostgreSQL, %d keep their finalizers.",
		total, k.name, n.stay, k.stands, n.left, k.stands, n.kept)
	if n.kept > 0 {
		u.say("Those that keep it are deleted only after: kubectl patch %s NAME --namespace NAMESPACE --type=merge --patch '{\"metadata\":{\"finalizers\":null}}'", strings.ToLower(k.name))
	}
}

func releaseOne[T resource](ctx context.Context, u *Uninstall, k *kind[T], object T, n *released) {
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	goes := u.Deleted || !object.GetDeletionTimestamp().IsZero()
	if goes {
		if err := withdraw(ctx, u, k, object); err != nil {
			n.left++
			u.say("%s leaves its %s (id %d) in PostgreSQL: %v", name, k.stands, k.id(object), err)
		}
	}
	if err := letGo(ctx, u, k, object); err != nil {
		n.kept++
		u.say("%s keeps its finalizer: %v", name, err)
	} else if !goes {
		n.stay++
		u.say("%s stays with its %s (id %d).", name, k.stands, k.id(object))
	}
}

// withdraw removes what the resource stands for. A PostgreSQL that was away once is not waited for again.
func withdraw[T resource](ctx context.Context, u *Uninstall, k *kind[T], object T) error {
	if u.lost == nil && !u.connected {
		u.lost, u.connected = u.Connect(ctx), true
	}
	if u.lost != nil {
		return u.lost
	}
	err := k.remove(ctx, object)
	if away(err) {
		u.lost = err
	}
	return err
}

// letGo removes the finalizer, whoever else changes the resource at the same time.
func letGo[T resource](ctx context.Context, u *Uninstall, k *kind[T], object T) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := k.unhold(ctx, object)
		if apierrors.IsConflict(err) {
			if err := u.Live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
		}
		return err
	})
	return client.IgnoreNotFound(err)
}

// say writes a line; nobody may be there to read it.
func (u *Uninstall) say(format string, args ...any) { _, _ = fmt.Fprintf(u.Out, format+"\n", args...) }

// AwaitEnd waits until no operator holds the lease: the one that did has given it back, or does not renew it
// any more.
func AwaitEnd(ctx context.Context, reader client.Reader, lease types.NamespacedName) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var renewed, seen time.Time // when it was renewed last, by its holder's clock, and when that was seen, by this one's
	for {
		var held coordinationv1.Lease
		if err := reader.Get(ctx, lease, &held); err != nil {
			return client.IgnoreNotFound(err)
		}
		l := held.Spec
		if l.HolderIdentity == nil || *l.HolderIdentity == "" || l.RenewTime == nil || l.LeaseDurationSeconds == nil {
			return nil
		}
		if !l.RenewTime.Time.Equal(renewed) {
			renewed, seen = l.RenewTime.Time, time.Now()
		}
		if time.Since(seen) > time.Duration(*l.LeaseDurationSeconds)*time.Second {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the operator %s still runs", *l.HolderIdentity)
		}
	}
}
