// Command operator keeps organizations, receiver URLs, API keys and roster sources as Kubernetes resources: it makes PostgreSQL agree with
// the Organizations, WebhookEndpoints, ApiKeys, RosterSources and WebhookReplays of a cluster and shows on them what becomes of what they stand for.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/account"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/obs/otlp"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
	"github.com/registrar-dev/registrar/operator/internal/reconcile"
)

// Most of the operator's memory is what it knows of the cluster, which does not become garbage: the runtime would let the rest
// grow as large before it collects.
const gcPercent = 50

func main() { os.Exit(obs.Main("operator", run)) }

func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
	if len(args) > 0 && args[0] == "uninstall" {
		return uninstall(ctx, args[1:], getenv, stdout)
	}
	if len(args) > 0 {
		return env.Explain[config](stdout, "operator keeps WebhookEndpoints, Organizations, ApiKeys, RosterSources and WebhookReplays; operator uninstall releases them (-h shows how).\nIt is configured by its environment, and KUBECONFIG:", args)
	}
	c, err := env.Parse[config](getenv)
	if err != nil {
		return err
	}
	log := obs.Logger(stdout, c.LogLevel, "operator")
	slog.SetDefault(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	klog.SetSlogLogger(log)
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	stopTraces, err := otlp.Start(ctx, "operator", getenv)
	if err != nil {
		return err
	}
	defer stopTraces()
	policy := egress.New(c.Egress)
	if policy.Loosened() {
		log.Warn("receivers that are not public https addresses are allowed", "networks", c.Egress.AllowNetworks, "http", c.Egress.AllowHTTP)
	}
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("where is Kubernetes? %w", err)
	}
	box, err := seal.Open(c.Secrets)
	if err != nil {
		return err
	}
	db, err := pg.OpenCurrent(ctx, c.DatabaseURL, c.SchemaWait)
	if err != nil {
		return err
	}
	defer db.Close()
	now, err := pg.StartClock(ctx, db, clock.System, log)
	if err != nil {
		return err
	}
	if c.RedisURL != "" {
		rdb, err := queue.Connect(c.RedisURL, c.RedisTLS)
		if err != nil {
			return err
		}
		defer func() { _ = rdb.Close() }()
		db.Wakes = wake.Start(rdb, wake.Installation)
		defer db.Wakes.Close()
		db.Wakes.Metrics(metrics.Registry)
	}
	sandboxes, err := simulate.New(c.SandboxURL, db, now.Now, log)
	if err != nil {
		return err
	}
	probe := pg.NewProbe(db)
	mail, publicURL := email.Service{Box: box, Suppressed: c.Suppressed}, strings.TrimSuffix(c.PublicURL, "/")
	defer probe.Close(ctx)
	mgr, err := newManager(ctx, c, rest.CopyConfig(cluster), &reconcile.Reconciler{
		Options:   options(c),
		Webhooks:  webhook.Service{DB: db, Box: box, Policy: policy},
		Staff:     &staff.Service{DB: db, Mail: mail, Clock: now.Now, PublicURL: publicURL},
		Accounts:  &account.Service{DB: db, Mail: mail, Clock: now.Now, PublicURL: publicURL},
		Sandboxes: sandboxes,
		Probe:     probe,
		Clock:     now.Now,
		Metrics:   metrics.Registry,
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// options are those of the operator and of its uninstall.
func options(c config) reconcile.Options {
	return reconcile.Options{Cluster: c.ClusterName, Namespaces: c.WatchNamespaces, Selector: c.selector(), NamespaceRole: c.NamespaceRole, Resync: c.Resync, Patience: c.Patience,
		Organizations: c.Organizations, Class: c.ClassName}
}
