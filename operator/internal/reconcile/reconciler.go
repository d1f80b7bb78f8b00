// Package reconcile registers the WebhookEndpoints of a cluster in PostgreSQL, and shows the
// state of their URLs in their status.
//
// Organizations are reconciled in the same way. A visit to a resource is an ordered list of steps. A step does one thing
// and returns an error, or nil to let the next one run; it writes no status. Only report turns what the steps found into
// conditions and Events.
package reconcile

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/account"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen rbac:roleName=registrar-operator paths=.;../guard output:rbac:artifacts:config=../../../config/rbac

// What the operator needs to notice definitions that are older than it.
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=apikeys.registrar.dev;organizations.registrar.dev;rostersources.registrar.dev;webhookendpoints.registrar.dev;webhookreplays.registrar.dev,verbs=get

// What the operator needs for Organizations, which belong to no namespace. Events about them are in default.
// +kubebuilder:rbac:roleName=registrar-operator-organizations,groups=registrar.dev,resources=organizations,verbs=get;list;watch;patch
// +kubebuilder:rbac:roleName=registrar-operator-organizations,groups=registrar.dev,resources=organizations/status,verbs=patch
// +kubebuilder:rbac:roleName=registrar-operator-organizations,groups=events.k8s.io,resources=events,verbs=create;patch

// What the operator needs in each namespace that it serves; config/rbac/role.yaml is generated from this.
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups=registrar.dev,resources=webhookendpoints,verbs=get;list;watch;patch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups=registrar.dev,resources=webhookendpoints/status,verbs=patch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups=registrar.dev,resources=apikeys;rostersources;webhookreplays,verbs=get;list;watch;patch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups=registrar.dev,resources=apikeys/status;rostersources/status;webhookreplays/status,verbs=patch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:roleName=registrar-operator-namespaced,groups=events.k8s.io,resources=events,verbs=create;patch

// fieldManager names the operator in managedFields.
const fieldManager = client.FieldOwner("registrar-operator")

// Options are what a site may choose.
type Options struct {
	Cluster    string          // distinguishes the clusters that share a PostgreSQL
	Namespaces []string        // whose resources are reconciled; none: all
	Selector   labels.Selector // of the labels of the namespaces instead, which may come and go; nil: there is none
	// NamespaceRole is the ClusterRole that the operator binds to itself where Selector selects; "": others give it its rights.
	NamespaceRole string
	Resync        time.Duration // how often a resource is reconciled although nothing has happened
	Patience      time.Duration // how long a deletion waits for PostgreSQL

	Class string // className of the resources that are reconciled

	Organizations bool // Organizations are reconciled, too
}

// Reconciler reconciles resources with what they stand for in PostgreSQL.
type Reconciler struct {
	Options

	Client    client.Client // resources and Namespaces from the cache, Secrets live
	Live      client.Reader // past the cache
	Cache     client.Reader // the metadata of Secrets, unless there is a Selector
	Webhooks  webhook.Service
	Staff     *staff.Service
	Accounts  *account.Service
	Sandboxes *simulate.Service // nil: there are none
	Probe     *pg.Probe         // tells when PostgreSQL answers again
	Events    events.EventRecorder
	Clock     clock.Clock
	Metrics   prometheus.Registerer

	selected *selection // nil without a Selector

	orphaned sync.Map // UIDs of resources that are deleted without what they stand for
	signing  sync.Map // signing, by the UIDs of resources
}

// managedBy names the resource in PostgreSQL. It has no uid, so that a resource that is
// restored from a backup finds its URL again.
func (r *Reconciler) managedBy(key types.NamespacedName) string {
	return r.managedPrefix() + key.Namespace + "/" + key.Name
}

// actorOf is a resource of a namespace as the giver of commands.
func (r *Reconciler) actorOf(object client.Object) audit.Actor {
	return audit.Actor{Kind: audit.Operator, Name: r.managedBy(client.ObjectKeyFromObject(object))}
}

func (r *Reconciler) managedPrefix() string { return "kubernetes/" + r.Cluster + "/" }

// responsible says whether the operator reconciles the resources of a namespace.
func (r *Reconciler) responsible(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}

// spread keeps resources that were created together from being reconciled together.
func spread(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/5+1))
}
