package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
	"github.com/registrar-dev/registrar/operator/internal/guard"
	"github.com/registrar-dev/registrar/operator/internal/reconcile"
)

const (
	name = "registrar-operator"
	// The API server has its own fairness; this only keeps a mistake here from becoming
	// its problem.
	requestsPerSecond, requestBurst = 200, 400
	// The two checks follow each other, and the probes of a pod wait for 3 s.
	readyWithin = 1400 * time.Millisecond
	// At start the client asks for the API server's kinds, too.
	lookedAtWithin = 10 * time.Second
)

// newManager makes the manager: caches, the controllers, their lease and the servers.
func newManager(ctx context.Context, c config, cluster *rest.Config, r *reconcile.Reconciler) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	cluster.QPS, cluster.Burst, cluster.UserAgent = requestsPerSecond, requestBurst, name
	mgr, err := ctrl.NewManager(cluster, manager.Options{
		Scheme: scheme,
		Cache:  cache.Options{DefaultTransform: reconcile.Slim, DefaultNamespaces: watched(c.WatchNamespaces), ByObject: reconcile.OwnBindings(c.NamespaceRole)},
		// Of Secrets only the metadata are kept in memory; the few values are read when needed.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics: metricsserver.Options{BindAddress: c.MetricsAddr, SecureServing: true,
			FilterProvider: func(cluster *rest.Config, hc *http.Client) (metricsserver.Filter, error) {
				return guard.Filter(cluster, hc, clock.System)
			}},
		HealthProbeBindAddress:        c.PrivateAddr,
		PprofBindAddress:              c.PprofAddr,
		LeaderElection:                true,
		LeaderElectionID:              c.LeaseName,
		LeaderElectionNamespace:       c.LeaseNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	obs.PoolMetrics(metrics.Registry, r.Webhooks.DB.Pool)
	r.Probe.Metrics(metrics.Registry)
	watching := &reconcile.Watching{Reader: mgr.GetAPIReader(), Cache: mgr.GetCache(), Namespaces: c.WatchNamespaces, Selecting: c.WatchSelector != "", Organizations: c.Organizations}
	if err := addProbes(mgr, r.Probe, watching); err != nil {
		return nil, err
	}
	looking, cancel := context.WithTimeout(ctx, lookedAtWithin)
	defer cancel()
	watching.Definitions(looking)
	r.Client, r.Live, r.Cache, r.Events = mgr.GetClient(), mgr.GetAPIReader(), mgr.GetCache(), mgr.GetEventRecorder(name)
	return mgr, r.Setup(ctx, mgr)
}

// newScheme knows Kubernetes' own kinds and Registrar's.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme))
}

// addProbes adds /healthz, which checks nothing, and /readyz, which checks PostgreSQL and what the operator
// watches.
func addProbes(mgr manager.Manager, probe *pg.Probe, watching *reconcile.Watching) error {
	alive := func(*http.Request) error { return nil }
	if err := mgr.AddHealthzCheck("process", alive); err != nil {
		return err
	}
	for name, check := range map[string]func(context.Context) error{"postgresql": probe.Ping, "kubernetes": watching.Check} {
		err := mgr.AddReadyzCheck(name, func(req *http.Request) error {
			ctx, cancel := context.WithTimeout(req.Context(), readyWithin)
			defer cancel()
			return check(ctx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func watched(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	out := make(map[string]cache.Config, len(namespaces))
	for _, n := range namespaces {
		out[n] = cache.Config{}
	}
	return out
}
