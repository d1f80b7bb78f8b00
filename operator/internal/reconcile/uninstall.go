package reconcile

import (
	"context"
	"fmt"
	"io"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
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

	connected        bool
	lost             error // why PostgreSQL is not asked any more
	stay, left, kept int
}

// Run releases as many resources as it can until ctx ends.
func (u *Uninstall) Run(ctx context.Context) {
	namespaces := u.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	total := 0
	for _, namespace := range namespaces {
		var found v1alpha1.WebhookEndpointList
		err := u.Live.List(ctx, &found, client.InNamespace(namespace))
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err): // there is no such kind of resource
		case err != nil:
			u.say("The WebhookEndpoints of the namespace %q cannot be listed, and keep their finalizers: %v", namespace, err)
		}
		for i := range found.Items {
			if controllerutil.ContainsFinalizer(&found.Items[i], v1alpha1.Finalizer) {
				total++
				u.releaseOne(ctx, &found.Items[i])
			}
		}
	}
	u.say("Of %d WebhookEndpoints %d stay with their URLs, %d leave their URLs in PostgreSQL, %d keep their finalizers.", total, u.stay, u.left, u.kept)
	if u.kept > 0 {
		u.say("Those that keep it are deleted only after: kubectl patch webhookendpoint NAME --namespace NAMESPACE --type=merge --patch '{\"metadata\":{\"finalizers\":null}}'")
	}
}

func (u *Uninstall) releaseOne(ctx context.Context, object *v1alpha1.WebhookEndpoint) {
	name := object.Namespace + "/" + object.Name
	goes := u.Deleted || !object.DeletionTimestamp.IsZero()
	if goes {
		if err := u.withdraw(ctx, object); err != nil {
			u.left++
			u.say("%s leaves its URL (id %d) in PostgreSQL: %v", name, object.Status.EndpointID, err)
		}
	}
	if err := u.letGo(ctx, object); err != nil {
		u.kept++
		u.say("%s keeps its finalizer: %v", name, err)
	} else if !goes {
		u.stay++
		u.say("%s stays with its URL (id %d).", name, object.Status.EndpointID)
	}
}

// withdraw removes the resource's URL. A PostgreSQL that was away once is not waited for again.
func (u *Uninstall) withdraw(ctx context.Context, object *v1alpha1.WebhookEndpoint) error {
	if u.lost == nil && !u.connected {
		u.lost, u.connected = u.Connect(ctx), true
	}
	if u.lost != nil {
		return u.lost
	}
	err := u.remove(ctx, u.managedBy(client.ObjectKeyFromObject(object)))
	if away(err) {
		u.lost = err
	}
	return err
}

// letGo removes the finalizer, whoever else changes the resource at the same time.
func (u *Uninstall) letGo(ctx context.Context, object *v1alpha1.WebhookEndpoint) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := u.unhold(ctx, object)
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
