package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/internal/reconcile"
)

// ownNamespace is where Kubernetes tells a pod its namespace.
const ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// endsWithin is how long an operator may take to end, its lease included.
const endsWithin = 75 * time.Second

// uninstall is the command `operator uninstall`, which Helm runs before it deletes the operator. What
// it cannot do it says; it fails only if it cannot begin, so that nothing keeps an operator from being deleted.
func uninstall(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("operator uninstall", flag.ContinueOnError)
	flags.SetOutput(out)
	stop := flags.String("stop", "", "the operator's Deployment, which is scaled to 0 first")
	deleted := flags.Bool("delete", false, "remove all URLs: the resources are about to be deleted")
	within := flags.Duration("within", 4*time.Minute, "how long it may take")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	c, err := env.Parse[config](getenv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *within)
	defer cancel()
	ctrl.SetLogger(logr.Discard())
	api, err := newClient()
	if err != nil {
		return err
	}
	if c.LeaseNamespace == "" {
		text, err := os.ReadFile(ownNamespace)
		if err != nil {
			return fmt.Errorf("LEASE_NAMESPACE: which namespace is the operator's? %w", err)
		}
		c.LeaseNamespace = strings.TrimSpace(string(text))
	}
	if *stop != "" {
		if err := scaleDown(ctx, api, types.NamespacedName{Namespace: c.LeaseNamespace, Name: *stop}); err != nil {
			_, _ = fmt.Fprintf(out, "The Deployment %s cannot be scaled to 0: %v\n", *stop, err)
		}
	}
	ending, cancelEnding := context.WithTimeout(ctx, endsWithin)
	defer cancelEnding()
	if err := reconcile.AwaitEnd(ending, api, types.NamespacedName{Namespace: c.LeaseNamespace, Name: c.LeaseName}); err != nil {
		_, _ = fmt.Fprintf(out, "Finalizers may come back: %v\n", err)
	}
	u := &reconcile.Uninstall{
		Reconciler: &reconcile.Reconciler{
			Options: options(c),
			Client:  api, Live: api, Probe: pg.NewProbe(nil),
		},
		Deleted: *deleted, Out: out,
	}
	u.Connect = func(ctx context.Context) error {
		db, err := pg.OpenCurrent(ctx, c.DatabaseURL, 0)
		if err != nil {
			return err
		}
		u.Webhooks = webhook.Service{DB: db}
		now, err := pg.StartClock(ctx, db, clock.System, slog.New(slog.DiscardHandler))
		if err == nil {
			u.Clock = now.Now
		}
		return err
	}
	u.Run(ctx)
	if u.Webhooks.DB != nil {
		u.Webhooks.DB.Close()
	}
	return nil
}

// newClient makes a client without a cache.
func newClient() (client.Client, error) {
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("where is Kubernetes? %w", err)
	}
	cluster.QPS, cluster.Burst, cluster.UserAgent = requestsPerSecond, requestBurst, name
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return client.New(cluster, client.Options{Scheme: scheme})
}

// scaleDown asks for no replicas of a Deployment. One that is gone has none.
func scaleDown(ctx context.Context, api client.Client, deployment types.NamespacedName) error {
	of := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	var scale autoscalingv1.Scale
	if err := api.SubResource("scale").Get(ctx, of, &scale); err != nil {
		return client.IgnoreNotFound(err)
	}
	scale.Spec.Replicas = 0
	return api.SubResource("scale").Update(ctx, of, client.WithSubResourceBody(&scale))
}
